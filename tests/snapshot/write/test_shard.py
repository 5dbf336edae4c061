"""Build one shard in this process."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from conftest import AS_OF, Cli, csv, ndjson, server
from srvstat.contract.errors import OutputError
from srvstat.snapshot.write.build import Shard, build_shard
from srvstat.sources.servers import ServerRecord
from support.snapshots import read_root

ROWS = [(name, AS_OF - at, at) for name in ("a", "b") for at in range(100)]
RECORDS = [
    ServerRecord(id=name, cfx_id=f"x-{name}", game="game_a", hostname=name) for name in ("a", "b")
]


def write_rows(folder: str) -> None:
    Path(folder).mkdir()
    columns = dict(zip(("serverId", "observedAt", "players"), zip(*ROWS, strict=True), strict=True))
    parquet.write_table(pa.table(columns), f"{folder}/part.parquet")


@pytest.mark.usefixtures("here")
def test_a_shard_is_the_build_of_its_servers(cli: Cli) -> None:
    write_rows("rows")
    Path("servers.ndjson").write_bytes(ndjson(map(server, ("a", "b"))))
    Path("rows.csv").write_bytes(csv(ROWS))
    command = ["snapshot", "build", "one.db", "--servers=servers.ndjson"]
    assert cli(*command, "--observations=rows.csv").exit_code == 0
    reports: list[int] = []

    row = build_shard(
        Shard(0, "shard.db", "DIR/shard.db", RECORDS, "rows", AS_OF, ["week.csv"]), reports.append
    )

    assert row.root == read_root("shard.db") == read_root("one.db")
    assert row.sources == '["week.csv"]'
    assert sum(reports) == len(ROWS)  # those read; few rows are stored without a report


@pytest.mark.usefixtures("here")
def test_a_shard_can_be_empty(cli: Cli) -> None:
    row = build_shard(Shard(0, "shard.db", "DIR/shard.db", (), "rows", AS_OF, ["week.csv"]), print)

    assert (row.server_count, row.observation_count) == (0, 0)
    assert cli("snapshot", "verify", "shard.db").exit_code == 0


@pytest.mark.usefixtures("here")
def test_a_shard_that_can_not_be_written_is_an_error() -> None:
    with pytest.raises(OutputError, match=r"^DIR/shard\.db: No such file or directory$"):
        build_shard(Shard(0, "none/shard.db", "DIR/shard.db", (), "rows", AS_OF, ()), print)
