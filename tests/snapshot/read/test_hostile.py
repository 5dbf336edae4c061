"""Refuse hostile snapshots or answer correctly, fast, in little memory, without changing files."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from campaigns.small_snapshots import PUBLISHED, build_small_snapshot
from snapshot.hostile import CONTENTS, FORGERIES, STRUCTURES
from snapshot.measured import Forks, Measured, start_forks

pytestmark = pytest.mark.slow

NOT_FOUND = 44
MAX_SECONDS = 1
MAX_ADDED_MIB = 64

COMMANDS: Mapping[str, list[str]] = {
    "get": ["get", "uneven", "--json", "--snapshot"],
    "compare": ["compare", "busy", "wide", "uneven", "away", "daily", "--json", "--snapshot"],
    "table": ["compare", "busy", "uneven", "--range", "1y", "--table", "--snapshot"],
    "stats": ["stats", "busy", "daily", "--range", "1y", "--json", "--snapshot"],
    "info": ["snapshot", "info", "--json"],
    "verify": ["snapshot", "verify", "--json"],
    "bundle": [
        *("snapshot", "bundle", "uneven", "busy", "-o", "case.db", "--overwrite", "--snapshot"),
    ],
}
_KNOWN = "|".join(PUBLISHED)
_TIME = r"[0-9-]{10}T[0-9:.]{12}Z"
_PARTS = (
    "the (whole file|directory of identifiers|servers|observations)",
    "the table [a-z_]+",
    "its (header|tables)",
    "the structure of the SQLite file",
    rf"(the observations of )?(a server|server ({_KNOWN}))",
    rf"observations of (a server|server ({_KNOWN})) from {_TIME} to {_TIME}",
)
REASON = re.compile(
    rf"damaged \(({'|'.join(_PARTS)})\); copy it again, or build one with"
    " `srvstat snapshot build`"
    "|truncated or extended since it was built; copy it again"
    "|set to write-ahead-log mode by another program; reset it with SQLite's"
    " PRAGMA journal_mode = DELETE, or build it again"
    "|(?P<journal>[^ ]+-(journal|wal)) exists, so another program may not have finished"
    " writing; close the programs that use it, remove (?P=journal) if it still exists, and try"
    " again"
)
"""All reasons to refuse a snapshot: fixed texts, and servers that the request could name."""


class Healthy(NamedTuple):
    """An unchanged snapshot, its answers, and the process that runs all commands."""

    path: Path
    asked: Mapping[str, Measured]
    forks: Forks


def ask_all(path: Path, work: Path, forks: Forks) -> dict[str, Measured]:
    commands = [[*command, str(path)] for command in COMMANDS.values()]
    return dict(zip(COMMANDS, forks.run(commands, work), strict=True))


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Healthy]:
    directory = tmp_path_factory.mktemp("healthy")
    path = build_small_snapshot(directory / "built", seed=1)
    with start_forks() as forks:
        ask_all(path, directory, forks)  # imports everything
        yield Healthy(path, ask_all(path, directory, forks), forks)


@pytest.fixture
def path(healthy: Healthy, tmp_path: Path) -> Iterator[Path]:
    """Return a copy of the healthy snapshot in a directory of its own."""
    directory = tmp_path / "here"
    directory.mkdir()
    path = directory / "snapshot.db"
    shutil.copy(healthy.path, path)
    yield path
    shutil.rmtree(directory)  # some are large


def date_files(directory: Path) -> None:
    """Set the modification times to long ago, so that any write changes them."""
    for path in directory.iterdir():
        os.utime(path, (0, 0))


def identify_files(directory: Path) -> dict[str, tuple[int, ...]]:
    """Return what changes with each file; some are too large to compare their content."""
    found = {path.name: path.stat() for path in directory.iterdir()}
    return {name: (of.st_ino, of.st_size, of.st_mtime_ns) for name, of in found.items()}


def is_refused(asked: Measured, path: Path) -> bool:
    """Check that a command refused the snapshot with one line that shows nothing of its content."""
    if asked.exit_code != 3 or asked.stdout:
        return False
    before, _, reason = asked.stderr.partition(f"error: {path}: ")
    return not before and REASON.fullmatch(reason.removesuffix("\n")) is not None


def is_right(asked: Measured, of_healthy: Measured) -> bool:
    return asked[:3] == of_healthy[:3]


def test_a_healthy_snapshot_is_answered_and_unchanged(healthy: Healthy, path: Path) -> None:
    before = path.read_bytes()

    asked = ask_all(path, path.parent.parent, healthy.forks)

    assert {each.name: each.read_bytes() for each in path.parent.iterdir()} == {path.name: before}
    for command, found in asked.items():
        assert found.exit_code == 0
        assert is_right(found, healthy.asked[command])


def ask_within_limits(path: Path, healthy: Healthy) -> dict[str, Measured]:
    """Run all commands, and check their limits and that they change nothing."""
    date_files(path.parent)
    before = identify_files(path.parent)
    asked = ask_all(path, path.parent.parent, healthy.forks)
    assert identify_files(path.parent) == before
    for command, found in asked.items():
        assert found.seconds < MAX_SECONDS, command
        more = found.memory - healthy.asked[command].memory
        assert more < MAX_ADDED_MIB, command
    return asked


@pytest.mark.parametrize("name", STRUCTURES)
def test_another_structure_is_refused(name: str, path: Path, healthy: Healthy) -> None:
    STRUCTURES[name](path)

    asked = ask_within_limits(path, healthy)

    assert not {
        command: found[:3] for command, found in asked.items() if not is_refused(found, path)
    }


@pytest.mark.parametrize("name", CONTENTS)
def test_content_that_no_build_writes_is_refused_unless_the_answer_is_right(
    name: str, path: Path, healthy: Healthy
) -> None:
    CONTENTS[name](path)

    asked = ask_within_limits(path, healthy)

    assert not {
        command: found[:3]
        for command, found in asked.items()
        if not is_refused(found, path) and not is_right(found, healthy.asked[command])
    }
    assert is_refused(asked["verify"], path)


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_answered_or_refused(name: str, path: Path, healthy: Healthy) -> None:
    FORGERIES[name](path)

    asked = ask_within_limits(path, healthy)

    assert not {
        command: found[:3]
        for command, found in asked.items()
        if found.exit_code not in {0, NOT_FOUND} and not is_refused(found, path)
    }
