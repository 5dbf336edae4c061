"""The log: one JSON object a line, on standard error. A slow reader of it holds up no answer."""

import asyncio
import json
import os
import select
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from srvstat.contract.instants import format_instant

_STDERR = 2
_NEWLINE = ord("\n")

_SECONDS_TOGETHER = 0.05
"""Lines of so much time are written with one call."""

_MOST_WAITING = 16 << 20
"""So many bytes wait for a reader. Entries that come then are counted, and not kept."""


class Log:
    """Takes entries from the event loop and writes them in a thread of its own."""

    def __init__(self) -> None:
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="srvstat-log")
        self._output = _Output()
        self._lines: list[bytes] = []
        self._waiting = 0
        self._with_writer = 0
        self._lost = 0
        self._timer: asyncio.TimerHandle | None = None
        self._writing: Future[None] | None = None

    def notice(self, event: str, **fields: object) -> None:
        """Tell of something other than a request."""
        self.entry({"event": event, **fields})

    def entry(self, fields: Mapping[str, object]) -> None:
        """Add an entry; `time` comes first."""
        if self._waiting + self._with_writer < _MOST_WAITING:
            line = _line(fields)
            self._lines.append(line)
            self._waiting += len(line)
        else:
            self._lost += 1
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_SECONDS_TOGETHER, self._write)

    def _write(self) -> None:
        self._timer = None
        if self._writing is not None and not self._writing.done():
            self._timer = asyncio.get_running_loop().call_later(_SECONDS_TOGETHER, self._write)
            return
        self._writing = self._handed_over()

    def close(self) -> None:
        """Write what is left, unless nobody reads any more."""
        if self._timer is not None:
            self._timer.cancel()
        with suppress(TimeoutError):
            self._handed_over().result(timeout=1)

    def _handed_over(self) -> Future[None]:
        lines, self._lines = self._lines, []
        lost, self._lost = self._lost, 0
        self._with_writer, self._waiting = self._waiting, 0
        return self._writer.submit(self._output.write, lines, lost)


class _Output:
    """Standard error, as the writer's thread knows it: what did not get there is counted."""

    def __init__(self) -> None:
        self._lost = 0
        self._cut = False

    def write(self, lines: list[bytes], lost: int) -> None:
        """Write lines; once that works, tell of those that were lost since it last did."""
        self._lost += lost + self._put(b"".join(lines))
        if self._lost and not self._cut:
            told = {"event": "log lines lost", "lines": self._lost}
            if self._put(_line(told)) == 0:
                self._lost = 0

    def _put(self, lines: bytes) -> int:
        """Write lines, the first of them not onto one that was cut; return how many are lost."""
        data = b"\n" + lines if self._cut else lines
        written = _written(data)
        if written:
            self._cut = data[written - 1] != _NEWLINE
        # A line that lacks its end alone is whole: the next one brings the end.
        return data.count(b"\n", written + 1)


def _line(fields: Mapping[str, object]) -> bytes:
    """Write an entry in ASCII, so that nothing a client sends can drive a terminal."""
    entry: dict[str, Any] = {"time": format_instant(time.time_ns() // 1_000_000), **fields}
    return json.dumps(entry).encode("ascii") + b"\n"


def _written(data: bytes) -> int:
    """Write as much as can be written, and return how many bytes that is."""
    rest = memoryview(data)
    try:
        while rest:
            try:
                rest = rest[os.write(_STDERR, rest) :]
            except BlockingIOError:  # whoever shares the file description has made it so
                select.select((), (_STDERR,), ())
    except OSError:
        pass  # there is nobody to tell of it before it works again
    return len(data) - len(rest)
