"""Verify a snapshot by recomputing its derived data, and name the part that differs."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from conftest import AS_OF, DAY, Build, Cli, build_in, csv, ndjson, server
from srvstat.contract.errors import SnapshotError
from srvstat.contract.requests import ServerReference
from srvstat.snapshot.read.file import SnapshotFile, open_file
from srvstat.snapshot.read.snapshot import open_snapshot
from srvstat.snapshot.read.verify import SpotCheck
from support.snapshots import change, forge, write_shards
from support.terminal import SRVSTAT, run_in_terminal

RECORDS = [server("a", hostname="secret"), server("b"), server("c")]
ROWS = [
    *[("a", AS_OF - 2 * DAY + 3_600_000 * hour, hour % 7) for hour in range(49)],
    ("b", AS_OF - DAY, 5),
]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a snapshot of three servers, one without observations."""
    return build_in(tmp_path_factory.mktemp("sound"), RECORDS, ROWS)


@pytest.fixture
def good(sound: Path, tmp_path: Path) -> str:
    """Return a copy of the snapshot."""
    return str(shutil.copy(sound, tmp_path))


@pytest.mark.parametrize("text", ["", "12", "g" * 64, "0" * 63, "0" * 65, "0" * 64 + "\n"])
def test_an_invalid_root_is_invalid_usage(text: str, good: str, cli: Cli) -> None:
    ran = cli("snapshot", "verify", good, "--expect", text)

    assert (ran.exit_code, ran.stdout) == (2, b"")
    assert ran.stderr.startswith("error: --expect: must be 64 hexadecimal digits")


def test_equal_content_of_different_files_has_an_equal_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)
    hidden = server("hidden", publishable=False)
    Path("one.ndjson").write_bytes(ndjson(RECORDS))
    Path("other.ndjson").write_bytes(ndjson([hidden, *RECORDS[::-1]]))
    Path("all.csv").write_bytes(csv(ROWS))
    Path("half.csv").write_bytes(csv([*ROWS[::-2], ("hidden", AS_OF, 1), ("a", "never", 1)]))
    Path("rest.csv").write_bytes(csv([*ROWS[-2::-2], *ROWS[:3]]))

    def root(*arguments: str) -> str:
        assert cli("snapshot", "build", "x.db", "--overwrite", "-q", *arguments).exit_code == 0
        found: str = cli("snapshot", "verify", "x.db").json["root"]
        return found

    whole = root("--servers", "one.ndjson", "--observations", "all.csv")
    parts = ("--observations", "rest.csv", "--observations", "half.csv")
    assert root("--servers", "other.ndjson", *parts) == whole
    later = root("--servers", "one.ndjson", "--observations", "all.csv", "--at", str(AS_OF + 1))
    assert later != whole


OF_A = "observations of server a from 2026-02-27T12:00:00.000Z to 2026-03-01T12:00:00.000Z"
OF_B = "observations of server b from 2026-02-28T12:00:00.000Z to 2026-02-28T12:00:00.000Z"

DAMAGE = {
    "UPDATE blocks SET players = x'09' WHERE server_block = 2000000000": OF_B,
    "UPDATE blocks SET times = x'01' WHERE server_block = 2000000000": OF_B,
    "UPDATE blocks SET counts_digest = zeroblob(16)": OF_A,
    **{
        "INSERT INTO blocks SELECT "
        f"{key}, 1, 0, 1, x'00', x'00', NULL, x'', x'', x'', x'', x''": "the table blocks"
        for key in (0, 2_000_000_001, 3_000_000_000, 4_000_000_000)
    },
    "INSERT INTO directory VALUES (2, x'', x'')": "the directory of identifiers",
    "DELETE FROM directory WHERE bucket = 1": "the directory of identifiers",
}


