"""Read recordings, of any kind, and write those of the service."""

import base64
import fcntl
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from srvstat.contract import wire
from srvstat.contract.errors import OutputError, UsageError
from srvstat.contract.http import KEY_HEADER, Head, find_values
from srvstat.contract.models import InvalidValueError, validate
from srvstat.contract.time import InstantError, parse_instant
from srvstat.documents.support import (
    PlainExchange,
    PlainResponse,
    Recording,
    StoredRequest,
    StoredResponse,
)
from srvstat.files.paths import convert_write_errors
from srvstat.files.reading import STDIN, format_title, open_input, split_lines
from srvstat.operations.key_filter import KeyFilter
from srvstat.support.curl import read_curl
from srvstat.support.exchange import (
    JUDGED_HEADERS,
    NOT_A_STATUS,
    STATUSES,
    Exchange,
    RecordedResponse,
    Unreadable,
    UnreadableError,
    build_exchange,
    keep_judged,
)
from srvstat.support.har import read_har

Reader = Callable[[str, Iterator[bytes]], Iterator[Exchange | Unreadable]]
"""Reads the exchanges of an input, given its title for places, and its bytes in chunks."""

MAX_LINE_BYTES = 4 << 20

_INSTANTS = ("asOf", "requestedAt")
_MESSAGES = {"dict_type": "must be an object", "bool_type": "must be true or false"}
_CHUNK_BYTES = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_HAR_START = re.compile(rb'\{\s*"log"\s*:')
_MAX_START_BYTES = 1 << 10
"""An input that begins with more white space is not taken for JSON."""
_STORED_HEADERS = JUDGED_HEADERS - {KEY_HEADER.lower().encode()}
_USER = re.compile(rb"^(https?://)[^/?#]*@", re.IGNORECASE)
"""The start of an absolute URL with a user and a password."""
_FIRST_BYTES = b'{"document":"recording",'


def read_ndjson(title: str, chunks: Iterator[bytes]) -> Iterator[Exchange | Unreadable]:
    """Read the exchanges of NDJSON text, one a line; empty lines are skipped."""
    for number, line in enumerate(split_lines(chunks, MAX_LINE_BYTES), 1):
        if not line.strip():
            continue
        place = f"{title}, line {number}"
        try:
            yield _parse_exchange(place, line)
        except UnreadableError as error:
            yield Unreadable(place, str(error))


def _parse_exchange(place: str, line: bytes) -> Exchange:
    if len(line) > MAX_LINE_BYTES:
        raise UnreadableError(f"longer than {MAX_LINE_BYTES:,} bytes")
    try:
        value = wire.decode(line)
        if not isinstance(value, dict):
            raise UnreadableError("must be an object")
        value = _parse_instants(value)
        if "document" in value:
            return _build_exchange(place, validate(Recording, value, _MESSAGES, by_alias=True))
        return _build_exchange(place, validate(PlainExchange, value, _MESSAGES, by_alias=True))
    except (wire.JsonError, InvalidValueError) as error:
        raise UnreadableError(str(error)) from None
    except RecursionError:  # shallow enough to parse, too deep to validate
        raise UnreadableError("nested too deeply") from None
    except UnicodeEncodeError:
        raise UnreadableError("not Unicode text (a lone surrogate)") from None


def _parse_instants(value: dict[str, Any]) -> dict[str, Any]:
    parsed = dict(value)
    for name in _INSTANTS:
        given = value.get(name)
        if type(given) in (int, str):
            try:
                parsed[name] = parse_instant(str(given))
            except InstantError as error:
                raise UnreadableError(f"{name}: {error}") from None
    return parsed


