"""Write the same shards with Spark as with DuckDB."""

from pathlib import Path
from random import Random

import pytest

from conftest import Cli
from fleet.random_fleet import write_fleet
from support.snapshots import read_directory
from support.spark import skip_without_spark

pytestmark = pytest.mark.external


def test_spark_writes_the_bytes_of_duckdb(cli: Cli, tmp_path: Path) -> None:
    skip_without_spark()
    files = write_fleet(tmp_path, Random(3), servers=40)  # noqa: S311 - not a secret
    command = ["fleet", *map(str, files.sources), f"--servers={files.servers}", *files.options]
    found = []
    for engine in ("duckdb", "spark"):
        folder = tmp_path / engine
        options = [f"--engine={engine}", f"--snapshots={folder}", "--shards=5"]
        ran = cli(*command, *options)
        assert ran.exit_code == 0, ran.stderr
        found.append(read_directory(folder))

    assert len(found[0]) == 6
    assert found[0] == found[1]
