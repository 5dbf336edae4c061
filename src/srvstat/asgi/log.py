"""Write the log to standard error, one JSON object a line. A slow reader never delays an answer."""

import json
import logging
import math
import os
import select
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from srvstat.asgi.line_writer import LineWriter
from srvstat.contract.instants import format_instant

_STDERR = 2
_NEWLINE = ord("\n")

_SECONDS_BETWEEN_WARNINGS = 1.0


class Log:
    """Collect entries in the event loop; a separate thread writes them."""

    def __init__(self) -> None:
        self._writer = LineWriter("srvstat-log", _Output().write)

    def add_event(self, event: str, **fields: object) -> None:
        """Add an entry about something other than a request."""
        self.add({"event": event, **fields})

    def add(self, fields: Mapping[str, object]) -> None:
        """Add an entry; `time` is put first."""
        self._writer.add(_encode_line(fields))

    def close(self) -> None:
        """Write the remaining lines; give up after a second."""
        self._writer.close(seconds=1)


class _Output:
    """Write to standard error, only in the writer's thread, and count lost lines."""

    def __init__(self) -> None:
        self._lost = 0
        self._is_cut = False

    def write(self, lines: list[bytes], dropped: int) -> None:
        """Write lines; report the lost ones as soon as writing works again."""
        self._lost += dropped + self._write_lines(b"".join(lines))
        if self._lost and not self._is_cut:
            report = {"event": "log lines lost", "lines": self._lost}
            if self._write_lines(_encode_line(report)) == 0:
                self._lost = 0

    def _write_lines(self, lines: bytes) -> int:
        """Write lines and return how many were lost; first end a line that was cut before."""
        data = b"\n" + lines if self._is_cut else lines
        written = _write_bytes(data)
        if written:
            self._is_cut = data[written - 1] != _NEWLINE
        # A line that lacks only its newline is complete; the next call adds the newline.
        return data.count(b"\n", written + 1)


class WarningHandler(logging.Handler):
    """Add the warnings of libraries to the log, without tracebacks."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log
        self._last = ("", -math.inf)

    def emit(self, record: logging.LogRecord) -> None:
        """Add a warning, unless the same one was added within the last second."""
        error = record.exc_info and record.exc_info[0]
        text = record.getMessage().strip()
        last, added_at = self._last
        now = time.monotonic()
        if last == text and now < added_at + _SECONDS_BETWEEN_WARNINGS:
            return
        self._last = text, now
        message = f"{text} ({error.__name__})" if error else text
        with suppress(RuntimeError):  # outside of the event loop
            self._log.add_event("warning", logger=record.name, message=message)


def _encode_line(fields: Mapping[str, object]) -> bytes:
    """Encode an entry in ASCII, so that nothing sent by a client can control a terminal."""
    entry: dict[str, Any] = {"time": format_instant(time.time_ns() // 1_000_000), **fields}
    return json.dumps(entry).encode("ascii") + b"\n"


def _write_bytes(data: bytes) -> int:
    """Write as much as possible to standard error; return the number of bytes written."""
    rest = memoryview(data)
    try:
        while rest:
            try:
                rest = rest[os.write(_STDERR, rest) :]
            except BlockingIOError:  # another process made the shared descriptor non-blocking
                select.select((), (_STDERR,), ())
    except OSError:
        pass  # it can't be reported before writing works again
    return len(data) - len(rest)
