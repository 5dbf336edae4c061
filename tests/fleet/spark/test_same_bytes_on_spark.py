"""Spark gives the bytes of `compare` for every server of a random fleet, as DuckDB does."""

from pathlib import Path
from random import Random

import pytest

from conftest import Cli
from fleet.random_fleet import write_fleet
from fleet.same_bytes import check_same_bytes
from support.spark import skip_without_spark

pytestmark = pytest.mark.external


def test_spark_gives_the_bytes_of_compare_for_every_server(cli: Cli, tmp_path: Path) -> None:
    skip_without_spark()
    files = write_fleet(tmp_path, Random(1))  # noqa: S311 - not a secret

    check_same_bytes(cli, files, tmp_path, "30d", "--engine=spark", "--master=local[2]")
