"""Open connections that send too little or too slowly, or never read, beside good clients."""

import json
import selectors
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

from campaigns.campaign import MEMORY, Campaign, Result
from campaigns.service_questions import allow_descriptors, answer_comparisons
from srvstat.asgi.connection import ANSWER_SECONDS, BODY_SECONDS, HEAD_SECONDS, IDLE_SECONDS
from srvstat.contract.ranges import DAYS
from srvstat.snapshot.write.build import build
from srvstat.sources.source import Source
from support import load_client
from support.http import compare, get
from support.load import Exchange, Load, rotate
from support.process import Service, serve
from support.records import AS_OF, DAY, csv, ndjson, server

FEW, MANY = 60, 1_000
_LONG_SECONDS = 120.0
_GOOD_CLIENTS = 8
_PAUSE = 0.05
"""Seconds between the requests of a good client."""
_PAUSE_SHORT_FORM = 0.5
_MAX_GOOD_MS = 100.0
"""Maximum number of milliseconds for 99 of 100 answers of good clients."""

_MAX_LATE = 1.0
"""Maximum number of seconds from its deadline to the end of a connection."""
_MAX_LATE_SHORT_FORM = 4.0
"""The same in the short form, which runs beside other tests."""
_MAX_EARLY = 0.05
_CONNECT_INTERVAL = 0.004
"""Seconds between new connections: the service has to answer the first request of some kinds."""
_NOT_READING_EVERY = 20
"""One in this many connections never reads."""
_TICK = 0.1

_HEAD = compare(b"x" * 1000).partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
_GET = get(b"long")
_LONG_TEXT = "x" * 900_000
"""A few answers of this length fill the system's buffers for a client that never reads."""


class _Kind(NamedTuple):
    """A kind of slow connection."""

    name: str
    first_bytes: bytes
    """Sent at once."""
    later_bytes: bytes
    """Sent one byte a second."""
    seconds: float
    """Deadline of the service."""
    reads: bool = True


_KINDS: tuple[_Kind, ...] = (
    _Kind("silent", b"", b"", HEAD_SECONDS),
    _Kind("trickling heads", b"GET /healthz", b"x" * 1000, HEAD_SECONDS),
    _Kind("trickling bodies", _HEAD, b"x" * 1000, BODY_SECONDS),
    _Kind("missing bodies", _HEAD, b"", BODY_SECONDS),
    _Kind("idle", get(b"a"), b"", IDLE_SECONDS),
    _Kind("not reading", _GET * 20, b"x" * 1000, ANSWER_SECONDS, reads=False),
)


class _Slow:
    """A slow connection."""

    def __init__(self, kind: _Kind, port: int) -> None:
        self.kind = kind
        self.socket = socket.socket()
        if not kind.reads:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setblocking(False)
        self.socket.sendall(kind.first_bytes)
        self.began = time.monotonic()
        self._sent_bytes = 0

    def has_ended(self, *, is_readable: bool) -> bool:
        """Send or read what is due; return whether the service has closed the connection."""
        try:
            if is_readable:
                if not self.socket.recv(1 << 16):
                    return True
                if self.kind.seconds == IDLE_SECONDS:
                    self.began = time.monotonic()  # the deadline counts from the answer
            seconds = time.monotonic() - self.began
            if self.kind.later_bytes and self._sent_bytes < self._count_due_bytes(seconds):
                self._sent_bytes += 1
                self.socket.send(b"x")
        except BlockingIOError:
            return False
        except OSError:
            return True
        return False

    def _count_due_bytes(self, seconds: float) -> float:
        """Return the number of bytes due by now.

        Connections that never read send more after the deadline, to notice that they are closed.
        """
        over = max(seconds - self.kind.seconds, 0)
        return seconds if self.kind.reads else seconds + over / _TICK


