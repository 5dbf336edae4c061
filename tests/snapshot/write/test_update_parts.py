"""Steps of an update that only a large, damaged or doubtful one takes."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from conftest import AS_OF, DAY, Build, Cli, csv, ndjson, server
from srvstat.snapshot.rows import BLOCK_SIZE
from srvstat.snapshot.write import update
from support.snapshots import change, forge, read_root

BUILD = ["snapshot", "build", "--servers", "servers.ndjson", "--observations", "week.csv"]
UPDATE = ["snapshot", "update", "out.db", "--observations", "new.csv"]


@pytest.fixture(autouse=True)
def _snapshot(here: Path, cli: Cli) -> None:
    assert cli(*BUILD, "out.db").exit_code == 0
    (here / "new.csv").write_bytes(csv([("a", AS_OF - DAY + 1, 8), ("b", AS_OF + 1, 9)]))


@pytest.mark.parametrize(
    "harm",
    [
        partial(change, sql="DELETE FROM blocks"),
        partial(change, sql="UPDATE blocks SET counts_before = x'01' WHERE counts_before <> x''"),
        partial(forge, sql="UPDATE blocks SET time_unit = 0"),
        partial(forge, sql="UPDATE servers SET block_peaks = x''"),
    ],
)
def test_an_update_verifies_the_block_to_which_it_appends(
    harm: Callable[[str], None], build: Build, cli: Cli
) -> None:
    path = build([server("a")], [("a", AS_OF + at, at % 9) for at in range(BLOCK_SIZE + 9)])
    Path("new.csv").write_bytes(csv([("a", AS_OF + BLOCK_SIZE + at, 5) for at in range(9, 99)]))
    harm(path)
    damaged = Path(path).read_bytes()

    ran = cli("snapshot", "update", path, *UPDATE[3:])

    assert (ran.exit_code, "of server a" in ran.stderr) == (3, True)
    assert Path(path).read_bytes() == damaged


def test_an_update_misses_blocks_that_it_does_not_read(build: Build, cli: Cli) -> None:
    path = build([server("a")], [("a", AS_OF + at, at % 9) for at in range(BLOCK_SIZE + 9)])
    Path("new.csv").write_bytes(csv([("a", AS_OF + BLOCK_SIZE + 9, 5)]))
    change(path, "DELETE FROM blocks WHERE players_before IS NULL")

    assert cli("snapshot", "update", path, *UPDATE[3:]).exit_code == 4


def test_blocks_that_are_stored_in_pieces_are_the_same(
    build: Build, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [("a", AS_OF + at, at % 9) for at in range(5 * BLOCK_SIZE)]
    path = build([server("a")], rows[1::2])
    Path("new.csv").write_bytes(csv(rows[::2]))
    monkeypatch.setattr(update, "_MAX_WAITING", 2)

    assert cli("snapshot", "update", path, *UPDATE[3:]).exit_code == 0

    assert read_root(path) == read_root(build([server("a")], rows))
    assert cli("snapshot", "verify", path).exit_code == 0


def test_a_repeat_of_the_last_observation_of_a_block_changes_nothing(
    build: Build, cli: Cli
) -> None:
    rows = [("a", AS_OF + at, at % 9) for at in range(BLOCK_SIZE + 9)]
    path = build([server("a")], rows[:-1])
    Path("new.csv").write_bytes(csv([rows[BLOCK_SIZE - 1], rows[-1]]))

    assert cli("snapshot", "update", path, *UPDATE[3:]).exit_code == 0
    assert read_root(path) == read_root(build([server("a")], rows))


def test_strict_names_a_conflict_before_a_last_line_that_may_be_cut_off(cli: Cli) -> None:
    Path("new.csv").write_bytes(csv([("a", AS_OF, 99), ("b", AS_OF + 1, 147)])[:-1])

    ran = cli(*UPDATE, "--strict")

    assert ran.exit_code == 6
    assert ran.stderr.startswith("error: new.csv, line 2: players: an earlier row of this server")


def test_strict_refuses_a_last_line_that_may_be_cut_off(cli: Cli) -> None:
    Path("new.csv").write_bytes(csv([("b", AS_OF + 1, 147)])[:-1])

    ran = cli(*UPDATE, "--strict")

    assert (ran.exit_code, "the last line has no newline" in ran.stderr) == (6, True)


def test_a_source_id_without_a_slug_stays(cli: Cli) -> None:
    Path("servers.ndjson").write_bytes(ndjson([server("a", sourceId="é"), server("b")]))
    assert cli(*BUILD, "out.db", "--overwrite").exit_code == 0

    assert cli(*UPDATE).exit_code == 0

    found = cli("snapshot", "info", "out.db").json["identifiers"]
    assert [one["sourceId"] for one in found if one["id"] == "a"] == ["é"]
