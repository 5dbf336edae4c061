"""Define exchanges between a client and the API, and read them from HAR files and NDJSON."""

import base64
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar

from srvstat.contract import http, wire
from srvstat.contract.errors import SourceError
from srvstat.contract.models import InvalidValueError, validate
from srvstat.documents import support as documents
from srvstat.documents.document import Part
from srvstat.documents.support import PlainExchange, Recording
from srvstat.files import json_stream
from srvstat.files.reading import split_lines

_ORIGIN = re.compile(rb"https?://[^/?#]*", re.IGNORECASE)
_SCHEME = re.compile(rb"[a-z][a-z0-9+.-]*:(?![^/?#]*@)", re.IGNORECASE)
_SLASH_IN_PASSWORD = re.compile(rb"https?://(?=[^/?#@:]*:)[^/?#@]*+/[^?#]*@", re.IGNORECASE)
_HOST = re.compile(rb"(?:[^/?#]*@)?([A-Za-z0-9._-]+(?::[0-9]*)?|\[[0-9A-Fa-f:.]+\](?::[0-9]*)?)")
_PREFIXED = re.compile(rb"((?:/[A-Za-z0-9._~-]+)+)(/gateway/v1/(?:compare|servers/[^/]*))")
"""A path of the API behind a proxy or a stand-in: the prefix, and the path."""
_FILLER = b"x"
"""The header that replaces all dropped headers. Only its size matters."""


class RecordedResponse(NamedTuple):
    """A response. `body` is None if it was not recorded."""

    status: int
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and, if recorded, its response. Times are Unix milliseconds.

    - `head`, `body`: as sent. The head may contain a key: never print or store it.
    - `host`: the host and port of the URL, or "" if only a path was recorded.
    - `prefix`: the part of the path before the API's path, as behind a proxy.
    - `requested_at`: by the client's clock.
    - `answered_at`: by the service's clock: the `Date` of the response, in whole seconds.
    - `is_from_service`: whether srvstat's service recorded the exchange. It removed the key from
      the head, and stored the caller's plan, if any, in `plan`.
    """

    place: str
    head: http.Head = field(repr=False)
    body: bytes = field(repr=False)
    host: str = ""
    prefix: bytes = b""
    requested_at: int | None = None
    answered_at: int | None = None
    response: RecordedResponse | None = None
    is_from_service: bool = False
    plan: str | None = None
    as_of: int | None = None
    request_id: str | None = None

    @property
    def is_foreign(self) -> bool:
        """Whether the request is unrelated to the API."""
        return http.find_endpoint(self.head.path) is None

    def list_times(self) -> list[int]:
        """Return the recorded times."""
        times = (self.as_of, self.requested_at, self.answered_at)
        return [at for at in times if at is not None]


class Unreadable(NamedTuple):
    """A part of a recording that can't be read."""

    place: str
    reason: str


Exchanges = Iterator[Exchange | Unreadable]
ReadFile = Callable[[str], bytes]
"""Returns the content of another file in the same archive."""


class UnreadableError(ValueError):
    """A part can't be read. The message gives the reason, and quotes nothing of the request."""


def keep_judged(headers: Iterable[tuple[bytes, bytes]]) -> http.Headers:
    """Return the headers that affect a response, and one header as large as all others.

    Names become lower case. HTTP/2 pseudo-headers (`:path`) are ignored.
    """
    kept: list[tuple[bytes, bytes]] = []
    kept_bytes = dropped_bytes = 0
    for given, padded in headers:
        name, value = given.lower(), padded.strip(b" \t")
        size = 0 if name.startswith(b":") else len(name) + len(value)
        if name in http.JUDGED_HEADERS and kept_bytes + size <= http.MAX_HEAD_BYTES:
            kept.append((name, value))
            kept_bytes += size
        else:
            dropped_bytes += size
    if not dropped_bytes:
        return kept
    # All sizes above the limit have the same effect.
    size = min(dropped_bytes, http.MAX_HEAD_BYTES + 1)
    return [*kept, (_FILLER, b"." * (size - len(_FILLER)))]


def drop_filler(headers: http.Headers) -> http.Headers:
    """Remove the filler header that `keep_judged` added."""
    return [header for header in headers if header[0] != _FILLER]


