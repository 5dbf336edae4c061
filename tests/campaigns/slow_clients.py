"""Connections that say nothing, too little or too slowly, or never listen, beside good clients."""

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

from campaigns.build_directory import MEMORY
from campaigns.campaign import Campaign, Result
from campaigns.service_questions import COMPARE, SERVERS, comparisons, many_descriptors
from conftest import AS_OF, DAY, csv, ndjson, server
from srvstat.asgi.connection import ANSWER_SECONDS, BODY_SECONDS, HEAD_SECONDS, IDLE_SECONDS
from srvstat.contract.ranges import DAYS
from srvstat.snapshot.write.build import build
from srvstat.sources.source import Source
from support import clients
from support.loads import Exchange, Load, request, rotated
from support.serving import Service, serving

FEW, MANY = 200, 1_000
_LONG_SECONDS = 120.0
_GOOD = 8
_PAUSE = 0.05
"""Seconds between the requests of a good client."""
_SLOWEST_GOOD = 100.0
"""Milliseconds within which 99 of 100 of their answers must come."""

_LATE = 1.0
"""Seconds after its deadline in which a connection must end."""
_LATE_BESIDE_OTHERS = 4.0
"""The same where other tests run beside this one."""
_EARLY = 0.05
_APART = 0.004
"""Seconds between connections: the service has to answer some of them before they are slow."""
_DEAF = 20
"""One of so many is deaf."""
_TICK = 0.1

_HEAD = request(COMPARE, method="POST", body=b"x" * 1000).partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
_GET = request(f"{SERVERS}/long")
_LONG = "x" * 900_000
"""Few answers of this length fill what the system keeps for whoever does not read."""


class _Kind(NamedTuple):
    """One way to be slow."""

    name: str
    says: bytes
    """At once."""
    trickles: bytes
    """A byte each second."""
    seconds: float
    """After which the service ends the connection."""
    listens: bool = True


_KINDS: tuple[_Kind, ...] = (
    _Kind("silent", b"", b"", HEAD_SECONDS),
    _Kind("trickling heads", b"GET /healthz", b"x" * 1000, HEAD_SECONDS),
    _Kind("trickling bodies", _HEAD, b"x" * 1000, BODY_SECONDS),
    _Kind("without a body", _HEAD, b"", BODY_SECONDS),
    _Kind("idle", request(f"{SERVERS}/a"), b"", IDLE_SECONDS),
    _Kind("deaf", _GET * 20, b"x" * 1000, ANSWER_SECONDS, listens=False),
)


class _Slow:
    """A slow connection."""

    def __init__(self, kind: _Kind, port: int) -> None:
        self.kind = kind
        self.socket = socket.socket()
        if not kind.listens:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setblocking(False)
        self.socket.sendall(kind.says)
        self.began = time.monotonic()
        self._said = 0

    def has_ended(self, *, is_readable: bool) -> bool:
        """Say or hear something, where it is time to, and tell whether the service has ended it."""
        try:
            if is_readable:
                if not self.socket.recv(1 << 16):
                    return True
                if self.kind.seconds == IDLE_SECONDS:
                    self.began = time.monotonic()  # with the answer
            seconds = time.monotonic() - self.began
            if self.kind.trickles and self._said < self._due(seconds):
                self._said += 1
                self.socket.send(b"x")
        except BlockingIOError:
            return False
        except OSError:
            return True
        return False

    def _due(self, seconds: float) -> float:
        """Return how many bytes it should have said; the deaf say more to notice their end."""
        over = max(seconds - self.kind.seconds, 0)
        return seconds if self.kind.listens else seconds + over / _TICK