class _Crowd:
    """Slow connections of every kind at once; records when the service closes each."""

    def __init__(self, service: Service, number: int, until: float) -> None:
        self._service, self._until = service, until
        self._max_late = _MAX_LATE if number > FEW else _MAX_LATE_SHORT_FORM
        self._selector = selectors.DefaultSelector()
        self._open = set[_Slow]()
        self.ended = Counter[str]()
        self.failures: list[str] = []
        self.latest = 0.0
        # Only a few never read: each uses megabytes in the service.
        self._to_open = [
            _KINDS[-1] if place % _NOT_READING_EVERY == 0 else _KINDS[place % (len(_KINDS) - 1)]
            for place in range(number)
        ]

    def wait(self) -> None:
        """Wait until the service has closed all connections; until `until`, reopen closed ones."""
        while self._open or self._to_open:
            if self._to_open:
                self._open_connection(self._to_open.pop())
                time.sleep(_CONNECT_INTERVAL)
            seconds = 0 if self._to_open else _TICK
            readable = {key.data for key, _ in self._selector.select(seconds)}
            now = time.monotonic()
            for slow in list(self._open):
                if slow.has_ended(is_readable=slow in readable):
                    self._record_end(slow, now)
                elif now > slow.began + slow.kind.seconds + 5 * _MAX_LATE:
                    self.failures.append(f"{slow.kind.name}: not closed")
                    self._close(slow)

    def _open_connection(self, kind: _Kind) -> None:
        slow = _Slow(kind, self._service.port)
        self._open.add(slow)
        if kind.reads:
            self._selector.register(slow.socket, selectors.EVENT_READ, slow)

    def _record_end(self, slow: _Slow, now: float) -> None:
        late = now - slow.began - slow.kind.seconds
        self.latest = max(self.latest, late)
        if not -_MAX_EARLY <= late <= self._max_late:
            self.failures.append(f"{slow.kind.name}: closed {late:+.2f} s from its deadline")
        self.ended[slow.kind.name] += 1
        self._close(slow)
        if now + slow.kind.seconds < self._until:
            self._to_open.append(slow.kind)

    def _close(self, slow: _Slow) -> None:
        if slow.kind.reads:
            self._selector.unregister(slow.socket)
        slow.socket.close()
        self._open.remove(slow)


def run(seed: int, count: int) -> Result:
    """Open slow connections of each kind while good clients send requests.

    The short form opens each once; the long form reopens closed ones for two minutes.
    """
    seconds, pause = (_LONG_SECONDS, _PAUSE) if count > FEW else (ANSWER_SECONDS, _PAUSE_SHORT_FORM)
    with (
        allow_descriptors(2 * count),
        _build_snapshot() as snapshot,
        serve(snapshot, env={}) as service,
        load_client.start_client() as client,
    ):
        turns = rotate(_list_good_exchanges(snapshot, seed), _GOOD_CLIENTS)
        client(Load(service.port, turns, pause)).result()  # warm
        load = client(Load(service.port, turns, seconds, pause=pause))
        crowd = _Crowd(service, count, time.monotonic() + (seconds if count > FEW else 0))
        crowd.wait()
        good = load.result()
    failures = [*crowd.failures, *good.list_failures()]
    slowest = good.quantile(0.99)
    # The short form runs beside other tests, which make the machine slow at times.
    if count > FEW and slowest > _MAX_GOOD_MS:
        failures.append(f"99 of 100 good answers took up to {slowest:.0f} ms")
    counts = {
        **crowd.ended,
        "at most {} ms late": round(crowd.latest * 1000),
        "good answers": good.answers,
        "p99 of good answers {} ms": round(slowest),
    }
    return Result(count, counts, tuple(failures))


@contextmanager
def _build_snapshot() -> Iterator[Path]:
    """Build a snapshot of two plain servers and one with a very long description."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        servers, observations = Path(name, "servers.ndjson"), Path(name, "observations.csv")
        records = [server("a"), server("b"), server("long", projectDescription=_LONG_TEXT)]
        servers.write_bytes(ndjson(records))
        observations.write_bytes(csv([(one, AS_OF - DAY, 5) for one in "ab"]))
        path = Path(name, "served.db")
        build(
            str(path),
            servers_source=Source(str(servers), "ndjson"),
            observation_sources=[Source(str(observations), "csv")],
            as_of=AS_OF,
        )
        yield path


def _list_good_exchanges(snapshot: Path, seed: int) -> list[Exchange]:
    references = [{"identifier": name, "by": "id"} for name in "ab"]
    bodies = [json.dumps({"servers": references, "range": length}).encode() for length in DAYS]
    found = [*answer_comparisons(snapshot, bodies)]
    Random(seed).shuffle(found)
    return found


CAMPAIGN = Campaign(
    name="slow-clients",
    promise="a connection that sends too little in time, or never reads, is closed at its deadline"
    " and not before; other clients do not notice",
    run=run,
    short=FEW,
    long=MANY,
    unit="slow connections",
)