def build_exchange(place: str, method: str, url: bytes, headers: http.Headers) -> Exchange:
    """Build an exchange from the URL of a request, or from its path and query.

    The exchange's path contains neither host nor fragment. If the URL is not an HTTP URL, the path
    is the scheme.
    """
    origin = _ORIGIN.match(url)
    if not origin and (scheme := _SCHEME.match(url)):
        return Exchange(place, http.Head(method, scheme[0], b"", ()), b"")
    target = url[origin.end() :].partition(b"#")[0] if origin else url
    path, _, query = target.partition(b"?")
    # Do not store a host that may be part of a password.
    named = b"" if not origin or _SLASH_IN_PASSWORD.match(url) else origin[0]
    host = _HOST.fullmatch(named.partition(b"//")[2])
    prefixed = _PREFIXED.fullmatch(path)
    prefix, path = prefixed.groups() if prefixed else (b"", path or b"/")
    head = http.Head(method, path, query, headers)
    return Exchange(place, head, b"", host[1].decode() if host else "", prefix)


MAX_LINE_BYTES = 4 << 20

_Model = TypeVar("_Model", bound=Part)

_MESSAGES = {"dict_type": "must be an object", "bool_type": "must be true or false"}


def read_ndjson(title: str, chunks: Iterator[bytes]) -> Exchanges:
    """Read the exchanges of NDJSON text, one per line. Empty lines are skipped."""
    for number, line in enumerate(split_lines(chunks, MAX_LINE_BYTES), 1):
        if not line.strip():
            continue
        if read := read_line(f"{title}, line {number}", line):
            yield read


def read_line(place: str, line: bytes) -> Exchange | Unreadable | None:
    """Read a line of a recording or of the service's log. Return None for an event."""
    if len(line) > MAX_LINE_BYTES:
        return Unreadable(place, f"longer than {MAX_LINE_BYTES:,} bytes")
    try:
        value = wire.decode(line)
        if not isinstance(value, dict):
            return Unreadable(place, "must be an object")
        if "time" in value:
            return None if "event" in value else _build_logged(place, value)
        model: type[Recording | PlainExchange] = Recording if "document" in value else PlainExchange
        return _build_exchange(place, _validate(model, value))
    except (RecursionError, UnicodeEncodeError):  # shallow enough to parse, too deep to validate
        return Unreadable(place, "nested too deeply, or not Unicode text (a lone surrogate)")
    except (UnreadableError, wire.JsonError) as error:
        return Unreadable(place, str(error))


def _validate(model: type[_Model], value: Any) -> _Model:
    try:
        return validate(model, value, _MESSAGES, by_alias=True)
    except InvalidValueError as error:
        raise UnreadableError(str(error)) from None


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
    response = None
    if (recorded := parsed.response) is not None:
        body = None if recorded.body is None else recorded.body.encode()
        response = RecordedResponse(recorded.status, body)
    return replace(
        exchange,
        body=_decode_body(request.body, request.body_base64),
        requested_at=parsed.requested_at,
        response=response,
        is_from_service=isinstance(parsed, Recording),
        plan=plan,
        as_of=parsed.as_of,
        request_id=parsed.request_id if isinstance(parsed, Recording) else None,
    )


def build_comparison(place: str, servers: Iterable[tuple[str, str]], range: Any) -> Exchange:
    """Build the exchange of a comparison. Each server is a namespace and an identifier."""
    named = [{"identifier": name, "by": by} for by, name in servers]
    kind = [(b"content-type", http.JSON_TYPE.encode())]
    exchange = build_exchange(place, "POST", http.COMPARE_PATH.encode(), kind)
    return replace(exchange, body=wire.encode({"servers": named, "range": range}))


def _build_logged(place: str, entry: dict[str, Any]) -> Exchange:
    """Build the exchange of a log line, which has no body, and only the time of the response."""
    logged = _validate(documents.LogEntry, entry)
    servers = [(by, name) for by, _, name in (one.partition(":") for one in logged.servers)]
    by, name = servers[0] if servers else ("id", "")
    is_detail = logged.operation == "getServer"
    path = f"{http.SERVERS_PATH}{name}?by={by}" if is_detail else f"/{logged.operation}"
    exchange = build_exchange(place, "GET", path.encode(), ())
    if logged.operation == "compareServers":
        exchange = build_comparison(place, servers, logged.range)
    return replace(
        exchange,
        answered_at=logged.time,
        response=RecordedResponse(logged.status, None),
        is_from_service=True,
        request_id=logged.id,
    )


