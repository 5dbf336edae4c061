"""Replace the served snapshot under load, by other snapshots and by invalid files."""

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
from campaigns.service_questions import build_two_snapshots, count_descriptors, list_exchanges
from support import load_client
from support.load import Exchange, Load, deal, rotate
from support.process import Service, serve

FEW = 2
_SECONDS_EACH = 1.0
_CLIENTS = 16
_PAUSE = 0.02
"""Seconds between the requests of a client."""
_PAUSE_SHORT_FORM = 0.1
_MIN_DIFFERENT = 3
"""More than one in three requests has a different answer in each snapshot."""

_SERVED = ("new snapshot in use",)
_REJECTED = ("new snapshot rejected; the previous one stays in use",)


def run(seed: int, count: int) -> Result:
    """Replace the snapshot every second while clients query everything in it."""
    rng = Random(seed)
    with (
        build_two_snapshots() as snapshots,
        TemporaryDirectory(dir=MEMORY) as name,
        load_client.start_client() as client,
    ):
        path = Path(name, "served.db")
        shutil.copy(snapshots[0], path)
        both = [list_exchanges(snapshot, seed) for snapshot in snapshots]
        exchanges = [_merge_answers(*pair) for pair in zip(*both, strict=True)]
        assert sum(len({*one.bodies}) > 1 for one in exchanges) > len(exchanges) / _MIN_DIFFERENT
        turns = rotate(exchanges, _CLIENTS)
        with serve(path) as service:
            served = _ServedPath(path, snapshots, both, service)
            before = count_descriptors(service.process.pid)
            pause = _PAUSE if count > FEW else _PAUSE_SHORT_FORM
            asking = client(Load(service.port, turns, count * _SECONDS_EACH, pause=pause))
            for number in range(count):
                served.put_bad_file(rng) if number % 2 else served.put_snapshot()
            outcome = asking.result()
            after = _wait_for_descriptors(service, before)
    failures = [*outcome.list_failures(), *served.failures]
    if after != before:
        failures.append(f"{before} open files and sockets before, {after} after")
    counts = {"answers": outcome.answers, **served.counts, "open files and sockets": after or 0}
    return Result(count, counts, tuple(failures))


def _merge_answers(first: Exchange, second: Exchange) -> Exchange:
    """Return an exchange that accepts the complete answer of either snapshot."""
    assert (first.request, first.status) == (second.request, second.status)
    return first._replace(bodies=(*first.bodies, *second.bodies))


def _wait_for_descriptors(service: Service, expected: int | None) -> int | None:
    """Return the number of open files and sockets, after waiting up to 5 s for `expected`."""
    until = time.monotonic() + 5
    while (
        found := count_descriptors(service.process.pid)
    ) != expected and time.monotonic() < until:
        time.sleep(0.1)
    return found


class _ServedPath:
    """The served path; each file stays there for a second."""

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
        self._event_log = _EventLog(service)
        self.counts = Counter[str]()
        self.failures: list[str] = []

    def put_snapshot(self) -> None:
        """Put the other snapshot there; the service must serve it."""
        self._current = 1 - self._current
        snapshot = self._snapshots[self._current]
        self._put("snapshots", lambda draft: shutil.copy(snapshot, draft), _SERVED)

    def put_bad_file(self, rng: Random) -> None:
        """Put an invalid file there; the service must refuse it and log that once."""
        kind = rng.choice([*_BAD_FILES])
        # A flipped bit may be in a part that no answer reads.
        allowed = (*_SERVED, *_REJECTED) if kind == "damaged files" else _REJECTED
        snapshot = self._snapshots[self._current]
        self._put(kind, lambda draft: _BAD_FILES[kind](snapshot, draft, rng), allowed)

    def _put(self, kind: str, write: Callable[[Path], object], allowed: tuple[str, ...]) -> None:
        """Put a file there; within a second the service must log exactly one allowed event.

        After that, all answers must be from the latest snapshot.
        """
        self._event_log.read()
        began = time.monotonic()
        draft = self._path.with_suffix(".draft")
        write(draft)
        if draft.exists():
            os.replace(draft, self._path)
        else:
            self._path.unlink()
        _request_health(self._service)  # the service checks the file at each request
        self.counts[kind] += 1
        time.sleep(max(began + _SECONDS_EACH - time.monotonic(), 0))
        events = self._event_log.read()
        if len(events) != 1 or events[0]["event"] not in allowed:
            self.failures.append(f"{kind}, number {self.counts[kind]}: the log says {events}")
        turns = deal(self._answers[self._current], _CLIENTS)
        outcome = load_client.run_load(Load(self._service.port, turns, 10, is_repeated=False))
        self.failures += [f"after {kind}: {failure}" for failure in outcome.list_failures()]


class _EventLog:
    """The events in the log of a service, without its requests."""

    def __init__(self, service: Service) -> None:
        self._path, self._read = service.log_path, 0

    def read(self) -> list[dict[str, Any]]:
        """Return the events since the last call."""
        with self._path.open("rb") as log:
            log.seek(self._read)
            lines = log.read().splitlines(keepends=True)
        whole = [line for line in lines if line.endswith(b"\n")]
        self._read += sum(map(len, whole))
        return [json.loads(line) for line in whole if b'"event"' in line]


def _write_damaged(snapshot: Path, draft: Path, rng: Random) -> None:
    data = bytearray(snapshot.read_bytes())
    data[rng.randrange(100, len(data))] ^= 1 << rng.randrange(8)
    draft.write_bytes(data)


def _write_truncated(snapshot: Path, draft: Path, rng: Random) -> None:
    data = snapshot.read_bytes()
    draft.write_bytes(data[: rng.randrange(len(data))])


def _write_foreign(_snapshot: Path, draft: Path, _rng: Random) -> None:
    with closing(sqlite3.connect(draft)) as connection:
        connection.executescript("CREATE TABLE other (program TEXT); PRAGMA user_version = 7")


def _write_nothing(_snapshot: Path, _draft: Path, _rng: Random) -> None:
    """Write nothing: the path will not exist."""


_BAD_FILES: dict[str, Callable[[Path, Path, Random], None]] = {
    "damaged files": _write_damaged,
    "cut files": _write_truncated,
    "another program's files": _write_foreign,
    "missing files": _write_nothing,
}


def _request_health(service: Service) -> None:
    with closing(HTTPConnection("127.0.0.1", service.port)) as connection:
        connection.request("GET", "/healthz")
        connection.getresponse().read()


CAMPAIGN = Campaign(
    name="replacements",
    promise="while the snapshot is replaced, each answer is from one complete snapshot; an invalid"
    " file is logged once and changes nothing; no file stays open",
    run=run,
    short=FEW,
    long=120,
    unit="replacements",
)
