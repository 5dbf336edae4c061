"""Write the log to standard error, one line per request, and exchanges to a recording.

Threads write both, so that a slow disk or reader never delays a response.
"""

import asyncio
import base64
import fcntl
import json
import logging
import os
import re
import stat
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from logging.handlers import QueueHandler, QueueListener
from queue import Full, Queue
from typing import Any

from starlette.requests import Request

from srvstat.asgi import LogFormat
from srvstat.contract.errors import InvalidRequestError, OutputError, UsageError
from srvstat.contract.http import JUDGED_HEADERS, KEY_NAME, Head, find_values
from srvstat.contract.requests import MAX_BODY_BYTES
from srvstat.contract.time import format_instant
from srvstat.documents.support import Recording, StoredRequest
from srvstat.files.paths import convert_write_errors, describe_error
from srvstat.operations.redaction import KeyFilter
from srvstat.render.log import format_log_entry

_MAX_LINES = 50_000
"""The maximum number of lines that wait for a slow reader. Further lines are lost."""
_MAX_EXCHANGES = 10_000
"""The maximum number of exchanges that wait for a slow disk. Further exchanges are lost."""
_SECONDS_TO_CLOSE = 1
_SECONDS_TO_RECORD = 5

_STORED_HEADERS = JUDGED_HEADERS - {KEY_NAME}
_SECRET_HEADER = re.compile(rb"auth|cookie|credential|jwt|key|pass|secret|session|sign|token")
_USER = re.compile(rb"^(https?://)[^/?#]*@", re.IGNORECASE)
"""The start of an absolute URL with a user and a password."""
_FIRST_BYTES = b'{"document":"recording",'


BODY_SECONDS = 5.0
"""The timeout from the end of a request's head to the end of its body, in seconds."""


@dataclass
class Exchange:
    """A request, and the information about it so far."""

    request: Request
    requested_at: int
    """In Unix milliseconds."""
    head: Head
    key_filter: KeyFilter
    entry: dict[str, Any]
    """The log entry. It has `simulated` if the response is a simulated failure."""
    headers: dict[str, str]
    """The headers of the response so far."""
    as_of: int
    """The time to which the response refers, in Unix milliseconds."""
    root: str
    plan: str | None = None
    body: bytes = b""
    """The body, or empty until it is read completely."""

    async def read_body(self) -> None:
        """Read the body, and stop at the first chunk that exceeds the limit.

        Raises InvalidRequestError if the body is late, and ClientDisconnect if the client has left.
        """
        body = b""
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for chunk in self.request.stream():
                    body += chunk
                    if len(body) > MAX_BODY_BYTES:
                        break
        except TimeoutError:
            self.headers["connection"] = "close"
            raise InvalidRequestError(f"body: not complete within {BODY_SECONDS:g} s") from None
        self.body = body


class Log:
    """Queue log entries for a thread that writes them."""

    def __init__(self, form: LogFormat = "json") -> None:
        logging.raiseExceptions = False  # reporting a lost line would block on the same reader
        lines: Queue[logging.LogRecord] = Queue(_MAX_LINES)
        self._queue = QueueHandler(lines)
        self._queue.setFormatter(_Formatter(form))
        self._listener = QueueListener(lines, logging.StreamHandler())
        self._listener.start()

    def add_event(self, event: str, **fields: object) -> None:
        """Add an entry about an event that is not a request."""
        self.add({"event": event, **fields})

    def add(self, fields: Mapping[str, object]) -> None:
        """Add an entry. The formatter puts `time` first."""
        self._queue.handle(logging.makeLogRecord({"msg": fields}))

    def take_warnings(self) -> None:
        """Also log the warnings of libraries, without tracebacks."""
        logging.getLogger().addHandler(self._queue)

    def close(self) -> None:
        """Write the remaining lines; give up after a second."""
        with suppress(Full):
            self._listener.enqueue_sentinel()
        if thread := self._listener._thread:  # noqa: SLF001 - `stop` would wait without a limit
            thread.join(_SECONDS_TO_CLOSE)


class _Formatter(logging.Formatter):
    def __init__(self, form: LogFormat) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        """Encode an entry in ASCII, so that nothing sent by a client can control a terminal."""
        entry = _get_entry(record)
        if self._form == "json":
            return json.dumps({"time": format_instant(int(record.created * 1_000)), **entry})
        return format_log_entry(entry, record.created, is_colored=self._form == "color")


def _get_entry(record: logging.LogRecord) -> Mapping[str, Any]:
    if isinstance(record.msg, Mapping):
        return record.msg
    error = record.exc_info and record.exc_info[0]
    message = record.getMessage().strip() + (f" ({error.__name__})" if error else "")
    return {"event": "warning", "logger": record.name, "message": message}


