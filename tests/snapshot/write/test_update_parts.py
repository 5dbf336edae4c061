"""Steps of an update that only a large, damaged or doubtful one takes."""

import random
from pathlib import Path

import pytest
from srvstat.snapshot.format.bands import find_epoch

from conftest import AS_OF, DAY, Build, Cli, csv, ndjson, server
from srvstat.snapshot.write import update
from support.snapshots import change, forge, read_root

BUILD = ["snapshot", "build", "--servers", "servers.ndjson", "--observations", "week.csv"]
UPDATE = ["snapshot", "update", "out.db", "--observations", "new.csv"]


@pytest.fixture(autouse=True)
def _snapshot(here: Path, cli: Cli) -> None:
    assert cli(*BUILD, "out.db").exit_code == 0
    (here / "new.csv").write_bytes(csv([("a", AS_OF - DAY + 1, 8), ("b", AS_OF + 1, 9)]))


def test_an_update_verifies_the_rows_to_which_it_appends(build: Build, cli: Cli) -> None:
    drawn = random.Random(3)  # noqa: S311 - not for secrets
    count = find_epoch("a", 400) + 20
    rows = [("a", at * DAY // 4 + drawn.randrange(9_000), at * 7 % 4_001) for at in range(count)]
    path = Path(build([server("a")], rows[:-16]))
    Path("new.csv").write_bytes(csv(rows[-16:]))
    sound = path.read_bytes()
    for table in ("days", "bands", "summary_index", "summaries", "interval_counts", "intervals"):
        path.write_bytes(sound)
        change(str(path), f"DELETE FROM {table}")  # noqa: S608 - our own names

        damaged = path.read_bytes()

        # Rows that it does not read are missed when it reads back what it wrote.
        assert cli("snapshot", "update", str(path), *UPDATE[3:]).exit_code in {3, 4}, table
        assert path.read_bytes() == damaged
    path.write_bytes(sound)
    assert cli("snapshot", "update", str(path), *UPDATE[3:]).exit_code == 0
    assert read_root(str(path)) == read_root(build([server("a")], rows))


def test_a_forged_file_with_impossible_days_is_not_updated(cli: Cli) -> None:
    forge("out.db", "UPDATE snapshot SET as_of = 5")
    before = Path("out.db").read_bytes()

    ran = cli(*UPDATE)

    assert (ran.exit_code, "damaged (the days of server a)" in ran.stderr) == (3, True)
    assert Path("out.db").read_bytes() == before


def test_rows_that_are_stored_in_pieces_are_the_same(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("one.db").write_bytes(Path("out.db").read_bytes())
    assert cli(*UPDATE).exit_code == 0
    monkeypatch.setattr(update, "_MAX_BYTES", 1)

    assert cli("snapshot", "update", "one.db", *UPDATE[3:]).exit_code == 0

    assert read_root("one.db") == read_root("out.db")
    assert cli("snapshot", "verify", "one.db").exit_code == 0


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