@pytest.mark.parametrize("sql", DAMAGE)
def test_verify_finds_and_names_any_damage(sql: str, good: str, cli: Cli) -> None:
    change(good, sql)

    ran = cli("snapshot", "verify", good)

    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert ran.stderr.startswith(f"error: {good}: damaged ({DAMAGE[sql]}); ")


FORGED = {
    **dict.fromkeys(
        (
            "UPDATE blocks SET players = 5",
            "UPDATE blocks SET players_before = 5",
            "UPDATE blocks SET sum_before = x'01'",
            "UPDATE blocks SET mark_sums = zeroblob(8)",
            "UPDATE blocks SET counts_before = x'00'",
            "UPDATE blocks SET marks = x'0000'",
            "UPDATE blocks SET counts_digest = zeroblob(16)",
        ),
        OF_A,
    ),
    **dict.fromkeys(
        (
            "UPDATE blocks SET times = zeroblob(length(times))",
            "UPDATE blocks SET times = substr(times, 2)",
            "UPDATE blocks SET times = x'05', players = x'0000000000002000', observation_count = 1",
            "UPDATE blocks SET times = x'00', players = x'ffffffffffffffff', observation_count = 1",
            "UPDATE blocks SET time_unit = 0",
            "UPDATE blocks SET time_unit = time_unit / 2",
            "UPDATE snapshot SET as_of = as_of - 1",
            "UPDATE servers SET block_ends = zeroblob(8) WHERE id = 'a'",
            "UPDATE servers SET block_ends = x'' WHERE id = 'a'",
        ),
        "the observations of server a",
    ),
    "DELETE FROM blocks WHERE server_block = 2000000000": OF_B,
    "UPDATE blocks SET players = zeroblob(length(players))": "server a",
    "UPDATE servers SET block_peaks = x'09' WHERE id = 'b'": "server b",
    "UPDATE servers SET counts = x'' WHERE id = 'b'": "server b",
    "UPDATE servers SET player_sum = x'' WHERE id = 'b'": "server b",
    "UPDATE servers SET last_players = NULL WHERE id = 'b'": "server b",
    "UPDATE servers SET block_peaks = x'00' WHERE id = 'c'": "server c",
    "UPDATE servers SET observation_count = 51 WHERE id = 'b'": "server b",
    "UPDATE servers SET first_observed_at = 5 WHERE id = 'c'": "server c",
    "UPDATE servers SET last_observed_at = NULL WHERE id = 'a'": "server a",
    "UPDATE snapshot SET observation_count = 51": "the table snapshot",
    "UPDATE snapshot SET first_observed_at = NULL": "the table snapshot",
    "UPDATE snapshot SET last_observed_at = last_observed_at - 1": "the table snapshot",
    "UPDATE snapshot SET server_count = 2": "the table snapshot",
}


@pytest.mark.parametrize("sql", FORGED)
def test_verify_finds_forgeries_with_matching_digests(sql: str, good: str, cli: Cli) -> None:
    forge(good, sql)

    ran = cli("snapshot", "verify", good)

    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert ran.stderr.startswith(f"error: {good}: damaged ({FORGED[sql]}); ")


def test_verify_checks_indexes_that_answers_do_not_read(good: str, cli: Cli) -> None:
    content = Path(good).read_bytes()
    # Find the entry in the index on cfx_id: in the row itself, the id precedes it.
    at = content.rindex(b"x-b")
    while content[at - 1 : at] == b"b":
        at = content.rindex(b"x-b", 0, at)
    Path(good).write_bytes(content[:at] + b"x-e" + content[at + 3 :])

    assert cli("get", "--by", "cfxId", "x-b", "-s", good).exit_code == 0
    ran = cli("snapshot", "verify", good)
    assert ran.exit_code == 3
    assert "damaged (the structure of the SQLite file)" in ran.stderr


