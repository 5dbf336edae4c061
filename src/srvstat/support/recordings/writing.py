"""Write the exchanges of the service to a recording, without keys."""

import base64
import fcntl
import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from srvstat.contract.errors import OutputError, UsageError
from srvstat.contract.http import Head, Headers
from srvstat.contract.key_filter import KeyFilter
from srvstat.documents.support import Recording, StoredRequest, StoredResponse
from srvstat.files.errors import convert_write_errors

_HEADERS = (b"content-type", b"content-length", b"content-encoding", b"transfer-encoding")
"""The headers that an answer depends on, besides the key."""
_USER = re.compile(rb"^(https?://)[^/?#]*@", re.IGNORECASE)
"""The start of an absolute URL with a user and a password."""
_FIRST_BYTES = b'{"document":"recording",'


class ServedExchange(NamedTuple):
    """A request to the service, and its answer, as received and sent.

    `body` is empty if it was not read completely, because the head determined the answer.
    `answer` is None for HEAD. Instants are Unix milliseconds.
    """

    head: Head
    body: bytes
    status: int
    answer: bytes | None
    requested_at: int
    plan: str | None
    as_of: int
    root: str


class Loss(NamedTuple):
    """The number of lines that could not be written, and the reason."""

    lines: int
    reason: str


def encode_line(exchange: ServedExchange, key_filter: KeyFilter) -> bytes:
    """Encode an exchange as a line of a recording, without keys.

    Of the headers, only those that an answer depends on are stored; repeated ones are joined.
    """
    answer = None if exchange.answer is None else _hide_keys(exchange.answer, key_filter)
    recording = Recording(
        as_of=exchange.as_of,
        root=exchange.root,
        requested_at=exchange.requested_at,
        plan=exchange.plan,
        request=_build_request(exchange.head, exchange.body, key_filter),
        response=StoredResponse(status=exchange.status, body=answer),
    )
    # pydantic encodes long strings ten times faster than `wire`, whose rules for numbers are not
    # needed here.
    return recording.model_dump_json().encode("utf-8") + b"\n"


def _build_request(head: Head, body: bytes, key_filter: KeyFilter) -> StoredRequest:
    target = head.path + b"?" + head.query if head.query else head.path
    hidden = key_filter.hide(body)
    try:
        text, encoded = hidden.decode("utf-8") or None, None
    except UnicodeDecodeError:
        text, encoded = None, base64.b64encode(hidden).decode("ascii")
    return StoredRequest(
        method=_hide_keys(head.method.encode("latin-1"), key_filter),
        path=_hide_keys(_USER.sub("\\1…@".encode(), target), key_filter),
        headers={
            name.decode("ascii"): _hide_keys(value, key_filter)
            for name, value in _join(head.headers)
        },
        body=text,
        body_base64=encoded,
    )


def _hide_keys(data: bytes, key_filter: KeyFilter) -> str:
    # A key of any bytes can be a part of a character, even in an answer.
    return key_filter.hide(data).decode("utf-8", "replace")


def _join(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return the headers to store, each with all its values (RFC 9110, section 5.3)."""
    found: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        if name in _HEADERS:
            found.setdefault(name, []).append(value)
    return [(name, b", ".join(values)) for name, values in found.items()]


class RecordingFile:
    """Append whole lines to a recording, which is created if it is missing.

    Raises UsageError for a file that is not a recording, OutputError if the file can't be opened or
    another process writes it.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
        with convert_write_errors(path):
            self._descriptor = os.open(path, flags, stat.S_IRUSR | stat.S_IWUSR)
        try:
            _lock_recording(path, self._descriptor)
        except BaseException:
            os.close(self._descriptor)
            raise

    def append(self, lines: Sequence[bytes]) -> Loss | None:
        """Append lines, and return which were lost."""
        data = b"".join(lines)
        rest = memoryview(data)
        try:
            self._check_place()
            self._end_line()
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            written = len(data) - len(rest)
            whole = data.rfind(b"\n", 0, written) + 1
            self._remove_end(written - whole)
            return Loss(data.count(b"\n", whole), f"{self._path}: {error.strerror}")
        return None

    def _check_place(self) -> None:
        """Check that the file is still at its path.

        Raises OSError.
        """
        if not os.path.samestat(os.stat(self._path), os.fstat(self._descriptor)):
            raise OSError(0, "was replaced")

    def _end_line(self) -> None:
        """End a line that a crash has cut.

        Raises OSError.
        """
        size = os.fstat(self._descriptor).st_size
        if size and os.pread(self._descriptor, 1, size - 1) != b"\n":
            os.write(self._descriptor, b"\n")

    def _remove_end(self, size: int) -> None:
        """Remove the beginning of a line whose rest could not be written."""
        with suppress(OSError):  # the next write ends the line
            os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - size)


def _lock_recording(path: str, descriptor: int) -> None:
    """Check that an open file is a recording or empty, and lock it.

    Raises UsageError, OutputError.
    """
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
