"""Snapshots that take each other's place under load, and now and then a file that is none."""

import json
import os
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from campaigns.build_directory import MEMORY
from campaigns.campaign import Campaign, Result
from campaigns.service_questions import descriptors, exchanges, two_snapshots
from support import clients
from support.loads import Exchange, Load, dealt, rotated
from support.serving import Service, serving

_SECONDS_EACH = 1.0
_CLIENTS = 16
_TELLING = 3
"""More than one of so many requests have two answers; the others are the same in both snapshots."""

_TAKEN_UP = ("a new snapshot is served",)
_REFUSED = ("a new snapshot is refused; the old one goes on",)


def run(seed: int, count: int) -> Result:
    """Replace the snapshot every second, while clients ask about everything in it."""
    draw = Random(seed)
    with (
        two_snapshots() as snapshots,
        TemporaryDirectory(dir=MEMORY) as name,
        clients.client() as client,
    ):
        path = Path(name, "served.db")
        shutil.copy(snapshots[0], path)
        both = [exchanges(snapshot, seed) for snapshot in snapshots]
        asked = [_either(*pair) for pair in zip(*both, strict=True)]
        assert sum(len({*one.bodies}) > 1 for one in asked) > len(asked) / _TELLING
        turns = rotated(asked, _CLIENTS)
        with serving(path) as service:
            place = _Place(path, snapshots, both, service)
            before = descriptors(service.process.pid)
            asking = client(Load(service.port, turns, count * _SECONDS_EACH))
            for number in range(count):
                place.put_a_bad_file(draw) if number % 2 else place.put_a_snapshot()
            outcome = asking.result()
            after = _settled_descriptors(service, before)
    failures = [*outcome.failures(), *place.failures]
    if after != before:
        failures.append(f"{before} open files and sockets before, {after} after")
    counts = {"answers": outcome.answers, **place.counts, "open files and sockets": after or 0}
    return Result(count, counts, tuple(failures))


def _either(first: Exchange, second: Exchange) -> Exchange:
    """Let an answer be that of the one snapshot or that of the other, whole."""
    assert (first.request, first.status) == (second.request, second.status)
    return first._replace(bodies=(*first.bodies, *second.bodies))


def _settled_descriptors(service: Service, expected: int | None) -> int | None:
    """Return how many files and sockets are open once the last requests are forgotten."""
    until = time.monotonic() + 5
    while (found := descriptors(service.process.pid)) != expected and time.monotonic() < until:
        time.sleep(0.1)
    return found


class _Place:
    """The path that is served, and what was put there; each file has a second."""

    def __init__(
        self,
        path: Path,
        snapshots: tuple[Path, Path],
        answers: Sequence[Sequence[Exchange]],
        service: Service,
    ) -> None:
        self._path, self._snapshots, self._answers = path, snapshots, answers
        self._service = service
        self._current = 0
        self._notices = _Notices(service)
        self.counts = Counter[str]()
        self.failures: list[str] = []

    def put_a_snapshot(self) -> None:
        """Put the other snapshot there, which must be taken up."""
        self._current = 1 - self._current
        snapshot = self._snapshots[self._current]
        self._put("snapshots", lambda draft: shutil.copy(snapshot, draft), _TAKEN_UP)

    def put_a_bad_file(self, draw: Random) -> None:
        """Put something else there, which must be refused, and told of once."""
        kind = draw.choice([*_BAD_FILES])
        # A single bit may lie where no answer reads.
        allowed = (*_TAKEN_UP, *_REFUSED) if kind == "damaged files" else _REFUSED
        snapshot = self._snapshots[self._current]
        self._put(kind, lambda draft: _BAD_FILES[kind](snapshot, draft, draw), allowed)

    def _put(self, kind: str, write: Callable[[Path], object], allowed: tuple[str, ...]) -> None:
        """Put a file there; within the second the service says of it one thing, and once.

        Then all its answers are those of the snapshot that came last.
        """
        self._notices.read()
        began = time.monotonic()
        draft = self._path.with_suffix(".draft")
        write(draft)
        if draft.exists():
            os.replace(draft, self._path)
        else:
            self._path.unlink()
        _ask_for_health(self._service)  # the file is looked at with each request
        self.counts[kind] += 1
        time.sleep(max(began + _SECONDS_EACH - time.monotonic(), 0))
        told = self._notices.read()
        if len(told) != 1 or told[0]["event"] not in allowed:
            self.failures.append(f"{kind}, number {self.counts[kind]}: the log says {told}")
        turns = dealt(self._answers[self._current], _CLIENTS)
        outcome = clients.ask(Load(self._service.port, turns, 10, is_repeated=False))
        self.failures += [f"after {kind}: {failure}" for failure in outcome.failures()]


class _Notices:
    """What the log of a service says besides its requests."""

    def __init__(self, service: Service) -> None:
        self._path, self._read = service.log_path, 0

    def read(self) -> list[dict[str, Any]]:
        """Return what was added since the last time."""
        with self._path.open("rb") as log:
            log.seek(self._read)
            lines = log.read().splitlines(keepends=True)
        whole = [line for line in lines if line.endswith(b"\n")]
        self._read += sum(map(len, whole))
        return [json.loads(line) for line in whole if b'"event"' in line]


def _damaged(snapshot: Path, draft: Path, draw: Random) -> None:
    data = bytearray(snapshot.read_bytes())
    data[draw.randrange(100, len(data))] ^= 1 << draw.randrange(8)
    draft.write_bytes(data)


def _cut(snapshot: Path, draft: Path, draw: Random) -> None:
    data = snapshot.read_bytes()
    draft.write_bytes(data[: draw.randrange(len(data))])


def _foreign(_snapshot: Path, draft: Path, _draw: Random) -> None:
    with closing(sqlite3.connect(draft)) as connection:
        connection.executescript("CREATE TABLE other (program TEXT); PRAGMA user_version = 7")


def _missing(_snapshot: Path, _draft: Path, _draw: Random) -> None:
    """Write nothing: the path will have no file."""


_BAD_FILES: dict[str, Callable[[Path, Path, Random], None]] = {
    "damaged files": _damaged,
    "cut files": _cut,
    "another program's files": _foreign,
    "missing files": _missing,
}


def _ask_for_health(service: Service) -> None:
    with closing(HTTPConnection("127.0.0.1", service.port)) as connection:
        connection.request("GET", "/healthz")
        connection.getresponse().read()


CAMPAIGN = Campaign(
    name="replacements",
    promise="while snapshots and other files take each other's place, each answer is of one"
    " snapshot as a whole; what is no snapshot is told of once and changes nothing; no file stays"
    " open",
    run=run,
    short=10,
    long=120,
    unit="replacements",
)