def _build_exchange(place: str, parsed: Recording | PlainExchange) -> Exchange:
    request = parsed.request
    plan = parsed.plan if isinstance(parsed, Recording) else None
    for text in filter(None, (request.method, plan)):
        text.encode()  # these are shown; everything else is encoded below
    pairs = ((name.encode(), text.encode()) for name, text in request.headers.items())
    sent = request.path.encode()
    exchange = build_exchange(place, request.method, sent, keep_judged(pairs))
    if exchange.is_foreign:
        return exchange
    return replace(
        exchange,
        body=_decode_body(request.body, request.body_base64),
        requested_at=parsed.requested_at,
        response=_build_response(parsed.response),
        is_from_service=isinstance(parsed, Recording),
        plan=plan,
        as_of=parsed.as_of,
    )


def _build_response(recorded: StoredResponse | PlainResponse | None) -> RecordedResponse | None:
    if recorded is None:
        return None
    if recorded.status not in STATUSES:
        raise UnreadableError(f"response.status: {NOT_A_STATUS}")
    body = None if recorded.body is None else recorded.body.encode()
    return RecordedResponse(recorded.status, body)


def _decode_body(text: str | None, encoded: str | None) -> bytes:
    if encoded is None:
        return (text or "").encode()
    if text is not None:
        raise UnreadableError("request: both body and bodyBase64")
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError:  # binascii.Error, or a character that is not ASCII
        raise UnreadableError("request.bodyBase64: not base64") from None


_READERS: Mapping[str, Reader] = {
    ".har": read_har,
    ".ndjson": read_ndjson,
    ".jsonl": read_ndjson,
    ".sh": read_curl,
    ".txt": read_curl,
    ".curl": read_curl,
}


def read_recording(name: str) -> Iterator[Exchange | Unreadable]:
    """Read the exchanges of a HAR file, of curl commands or of NDJSON, in their order.

    The extension of the name decides; without a known one, and for `-` (standard input), the
    first characters do. One byte order mark at the start is skipped.

    Raises SourceError if the input can't be read, or is a HAR file that is not complete.
    """
    extension = "" if name == STDIN else os.path.splitext(name)[1].lower()
    with open_input(name) as file:
        chunks = iter(lambda: file.read(_CHUNK_BYTES), b"")
        start = b""
        while len(start) < _MAX_START_BYTES and (chunk := next(chunks, b"")):
            start += chunk
        start = start.removeprefix(_BYTE_ORDER_MARK)
        read = _READERS.get(extension) or _find_reader(start)
        yield from read(format_title(name), chain([start], chunks))


def _find_reader(start: bytes) -> Reader:
    text = start.lstrip()
    if not text.startswith(b"{"):
        return read_curl
    return read_har if _HAR_START.match(text) else read_ndjson


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
        # One field has all values of a repeated header (RFC 9110, section 5.3).
        headers={
            name.decode("ascii"): _hide_keys(
                b", ".join(find_values(head.headers, name)), key_filter
            )
            for name, _ in head.headers
            if name in _STORED_HEADERS
        },
        body=text,
        body_base64=encoded,
    )


def _hide_keys(data: bytes, key_filter: KeyFilter) -> str:
    # A key of any bytes can be a part of a character, even in an answer.
    return key_filter.hide(data).decode("utf-8", "replace")


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
            self._end_line()
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            written = len(data) - len(rest)
            whole = data.rfind(b"\n", 0, written) + 1
            # Remove the beginning of a line whose rest could not be written.
            with suppress(OSError):  # the next write ends the line
                size = os.fstat(self._descriptor).st_size
                os.ftruncate(self._descriptor, size - (written - whole))
            return Loss(data.count(b"\n", whole), f"{self._path}: {error.strerror}")
        return None

    def _end_line(self) -> None:
        """End a line that a crash has cut. Raises OSError, also if the file was replaced."""
        status = os.fstat(self._descriptor)
        if not os.path.samestat(os.stat(self._path), status):
            raise OSError(0, "was replaced")
        if status.st_size and os.pread(self._descriptor, 1, status.st_size - 1) != b"\n":
            os.write(self._descriptor, b"\n")


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
