"""The log: one JSON object a line, on standard error. A slow reader of it holds up no answer."""

import asyncio
import json
import os
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from srvstat.contract.instants import format_instant

_STDERR = 2

_SECONDS_TOGETHER = 0.05
"""Lines of so much time are written with one call."""

_MOST_WAITING = 20_000
"""So many lines wait for a reader. What comes then is counted, and not kept."""


class Log:
    """Takes entries from the event loop and writes them in a thread of its own."""

    def __init__(self) -> None:
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="srvstat-log")
        self._lines: list[bytes] = []
        self._lost = 0
        self._timer: asyncio.TimerHandle | None = None
        self._writing: Future[None] | None = None

    def notice(self, event: str, **fields: object) -> None:
        """Tell of something other than a request."""
        self.entry({"event": event, **fields})

    def entry(self, fields: Mapping[str, object]) -> None:
        """Add an entry; `time` comes first."""
        if len(self._lines) >= _MOST_WAITING:
            self._lost += 1
            return
        self._lines.append(_line(fields))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_SECONDS_TOGETHER, self._write)

    def _write(self) -> None:
        self._timer = None
        if self._writing is not None and not self._writing.done():
            self._timer = asyncio.get_running_loop().call_later(_SECONDS_TOGETHER, self._write)
            return
        self._writing = self._writer.submit(_write_all, self._taken())

    def close(self) -> None:
        """Write what is left, unless nobody reads any more."""
        if self._timer is not None:
            self._timer.cancel()
        last = self._writer.submit(_write_all, self._taken())
        with suppress(TimeoutError):
            last.result(timeout=1)

    def _taken(self) -> bytes:
        if self._lost:
            self._lines.append(_line({"event": "log lines lost", "lines": self._lost}))
            self._lost = 0
        lines, self._lines = self._lines, []
        return b"".join(lines)


def _line(fields: Mapping[str, object]) -> bytes:
    """Write an entry in ASCII, so that nothing a client sends can drive a terminal."""
    entry: dict[str, Any] = {"time": format_instant(time.time_ns() // 1_000_000), **fields}
    return json.dumps(entry).encode("ascii") + b"\n"


def _write_all(data: bytes) -> None:
    # There is nobody to tell of a failure.
    with suppress(OSError):
        while data:
            data = data[os.write(_STDERR, data) :]