class _Crowd:
    """Slow connections of every kind at once, and when the service ended each."""

    def __init__(self, service: Service, number: int, until: float) -> None:
        self._service, self._until = service, until
        self._most_late = _LATE if number > FEW else _LATE_BESIDE_OTHERS
        self._selector = selectors.DefaultSelector()
        self._open = set[_Slow]()
        self.ended = Counter[str]()
        self.failures: list[str] = []
        self.latest = 0.0
        # Few are deaf: each holds megabytes of the service.
        self._to_begin = [
            _KINDS[-1] if place % _DEAF == 0 else _KINDS[place % (len(_KINDS) - 1)]
            for place in range(number)
        ]

    def wait(self) -> None:
        """Wait until the service has ended all of them; while there is time, others follow."""
        while self._open or self._to_begin:
            if self._to_begin:
                self._begin(self._to_begin.pop())
                time.sleep(_APART)
            seconds = 0 if self._to_begin else _TICK
            readable = {key.data for key, _ in self._selector.select(seconds)}
            now = time.monotonic()
            for slow in list(self._open):
                if slow.has_ended(is_readable=slow in readable):
                    self._end(slow, now)
                elif now > slow.began + slow.kind.seconds + 5 * _LATE:
                    self.failures.append(f"{slow.kind.name}: does not end")
                    self._close(slow)

    def _begin(self, kind: _Kind) -> None:
        slow = _Slow(kind, self._service.port)
        self._open.add(slow)
        if kind.listens:
            self._selector.register(slow.socket, selectors.EVENT_READ, slow)

    def _end(self, slow: _Slow, now: float) -> None:
        late = now - slow.began - slow.kind.seconds
        self.latest = max(self.latest, late)
        if not -_EARLY <= late <= self._most_late:
            self.failures.append(f"{slow.kind.name}: ended {late:+.2f} s from its deadline")
        self.ended[slow.kind.name] += 1
        self._close(slow)
        if now + slow.kind.seconds < self._until:
            self._to_begin.append(slow.kind)

    def _close(self, slow: _Slow) -> None:
        if slow.kind.listens:
            self._selector.unregister(slow.socket)
        slow.socket.close()
        self._open.remove(slow)


def run(seed: int, count: int) -> Result:
    """Open slow connections, each kind of them, while good clients ask.

    Few are opened once; many are followed by others for two minutes.
    """
    seconds = ANSWER_SECONDS if count <= FEW else _LONG_SECONDS
    with (
        many_descriptors(2 * count),
        _snapshot() as snapshot,
        serving(snapshot) as service,
        clients.client() as client,
    ):
        turns = rotated(_good(snapshot, seed), _GOOD)
        client(Load(service.port, turns, 0.5)).result()  # warm
        asked = client(Load(service.port, turns, seconds, pause=_PAUSE))
        crowd = _Crowd(service, count, time.monotonic() + (seconds if count > FEW else 0))
        crowd.wait()
        good = asked.result()
    failures = [*crowd.failures, *good.failures()]
    slowest = good.quantile(0.99)
    # Beside other tests a machine has slow seconds of its own.
    if count > FEW and slowest > _SLOWEST_GOOD:
        failures.append(f"99 of 100 good answers took up to {slowest:.0f} ms")
    counts = {
        **crowd.ended,
        "milliseconds late at most": round(crowd.latest * 1000),
        "good answers": good.answers,
        "milliseconds for 99 of 100 of these": round(slowest),
    }
    return Result(count, counts, tuple(failures))


@contextmanager
def _snapshot() -> Iterator[Path]:
    """Build a snapshot of two servers, and of one with a very long description."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        servers, observations = Path(name, "servers.ndjson"), Path(name, "observations.csv")
        records = [server("a"), server("b"), server("long", projectDescription=_LONG)]
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


def _good(snapshot: Path, seed: int) -> list[Exchange]:
    references = [{"identifier": name, "by": "id"} for name in "ab"]
    bodies = [json.dumps({"servers": references, "range": length}).encode() for length in DAYS]
    found = [*comparisons(snapshot, bodies)]
    Random(seed).shuffle(found)
    return found


CAMPAIGN = Campaign(
    name="slow-clients",
    promise="a connection that says too little in time, or never listens, ends at its deadline, and"
    " not before; others are answered as ever",
    run=run,
    short=FEW,
    long=MANY,
    unit="slow connections",
)