def test_a_terminal_shows_a_progress_bar_and_clears_it(good: str) -> None:
    exit_code, shown = run_in_terminal([*SRVSTAT, "snapshot", "verify", good])

    assert exit_code == 0
    assert "verifying" in shown
    assert re.search(r"root +[0-9a-f]{64}", shown)
    _, quiet = run_in_terminal([*SRVSTAT, "snapshot", "verify", "--quiet", good])
    assert "verifying" not in quiet


IDS = ["a", "b", "c", "silent"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    servers = [server(name, hostname=f"the host of {name}") for name in IDS]
    rows = [(name, AS_OF - age * DAY, age) for name in "abc" for age in range(3)]
    return build_in(tmp_path_factory.mktemp("built"), servers, rows)


@pytest.fixture
def path(built: Path, tmp_path: Path) -> Path:
    (tmp_path / "copy.db").write_bytes(built.read_bytes())
    return tmp_path / "copy.db"


@pytest.fixture
def file(path: Path) -> Iterator[SnapshotFile]:
    """Return an open file whose servers are in memory."""
    with closing(open_file(str(path))) as file:
        found = file.find_servers([ServerReference(identifier=name, by="id") for name in IDS])
        assert None not in found
        yield file


def overwrite(path: Path, old: bytes, new: bytes) -> None:
    """Change bytes of a file in place."""
    content = path.read_bytes()
    assert content.count(old) == 1
    with path.open("r+b") as file:
        file.seek(content.index(old))
        file.write(new)


def test_each_server_is_checked_in_turn(file: SnapshotFile) -> None:
    check = SpotCheck()

    assert [check.check_next(file) for _ in range(9)] == [*IDS, *IDS, "a"]


def test_each_shard_is_checked_in_turn(built: Path, tmp_path: Path) -> None:
    check = SpotCheck()
    with closing(open_snapshot(str(write_shards(built, tmp_path / "shards", 3)))) as snapshot:
        found = [check.check_next(snapshot) for _ in range(3 * len(IDS))]
        files = list(snapshot.iter_files())

    assert set(found) >= set(IDS)
    for number, one in enumerate(files):
        assert len(set(found[number::3])) == max(one.file_row.server_count, 1)


def test_a_changed_byte_is_found_and_stays_found_until_it_is_repaired(
    file: SnapshotFile, path: Path
) -> None:
    check = SpotCheck()
    overwrite(path, b"the host of b", b"the host of B")

    assert check.check_next(file) == "a"
    for _ in range(2):
        with pytest.raises(SnapshotError, match=r"damaged \(server b\)"):
            check.check_next(file)
    overwrite(path, b"the host of B", b"the host of b")
    assert [check.check_next(file), check.check_next(file)] == ["b", "c"]


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def write_another_over_it(path: Path) -> None:
    other = build_in(path.parent, [server("a")], [("a", AS_OF, 1)])
    path.write_bytes(other.read_bytes())


def fill_with_zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


@pytest.mark.parametrize("harm", [cut, write_another_over_it, fill_with_zeros])
def test_a_file_changed_in_place_is_found(
    harm: Callable[[Path], None], file: SnapshotFile, path: Path
) -> None:
    harm(path)

    with pytest.raises(SnapshotError, match=r"copy\.db: damaged"):
        SpotCheck().check_next(file)


@pytest.mark.parametrize(
    ("sql", "part"),
    [
        ("DELETE FROM servers", "the servers"),
        ("UPDATE servers SET id = id || '-old'", "the servers"),
        ("DELETE FROM directory WHERE bucket = 1", "the directory of identifiers"),  # of cfxIds
    ],
)
def test_servers_that_references_do_not_lead_to_are_found(sql: str, part: str, path: Path) -> None:
    change(str(path), sql)

    with closing(open_file(str(path))) as file, pytest.raises(SnapshotError, match=part):
        SpotCheck().check_next(file)


def test_a_file_without_servers_has_none_to_check(build: Build) -> None:
    with closing(open_file(build([], [], "--allow-empty", f"--at={AS_OF}"))) as file:
        assert SpotCheck().check_next(file) is None
