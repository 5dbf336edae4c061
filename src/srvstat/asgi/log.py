"""Write the log to standard error, one JSON object a line, and exchanges to a recording.

Threads write both, so that a slow disk or reader never delays an answer.
"""

import json
import logging
import threading
from collections.abc import Awaitable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from logging.handlers import QueueHandler, QueueListener
from queue import Queue
from typing import TypeVar

from srvstat.contract.errors import SrvstatError
from srvstat.contract.time import format_instant
from srvstat.files.paths import Candidate, WatchedFile
from srvstat.operations.key_filter import KeyFilter
from srvstat.support.recordings import RecordingFile, ServedExchange, encode_line

_MAX_LINES = 50_000
"""Lines that wait for a slow reader; further ones are lost."""
_MAX_EXCHANGES = 10_000
"""Exchanges that wait for a slow disk; further ones are lost."""
_SECONDS_TO_CLOSE = 1
_SECONDS_TO_RECORD = 5

_T = TypeVar("_T")


class Log:
    """Queue entries; a thread writes them."""

    def __init__(self) -> None:
        logging.raiseExceptions = False  # a report of a lost line would wait for the same reader
        lines: Queue[logging.LogRecord] = Queue(_MAX_LINES)
        self._queue = QueueHandler(lines)
        self._queue.setFormatter(_JsonFormatter())
        self._listener = QueueListener(lines, logging.StreamHandler())
        self._listener.start()

    def add_event(self, event: str, **fields: object) -> None:
        """Add an entry about something other than a request."""
        self.add({"event": event, **fields})

    def add(self, fields: Mapping[str, object]) -> None:
        """Add an entry; `time` is put first."""
        self._queue.handle(logging.makeLogRecord({"msg": fields}))

    def take_warnings(self) -> None:
        """Add the warnings of libraries, without tracebacks."""
        logging.getLogger().addHandler(self._queue)

    def close(self) -> None:
        """Write the remaining lines; give up after a second."""
        stop = threading.Thread(target=self._listener.stop, daemon=True)
        stop.start()
        stop.join(_SECONDS_TO_CLOSE)


async def adopt(
    file: WatchedFile, candidate: Candidate, reading: Awaitable[_T], log: Log, name: str
) -> _T | None:
    """Return the new content of a file of the service; None, after a log entry, if it is rejected.

    `reading` raises SrvstatError for content that can't be used.
    """
    try:
        content = await reading
    except SrvstatError as error:
        reason = error.reason
    except Exception as error:  # noqa: BLE001 - a bug must not stop the service
        reason = f"a bug in srvstat: {error!r}"
    else:
        file.accept(candidate)
        return content
    if file.reject(candidate, reason):
        log.add_event(f"new {name} rejected; the previous one stays in use", reason=reason)
    return None


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Encode an entry in ASCII, so that nothing sent by a client can control a terminal."""
        entry = record.msg if isinstance(record.msg, Mapping) else _describe_warning(record)
        return json.dumps({"time": format_instant(int(record.created * 1_000)), **entry})


def _describe_warning(record: logging.LogRecord) -> dict[str, object]:
    error = record.exc_info and record.exc_info[0]
    message = record.getMessage().strip() + (f" ({error.__name__})" if error else "")
    return {"event": "warning", "logger": record.name, "message": message}


class Recorder:
    """Queue the exchanges of the service; a thread appends them to a file for `srvstat replay`.

    An exchange that can't be written is lost and counted. The log has the first reason, and the
    number once writing works again or the service stops.

    Raises UsageError, OutputError if the file can't be used.
    """

    def __init__(self, path: str, log: Log) -> None:
        self._log = log
        self._file = RecordingFile(path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="srvstat-recorder")
        self._room = threading.Semaphore(_MAX_EXCHANGES)
        self._lost = 0
        self._refused = self._reported = 0

    def add(self, exchange: ServedExchange, key_filter: KeyFilter) -> None:
        """Add an exchange, without keys."""
        if self._room.acquire(blocking=False):
            self._thread.submit(self._write, encode_line(exchange, key_filter))
        else:
            self._refused += 1

    def close(self) -> None:
        """Write the remaining exchanges; give up after five seconds."""
        with suppress(TimeoutError):
            self._thread.submit(self._report_number).result(_SECONDS_TO_RECORD)

    def _write(self, line: bytes) -> None:
        loss = self._file.append([line])
        self._room.release()
        if loss is None:
            self._report_number()
            return
        if not self._lost:
            self._log.add_event("exchanges can't be recorded", reason=loss.reason)
        self._lost += loss.lines

    def _report_number(self) -> None:
        refused = self._refused  # the other thread adds to it
        if lost := self._lost + refused - self._reported:
            self._log.add_event("exchanges not recorded", exchanges=lost)
        self._lost, self._reported = 0, refused