def _decode_body(text: str | None, encoded: str | None) -> bytes:
    if encoded is None:
        return (text or "").encode()
    if text is not None:
        raise UnreadableError("request: both body and bodyBase64")
    return _decode_base64("request.bodyBase64", encoded)


def _decode_base64(name: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:  # binascii.Error, or a non-ASCII character
        raise UnreadableError(f"{name}: not base64") from None


MAX_BODY_BYTES = 4 << 20
"""The maximum decompressed size, in bytes; API bodies are far smaller."""

_GZIP_START, _ANY_HEADER = b"\x1f\x8b", zlib.MAX_WBITS | 32
_CODINGS = (b"gzip", b"x-gzip", b"deflate")


def read_har(title: str, chunks: Iterator[bytes], read_file: ReadFile | None = None) -> Exchanges:
    """Read the entries of a HAR file in their order.

    `read_file`: reads a body that Playwright attached as a file in the archive.

    Raises SourceError if it is not a HAR file, or incomplete.
    """
    count = 0
    try:
        for count, entry in enumerate(json_stream.iter_items(chunks, "log.entries"), 1):
            read = read_har_entry(place := f"{title}, entry {count}", entry)
            # Attached bodies of unrelated requests, such as pictures, are not needed.
            if read_file and not (isinstance(read, Exchange) and read.is_foreign):
                _embed_files(entry, read_file)
                read = read_har_entry(place, entry)
            yield read
    except json_stream.CutOffError:
        after = f"after entry {count}" if count else "in its first entry"
        problem = f"cut off {after}; export it again"
    except json_stream.NotJsonError:
        problem = f"not JSON after entry {count}; export it again"
    except json_stream.MissingArrayError:
        problem = "not a HAR file: it has no array log.entries; export it as HAR 1.2"
    else:
        return
    raise SourceError(f"{title}: {problem}")


def _embed_files(entry: Any, read_file: ReadFile) -> None:
    for outer, inner in (("request", "postData"), ("response", "content")):
        with suppress(LookupError, TypeError):  # without a file, or invalid
            body = entry[outer][inner]
            text = base64.b64encode(read_file(body["_file"])).decode()
            body.update(text=text, encoding="base64")


def read_har_entry(place: str, entry: Any) -> Exchange | Unreadable:
    """Read an entry of a HAR file, or a part of another recording converted to a HAR entry."""
    try:
        return _build_har_exchange(place, entry)
    except UnreadableError as error:
        return Unreadable(place, str(error))


def _build_har_exchange(place: str, entry: Any) -> Exchange:
    target = _validate(documents.ForeignHarEntry, entry).request
    sent = target.url.removeprefix(json_stream.TOO_LONG).encode()
    headers = keep_judged(map(_encode_header, target.headers))
    exchange = build_exchange(place, target.method, sent, headers)
    if exchange.is_foreign:
        return exchange
    _check_length("request.url", target.url)
    valid = _validate(documents.HarEntry, entry)
    response = _build_har_response(valid)
    return replace(
        exchange,
        body=_build_request_body(valid, headers),
        requested_at=valid.started_date_time,
        answered_at=parse_date(_find_header(valid, "Date") or ""),
        response=response,
        request_id=_find_header(valid, http.REQUEST_ID_HEADER),
    )


def _find_header(entry: documents.HarEntry, name: str) -> str | None:
    """Return the value of a response's first header with this name, or None."""
    headers = entry.response.headers if entry.response else ()
    return next((each.value for each in headers if each.name.lower() == name.lower()), None)


def parse_date(text: str) -> int | None:
    """Parse a `Date` to Unix milliseconds. Return None if it is invalid."""
    # Importing it takes as long as reading most recordings.
    from email.utils import parsedate_to_datetime  # noqa: PLC0415

    with suppress(ValueError, OverflowError):
        parsed = parsedate_to_datetime(text)
        return int(parsed.replace(tzinfo=parsed.tzinfo or UTC).timestamp()) * 1000
    return None


def _encode_header(header: documents.HarHeader) -> tuple[bytes, bytes]:
    # Truncate very long headers. They still exceed the limit.
    is_cut = json_stream.TOO_LONG in (header.name + header.value)
    value = b"." * (http.MAX_HEAD_BYTES + 1) if is_cut else header.value.encode()
    return header.name.encode(), value


def _check_length(place: str, text: str) -> None:
    if text.startswith(json_stream.TOO_LONG):
        raise UnreadableError(f"{place}: longer than {json_stream.MAX_TEXT_BYTES:,} bytes")


_MAX_DIGITS = 15


def _build_request_body(entry: documents.HarEntry, headers: http.Headers) -> bytes:
    """Return the body of a request.

    Raises UnreadableError if the recorder omitted a part of the body: the API never responds to a
    comparison without a body, or with a body that differs from the declared length.
    """
    request = entry.request
    body = _build_body("request.postData", request.post_data) or b""
    lengths = http.find_values(headers, b"content-length")
    digits = [each for each in lengths if each.isdigit() and len(each) <= _MAX_DIGITS]
    declared = max([request.body_size or 0, *map(int, digits)])
    status = entry.response.status if entry.response else None
    is_answered = (request.method, status) == ("POST", HTTPStatus.OK)
    if not body and (declared > 0 or is_answered or any(each.strip(b"0") for each in lengths)):
        raise UnreadableError("request.postData.text: missing; export the recording with bodies")
    if len(body) < declared and not http.find_values(headers, b"content-encoding"):
        raise UnreadableError(f"request.postData.text: {_describe_cut(body, declared)}")
    return body


def _describe_cut(body: bytes, size: int) -> str:
    return f"has {len(body):,} of {size:,} bytes; export the recording with whole bodies"


def _build_har_response(entry: documents.HarEntry) -> RecordedResponse | None:
    """Return the response, or None if there was none, for which HAR uses the status 0."""
    response = entry.response
    if not response or not response.status:
        return None
    content = response.content
    body = _build_body("response.content", content)
    if content is None or body is None or entry.request.method == "HEAD":
        return RecordedResponse(response.status, body)
    headers = keep_judged(map(_encode_header, response.headers))
    coding = b", ".join(http.find_values(headers, b"content-encoding")).lower()
    text = _decompress("response.content", body, coding) if content.encoding else body
    # Some tools record the compressed size, which can exceed the text.
    size = (content.size or 0) + min(content.compression or 0, 0)
    is_known = coding in (b"", b"identity") or content.compression is not None or not body
    if text is body and is_known and len(body) < size:
        raise UnreadableError(f"response.content.text: {_describe_cut(body, size)}")
    return RecordedResponse(response.status, text)


def _build_body(place: str, body: documents.HarBody | None) -> bytes | None:
    if body is None or body.text is None:
        return None
    _check_length(f"{place}.text", body.text)
    if not body.encoding:
        return body.text.encode()
    if body.encoding.lower() != "base64":
        raise UnreadableError(f"{place}.encoding: not base64")
    return _decode_base64(f"{place}.text", "".join(body.text.split()))


def _decompress(place: str, body: bytes, coding: bytes) -> bytes:
    """Return a body, decompressed if it is still compressed as its `Content-Encoding` says.

    Most programs record the decompressed body together with the original header.

    Raises UnreadableError for an unknown coding, and for damaged or too much data.
    """
    if not coding or coding == b"identity":
        return body
    # Compressed data are not valid UTF-8: neither their first bytes nor their checksum.
    with suppress(UnicodeDecodeError):
        body.decode()
        return body
    if coding in _CODINGS:
        return _inflate(place, body)
    name = coding.decode("latin-1") if coding.isalnum() else "an unknown coding"
    raise UnreadableError(
        f"{place}: compressed with {name[:20]}; export it again with decompressed bodies"
    )


def _inflate(place: str, body: bytes) -> bytes:
    text, rest = b"", body
    while rest.startswith(_GZIP_START) or rest is body:
        stream = zlib.decompressobj(_ANY_HEADER)
        try:
            text += stream.decompress(rest, MAX_BODY_BYTES + 1 - len(text))
        except zlib.error:
            raise UnreadableError(f"{place}: damaged compressed data") from None
        if len(text) > MAX_BODY_BYTES:
            raise UnreadableError(f"{place}: more than {MAX_BODY_BYTES:,} bytes when decompressed")
        if not stream.eof:
            raise UnreadableError(f"{place}: compressed data that is cut off")
        rest = stream.unused_data  # the next member
    return text