class Recorder:
    """Queue exchanges for a thread that appends them to a file for `srvstat replay`.

    An exchange that can't be written is lost and counted. The log reports the first reason, and the
    number of lost exchanges when writing works again or the service stops.

    Raises UsageError if the file is not a recording, and OutputError if it can't be opened or
    another process writes it.
    """

    def __init__(self, path: str, log: Log) -> None:
        self._path, self._log = path, log
        self._descriptor = _open_recording(path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="srvstat-recorder")
        self._room = threading.Semaphore(_MAX_EXCHANGES)
        self._lost = self._refused = self._reported = 0
        self._thread.submit(self._report_number)  # starts the thread

    def add(self, recording: Recording) -> None:
        """Add an exchange, from which keys have been removed."""
        # pydantic encodes long strings ten times faster than `wire`, whose rules for numbers are
        # not needed here.
        line = recording.model_dump_json().encode("utf-8") + b"\n"
        if self._room.acquire(blocking=False):
            self._thread.submit(self._write, line)
        else:
            self._refused += 1

    def close(self) -> None:
        """Write the remaining exchanges; give up after five seconds."""
        with suppress(TimeoutError):
            self._thread.submit(self._report_number).result(_SECONDS_TO_RECORD)

    def _write(self, line: bytes) -> None:
        problem = self._append(line)
        self._room.release()
        if problem is None:
            self._report_number()
            return
        if not self._lost:
            self._log.add_event("exchanges can't be recorded", reason=problem)
        self._lost += 1

    def _report_number(self) -> None:
        refused = self._refused  # the other thread adds to it
        if lost := self._lost + refused - self._reported:
            self._log.add_event("exchanges not recorded", exchanges=lost)
        self._lost, self._reported = 0, refused

    def _append(self, line: bytes) -> str | None:
        """Append a line. On failure, remove the part that was written and return the reason."""
        rest = memoryview(line)
        try:
            self._end_line()
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            with suppress(OSError):  # the next write ends the line
                size = os.fstat(self._descriptor).st_size
                os.ftruncate(self._descriptor, size - (len(line) - len(rest)))
            return f"{self._path}: {describe_error(error)}"
        return None

    def _end_line(self) -> None:
        """End a line that a crash has cut off.

        Raises OSError if this fails or the file was replaced.
        """
        status = os.fstat(self._descriptor)
        if not os.path.samestat(os.stat(self._path), status):
            raise OSError(0, "was replaced")
        if status.st_size and os.pread(self._descriptor, 1, status.st_size - 1) != b"\n":
            os.write(self._descriptor, b"\n")


def _open_recording(path: str) -> int:
    """Create or open a recording, lock it, and return its descriptor.

    Raises UsageError if the file is not a recording, and OutputError if it can't be opened or is
    locked.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
    with convert_write_errors(path):
        descriptor = os.open(path, flags, stat.S_IRUSR | stat.S_IWUSR)
    try:
        _lock_recording(path, descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _lock_recording(path: str, descriptor: int) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise UsageError(f"{path}: not a regular file; name a new file or a recording")
    start = os.pread(descriptor, len(_FIRST_BYTES), 0)
    if not _FIRST_BYTES.startswith(start):
        raise UsageError(f"{path}: not a recording; name a new file or a recording")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OutputError(f"{path}: another process writes it; name another file") from None
    except OSError:  # a file system without locks
        return


def store_request(
    head: Head, body: bytes, key_filter: KeyFilter, *, has_all_headers: bool = False
) -> StoredRequest:
    """Return a request for a recording, without keys.

    Stores only the headers that affect the response, or with `has_all_headers` all headers without
    secrets. Repeated headers are joined.
    """
    target = head.path + b"?" + head.query if head.query else head.path
    hidden = key_filter.hide(body)
    try:
        text, encoded = hidden.decode("utf-8") or None, None
    except UnicodeDecodeError:
        text, encoded = None, base64.b64encode(hidden).decode("ascii")
    return StoredRequest(
        method=key_filter.hide_data(head.method.encode("latin-1")),
        path=key_filter.hide_data(_USER.sub("\\1…@".encode(), target)),
        # Repeated headers become one field with all values (RFC 9110, section 5.3).
        headers={
            name.decode("ascii"): key_filter.hide_data(b", ".join(find_values(head.headers, name)))
            for name, _ in head.headers
            if name in _STORED_HEADERS or (has_all_headers and not _SECRET_HEADER.search(name))
        },
        body=text,
        body_base64=encoded,
    )
