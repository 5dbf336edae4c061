"""Steps of an update that only a large, damaged or doubtful one takes."""

import pickle
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from conftest import AS_OF, DAY, Cli, csv, ndjson, server
from srvstat.contract.instants import LATEST
from srvstat.snapshot.read.reader import open_file
from srvstat.snapshot.write import update as merging
from srvstat.snapshot.write.update import Additions, OldFile, merge_server
from support.snapshots import forge, read_root

BUILD = ["snapshot", "build", "--servers", "servers.ndjson", "--observations", "week.csv"]
UPDATE = ["snapshot", "update", "out.db", "--observations", "new.csv"]


@pytest.fixture(autouse=True)
def _snapshot(here: Path, cli: Cli) -> Iterator[None]:
    assert cli(*BUILD, "out.db").exit_code == 0
    (here / "new.csv").write_bytes(csv([("a", AS_OF - DAY + 1, 8), ("b", AS_OF + 1, 9)]))
    yield
    merging._open_again.cache_clear()  # noqa: SLF001 - it is closed


def test_another_process_merges_into_the_same_file() -> None:
    with closing(open_file("out.db")) as snapshot:
        row = next(snapshot.iter_servers())
        old = OldFile(snapshot)
        additions = Additions(old, row.id, row.server, row, LATEST + 1, [AS_OF + 1], [3], 1)
        late = additions._replace(later=0)
        job = pickle.dumps([additions, late])
        expected = [merge_server(additions), merge_server(late)]

    copies = pickle.loads(job)  # noqa: S301 - our own

    with closing(copies[0].old._snapshot):  # noqa: SLF001 - a process keeps it open to its end
        assert [merge_server(copy) for copy in copies] == expected


def test_another_process_refuses_a_file_that_was_replaced(cli: Cli) -> None:
    with closing(open_file("out.db")) as snapshot:
        job = pickle.dumps(OldFile(snapshot))
    assert cli(*BUILD, "out.db", "--overwrite", "--as-of", str(AS_OF + 1)).exit_code == 0

    with pytest.raises(ValueError, match="another file"):
        pickle.loads(job)  # noqa: S301 - our own


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
    monkeypatch.setattr(merging, "_MAX_BYTES", 1)

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
