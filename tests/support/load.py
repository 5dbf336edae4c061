"""A load client: many connections to one server on loopback, each with one request at a time."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle, repeat
from typing import NamedTuple


class Exchange(NamedTuple):
    """A request as bytes, and its correct answer."""

    request: bytes
    status: int
    body: bytes

    def find_problem(self, status: int, body: bytes) -> str | None:
        """Describe what is wrong with an answer; None if it is correct."""
        if (status, body) == (self.status, self.body):
            return None
        return f"{self.request[:400]!r}: status {status}, {body[:400]!r}"


@dataclass
class Outcome:
    """The outcome of a load."""

    answers: int = 0
    failures: list[str] = field(default_factory=list)
    most_between: int = 0
    """The most answers to other requests between a request and its answer."""


def run_load(
    port: int,
    turns: Sequence[Sequence[Exchange]],
    seconds: float,
    *,
    pause: float = 0.0,
    grace: float = float("inf"),
) -> Outcome:
    """Repeat the exchanges of each connection for some seconds, with a pause between them.

    A server may close a connection that was idle for `grace` seconds at the moment of a request.
    """
    return asyncio.run(_Run(port, pause, grace).run(turns, seconds))


def rotate(exchanges: Sequence[Exchange], connections: int) -> list[list[Exchange]]:
    """Give every connection all exchanges, each with a different first one."""
    starts = [number % len(exchanges) for number in range(connections)]
    return [[*exchanges[start:], *exchanges[:start]] for start in starts]


class _Run:
    def __init__(self, port: int, pause: float, grace: float) -> None:
        self._port = port
        self._pause = pause
        self._grace = grace
        self._outcome = Outcome()

    async def run(self, turns: Sequence[Sequence[Exchange]], seconds: float) -> Outcome:
        opened = [await self._open() for _ in turns]
        end = time.monotonic() + seconds
        await asyncio.gather(*map(self._keep_asking, opened, map(cycle, turns), repeat(end)))
        return self._outcome

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._port)

    async def _keep_asking(
        self,
        opened: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        turn: Iterator[Exchange],
        end: float,
    ) -> None:
        reader, writer = opened
        answered_at, is_last = time.monotonic(), False
        while time.monotonic() < end:
            if is_last or reader.at_eof():
                writer.close()
                reader, writer = await self._open()
            exchange, before = next(turn), self._outcome.answers
            idle = time.monotonic() - answered_at
            is_last = b"\r\nConnection: close" in exchange.request
            try:
                writer.write(exchange.request)
                problem = exchange.find_problem(*await _read_answer(reader, exchange))
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                # HTTP/1.1 can't prevent that a request and the end of its idle connection cross.
                is_cut = bool(getattr(error, "partial", b"")) or idle < self._grace
                problem = f"{exchange.request[:400]!r}: {error!r}" if is_cut else None
                reader, writer = await self._open()
            self._outcome.most_between = max(
                self._outcome.most_between, self._outcome.answers - before
            )
            self._outcome.answers += 1
            self._outcome.failures += [problem] if problem else []
            answered_at = time.monotonic()
            await asyncio.sleep(self._pause)
        writer.close()


async def _read_answer(reader: asyncio.StreamReader, exchange: Exchange) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    status, _, fields = head.partition(b"\r\n")
    has_body = not exchange.request.startswith(b"HEAD ")
    length = fields.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
    body = await reader.readexactly(int(length)) if has_body else b""
    return int(status.split()[1]), body
