"""What a load client asks a server, and what it finds."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, islice
from typing import NamedTuple

MOST_TOLD = 50
"""So many wrong answers are told one by one."""


class Exchange(NamedTuple):
    """A request as its bytes, and the answers to it that are right."""

    request: bytes
    status: int = 200
    bodies: tuple[bytes, ...] = ()
    """Each is a right one; without any, every body is."""

    @property
    def name(self) -> str:
        """The request line and the body, by which a request is found again."""
        head, _, body = self.request.partition(b"\r\n\r\n")
        line, _, _ = head.partition(b"\r\n")
        return f"{line!r} {body[:400]!r}" if body else repr(line[:400])

    def wrong_with(self, status: int, body: bytes) -> str | None:
        """Say what is wrong with an answer; None if nothing is."""
        if status != self.status:
            return f"status {status}, not {self.status}: {body[:200]!r}"
        if self.bodies and body not in self.bodies:
            return f"other bytes: {body[:400]!r}"
        return None


class Load(NamedTuple):
    """What is asked of a server."""

    port: int
    turns: Sequence[Sequence[Exchange]]
    """What each connection asks, one after another."""
    seconds: float
    """No request begins after this time."""
    is_repeated: bool = True
    """Begin a turn again where it ends; otherwise the connection ends with it."""
    pause: float = 0.0
    """Seconds from the moment a connection's request is due to the moment its next one is.

    Without a pause, the next one is due once the one before is answered.
    """
    first: Exchange | None = None
    """What each connection asks before the time begins, so that it is open by then."""


class Cut(NamedTuple):
    """A connection that ended while a request was under way."""

    name: str
    sent_at: float
    """By time.monotonic, which all processes of a machine share."""
    received: bytes
    """The part of an answer that had come."""


class Outcome(NamedTuple):
    """What became of a load."""

    answers: int
    """Right and wrong ones."""
    seconds: float
    """From the first request to the last answer."""
    latencies: Sequence[float]
    """Seconds from the moment a request was due to its whole answer.

    A request that had to wait for the answer before it counts its waiting, too.
    """
    statuses: Counter[int]
    wrong: Sequence[str]
    """The first answers that were not right, or not HTTP."""
    wrong_count: int
    cuts: Sequence[Cut]
    refused: int
    """Connections that ended because the server took no more."""
    reopened: int
    """Connections that the server had closed between two requests."""
    busy: float
    """The part of its core that the client used; near 1 the figures are the client's own."""
    most_between: int
    """Answers to other requests between a request and its answer, at most."""

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.answers / self.seconds

    def quantile(self, part: float) -> float:
        """Return the milliseconds within which this part of the answers had come."""
        ranked = sorted(self.latencies)
        return ranked[min(int(len(ranked) * part), len(ranked) - 1)] * 1_000

    def failures(self) -> list[str]:
        """Return everything that is not a right answer, where each request should have one."""
        found = list(self.wrong)
        if self.wrong_count > len(found):
            found.append(f"and {self.wrong_count - len(found):,} other wrong answers")
        found += [
            f"{cut.name}: closed after {len(cut.received)} bytes of an answer"
            for cut in self.cuts[:MOST_TOLD]
        ]
        if self.refused:
            found.append(f"{self.refused} connections were refused")
        return found


def request(target: str, *, method: str = "GET", body: bytes | None = None) -> bytes:
    """Return a request as its bytes, with a key."""
    head = f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Gateway-Key: a-key\r\n"
    if body is None:
        return f"{head}\r\n".encode("ascii")
    length = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return (head + length).encode("ascii") + body


def dealt(exchanges: Sequence[Exchange], connections: int) -> list[list[Exchange]]:
    """Deal each exchange to one connection, as cards are dealt."""
    return [list(islice(exchanges, place, None, connections)) for place in range(connections)]


def rotated(exchanges: Sequence[Exchange], connections: int) -> list[list[Exchange]]:
    """Give all exchanges to each connection, each beginning with another one."""
    step = max(len(exchanges) // connections, 1)
    starts = [place * step % len(exchanges) for place in range(connections)]
    return [[*islice(chain(exchanges[start:], exchanges), len(exchanges))] for start in starts]
