"""Property: `compare` and DuckDB give the same bytes for every server of a random fleet."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import Cli
from fleet.random_fleet import write_fleet
from fleet.same_bytes import check_same_bytes
from srvstat.contract.time import DAYS


@settings(
    max_examples=max(3, settings().max_examples // 30),
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # `cli` keeps no state
)
@given(seed=st.integers(min_value=0), range=st.sampled_from(list(DAYS)))
def test_duckdb_gives_the_bytes_of_compare_for_every_server(
    cli: Cli, tmp_path_factory: pytest.TempPathFactory, seed: int, range: str
) -> None:
    directory = tmp_path_factory.mktemp("fleet")
    files = write_fleet(directory, Random(seed))  # noqa: S311 - not a secret

    check_same_bytes(cli, files, directory, range)
