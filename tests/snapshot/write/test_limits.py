"""Limit what a build stores, so that readers accept it, and report what exceeds the limits."""

import resource
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from conftest import AS_OF, Build, Cli, csv, server
from srvstat.contract.requests import ServerReference
from srvstat.contract.time import Window
from srvstat.snapshot.read import file
from srvstat.snapshot.read.file import open_file
from srvstat.snapshot.read.windows import compute_window_statistics

pytestmark = pytest.mark.slow

BUILD = ["snapshot", "build", "out.db", "--servers", "servers.ndjson", "--observations", "many.csv"]


def test_servers_removed_from_memory_are_read_again(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "_MAX_BYTES_KEPT", 2_000)
    names = ["s0", "s1", "s2", "s3"]
    path = build([server(name) for name in names], [(name, AS_OF, 5) for name in names])
    references = [ServerReference(identifier=name, by="id") for name in names]

    with closing(open_file(path)) as snapshot:
        for _ in range(3):
            for asked in ([0], [0, 1], [2, 0], [1, 3, 0, 2], [3, 2, 1, 0]):
                found = [
                    one for one in snapshot.find_servers([references[at] for at in asked]) if one
                ]
                assert [one.id for one in found] == [names[at] for at in asked]
                figures = compute_window_statistics(snapshot, found, Window(AS_OF - 1, AS_OF))
                assert [one.mean for one in figures] == [5.0] * len(asked)


def test_a_full_disk_at_the_end_of_the_rejects_builds_nothing(here: Path, cli: Cli) -> None:
    rows: list[tuple[str, int | str, int | str]] = [("a", "never" * 20, at) for at in range(2_000)]
    Path("many.csv").write_bytes(csv([("a", AS_OF, 5), *rows]))
    command = [*BUILD, "--max-rejected=100%", "--rejects", "rejects.ndjson"]
    assert cli(*command).exit_code == 0
    room = Path("rejects.ndjson").stat().st_size - 10
    assert Path("out.db").stat().st_size < room
    for name in ("out.db", "rejects.ndjson"):
        Path(name).unlink()
    before = sorted(path.name for path in here.iterdir())

    with limit_file_size(room):
        ran = cli(*command)

    assert ran.exit_code == 4
    assert ran.stderr.startswith("error: rejects.ndjson: ")
    assert sorted(path.name for path in here.iterdir()) == before


@contextmanager
def limit_file_size(size: int) -> Iterator[None]:
    """Limit the size of files that this process writes, like a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_nothing(here: Path, cli: Cli) -> None:
    Path("many.csv").write_bytes(csv([("a", AS_OF - at, at % 9) for at in range(20_000)]))
    before = sorted(path.name for path in here.iterdir())

    with limit_file_size(100_000):
        ran = cli(*BUILD)

    assert ran.exit_code == 4
    assert ran.stderr.startswith("error: out.db: ")
    assert sorted(path.name for path in here.iterdir()) == before
