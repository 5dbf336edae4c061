"""The requests of a load client, and their outcome."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, islice
from typing import NamedTuple

MAX_REPORTED = 50
"""Limit of the wrong answers that are reported one by one."""


class Exchange(NamedTuple):
    """A request as bytes, and its correct answers."""

    request: bytes
    status: int = 200
    bodies: tuple[bytes, ...] = ()
    """The correct bodies; if empty, any body is correct."""

    @property
    def name(self) -> str:
        """The request line and the body, to identify the request in a report."""
        head, _, body = self.request.partition(b"\r\n\r\n")
        line, _, _ = head.partition(b"\r\n")
        return f"{line!r} {body[:400]!r}" if body else repr(line[:400])

    def find_problem(self, status: int, body: bytes) -> str | None:
        """Describe what is wrong with an answer; None if it is correct."""
        if status != self.status:
            return f"status {status}, not {self.status}: {body[:200]!r}"
        if self.bodies and body not in self.bodies:
            return f"other bytes: {body[:400]!r}"
        return None


class Load(NamedTuple):
    """The requests for a server."""

    port: int
    turns: Sequence[Sequence[Exchange]]
    """The requests of each connection, in order."""
    seconds: float
    """Requests start within this time."""
    is_repeated: bool = True
    """Repeat a connection's requests; otherwise close it after the last one."""
    pause: float = 0.0
    """Seconds between the due times of a connection's requests.

    Without a pause, a request is due once the previous one is answered.
    """
    first: Exchange | None = None
    """A request of each connection before the time starts, to open it."""


class Cut(NamedTuple):
    """A connection that was closed while a request was pending."""

    name: str
    sent_at: float
    """In seconds of time.monotonic, which all processes of a machine share."""
    received: bytes
    """The part of the answer that arrived."""
    idle: float | None = None
    """Seconds from the previous answer on the connection to the request; None without one."""


class Outcome(NamedTuple):
    """The outcome of a load."""

    answers: int
    """Correct and wrong answers."""
    seconds: float
    """From the first request to the last answer."""
    latencies: Sequence[float]
    """Seconds from the due time of each request to its complete answer.

    They include the wait for the previous answer.
    """
    statuses: Counter[int]
    wrong: Sequence[str]
    """The first answers that were wrong or not HTTP."""
    wrong_count: int
    cuts: Sequence[Cut]
    refused: int
    """Connections that the server refused."""
    reopened: int
    """Connections that the server closed between two requests."""
    busy: float
    """The share of its core that the client used; near 1, the client is the bottleneck."""
    most_between: int
    """The most answers to other requests between a request and its answer."""

    @property
    def rate(self) -> float:
        """Answers per second."""
        return self.answers / self.seconds

    def quantile(self, part: float) -> float:
        """Return the milliseconds within which this share of the answers arrived."""
        ranked = sorted(self.latencies)
        return ranked[min(int(len(ranked) * part), len(ranked) - 1)] * 1_000

    def list_failures(self) -> list[str]:
        """Describe every request without a correct answer."""
        found = list(self.wrong)
        if self.wrong_count > len(found):
            found.append(f"and {self.wrong_count - len(found):,} other wrong answers")
        found += [
            f"{cut.name}: closed after {len(cut.received)} bytes of an answer"
            for cut in self.cuts[:MAX_REPORTED]
        ]
        if self.refused:
            found.append(f"{self.refused} connections were refused")
        return found


def rotate(exchanges: Sequence[Exchange], connections: int) -> list[list[Exchange]]:
    """Give every connection all exchanges, each with a different first one."""
    step = max(len(exchanges) // connections, 1)
    starts = [place * step % len(exchanges) for place in range(connections)]
    return [[*islice(chain(exchanges[start:], exchanges), len(exchanges))] for start in starts]
