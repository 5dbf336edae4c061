"""Hostile snapshots: refused or rightly answered, soon, in little memory, and never changed."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest

from campaigns.small_snapshots import PUBLISHED, build_small_snapshot
from snapshot.hostile import CONTENTS, FORGERIES, STRUCTURES

NOT_FOUND = 44
MOST_SECONDS = 1
MOST_MIB_MORE = 64
RSS_UNITS_A_MIB = 1 << 20 if sys.platform == "darwin" else 1 << 10

COMMANDS: Mapping[str, list[str]] = {
    "get": ["get", "uneven", "--json", "--snapshot"],
    "compare": ["compare", "busy", "wide", "uneven", "away", "daily", "--json", "--snapshot"],
    "year": ["compare", "once", "daily", "--range", "1y", "--json", "--snapshot"],
    "table": ["compare", "busy", "uneven", "--range", "1y", "--table", "--snapshot"],
    "info": ["snapshot", "info", "--json"],
    "verify": ["snapshot", "verify", "--json"],
}
_KNOWN = "|".join(PUBLISHED)
_OF_A_SERVER = "(day [0-9-]{10}|the (calendar|bands|days|observations))"
_PARTS = (
    "the (whole file|directory of identifiers|servers|calendars|bands|days|table [a-z]+)",
    "its (header|tables)",
    "the structure of the SQLite file",
    rf"({_OF_A_SERVER} of )?(a server|server ({_KNOWN}))",
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
"""All that may be said of a snapshot: fixed texts, and servers that the request could name."""

# The commands run in one process, one after the other. Its peak of memory only grows, so that it
# says of each command what it took at most.
MEASURE = """
import json, os, resource, sys, time
from srvstat.cli.main import main

resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
commands = json.load(sys.stdin)
asked = os.fdopen(os.dup(1), "w")
for command in commands:
    for number, name in ((1, "stdout"), (2, "stderr")):
        file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    started = time.process_time()
    exit_code = main(command)
    seconds = time.process_time() - started
    texts = [open(name, "rb").read(100_000) for name in ("stdout", "stderr")]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    shown = [text.decode("utf-8", "replace") for text in texts]
    print(json.dumps([exit_code, *shown, seconds, peak]), file=asked)
"""
# The peak of a process counts what its parent held when it started it, so a shell stands between.
BY_A_SHELL = ["sh", "-c", '"$@"; exit $?', "sh"]


class Asked(NamedTuple):
    """What a command ended with, and what it took: seconds of the processor, and memory."""

    exit_code: int
    stdout: str
    stderr: str
    seconds: float
    memory: int


def ask_all(path: Path, work: Path) -> dict[str, Asked]:
    commands = [[*command, str(path)] for command in COMMANDS.values()]
    done = subprocess.run(
        [*BY_A_SHELL, sys.executable, "-c", MEASURE],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        cwd=work,
        timeout=120,
        check=True,
    )
    found = [Asked(*json.loads(line)) for line in done.stdout.splitlines()]
    return dict(zip(COMMANDS, found, strict=True))


class Healthy(NamedTuple):
    """A snapshot that nothing was done to, and what the commands say of it."""

    path: Path
    asked: Mapping[str, Asked]


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Healthy:
    directory = tmp_path_factory.mktemp("healthy")
    path = build_small_snapshot(directory / "built", seed=1)
    return Healthy(path, ask_all(path, directory))


@pytest.fixture
def path(healthy: Healthy, tmp_path: Path) -> Iterator[Path]:
    """Return a copy of the healthy snapshot, alone in a directory."""
    directory = tmp_path / "here"
    directory.mkdir()
    path = directory / "snapshot.db"
    shutil.copy(healthy.path, path)
    yield path
    shutil.rmtree(directory)  # some are large


def content(directory: Path) -> dict[str, str]:
    return {each.name: sha256(each.read_bytes()).hexdigest() for each in directory.iterdir()}


def is_refused(asked: Asked, path: Path) -> bool:
    """Say whether the command refused the snapshot, with one line that holds nothing of it."""
    if asked.exit_code != 3 or asked.stdout:
        return False
    before, _, reason = asked.stderr.partition(f"error: {path}: ")
    return not before and REASON.fullmatch(reason.removesuffix("\n")) is not None


def is_right(asked: Asked, of_healthy: Asked) -> bool:
    return asked[:3] == of_healthy[:3]


def test_a_healthy_snapshot_is_answered_and_not_changed(healthy: Healthy, path: Path) -> None:
    before = content(path.parent)

    asked = ask_all(path, path.parent.parent)

    assert content(path.parent) == before
    for command, found in asked.items():
        assert found.exit_code == 0
        assert is_right(found, healthy.asked[command])


def ask_and_look(path: Path, healthy: Healthy) -> dict[str, Asked]:
    """Ask everything and check what holds of every snapshot, whatever the answers."""
    before = content(path.parent)
    asked = ask_all(path, path.parent.parent)
    assert content(path.parent) == before
    for command, found in asked.items():
        assert found.seconds < MOST_SECONDS, command
        more = found.memory - healthy.asked[command].memory
        assert more / RSS_UNITS_A_MIB < MOST_MIB_MORE, command
    return asked


@pytest.mark.parametrize("name", STRUCTURES)
def test_another_structure_than_ours_is_refused(name: str, path: Path, healthy: Healthy) -> None:
    STRUCTURES[name](path)

    asked = ask_and_look(path, healthy)

    assert not {
        command: found[:3] for command, found in asked.items() if not is_refused(found, path)
    }


@pytest.mark.parametrize("name", CONTENTS)
def test_content_that_no_build_writes_gives_a_right_answer_or_an_error(
    name: str, path: Path, healthy: Healthy
) -> None:
    CONTENTS[name](path)

    asked = ask_and_look(path, healthy)

    assert not {
        command: found[:3]
        for command, found in asked.items()
        if not is_refused(found, path) and not is_right(found, healthy.asked[command])
    }
    assert is_refused(asked["verify"], path)


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_ends_well_whatever_it_says(name: str, path: Path, healthy: Healthy) -> None:
    FORGERIES[name](path)

    asked = ask_and_look(path, healthy)

    assert not {
        command: found[:3]
        for command, found in asked.items()
        if found.exit_code not in {0, NOT_FOUND} and not is_refused(found, path)
    }
