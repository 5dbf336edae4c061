"""Spot checks read one server after another from the disk, whatever is in memory."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from conftest import AS_OF, DAY, Build, build_in, server
from srvstat.contract.errors import SnapshotError
from srvstat.contract.requests import ServerReference
from srvstat.snapshot.read.file import SnapshotFile, open_file
from srvstat.snapshot.read.snapshot import open_snapshot
from srvstat.snapshot.read.verify import SpotCheck
from support.snapshots import change, write_shards

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


def is_damaged(use: Callable[[], object]) -> bool:
    try:
        use()
    except SnapshotError:
        return True
    return False


def test_a_file_without_servers_has_none_to_check(build: Build) -> None:
    with closing(open_file(build([], [], "--allow-empty", f"--as-of={AS_OF}"))) as file:
        assert SpotCheck().check_next(file) is None
