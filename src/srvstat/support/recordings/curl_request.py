"""Build the requests that a curl command sends."""

import base64
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from srvstat.contract.http import KEY_HEADER, Head, Headers
from srvstat.support.recordings.curl_data import build_data, check_known, read_file
from srvstat.support.recordings.curl_options import CurlError, Option, split_options
from srvstat.support.recordings.heads import JUDGED_HEADERS, HeaderList, build_head, is_foreign_path
from srvstat.support.recordings.shell_words import VARIABLE

_UNSUPPORTED = frozenset(("config", "form", "form-string", "upload-file", "variable"))
_DATA = frozenset(("data", "data-ascii", "data-binary", "data-raw", "data-urlencode", "json"))
_KEY = KEY_HEADER.lower().encode()
_FORM_TYPE, _JSON_TYPE = b"application/x-www-form-urlencoded", b"application/json"
_USER_AGENT = b"curl/8.0.0"

_SCHEME = re.compile(rb"([A-Za-z][A-Za-z0-9+.-]*)://")
_URL = re.compile(rb"([^/?#]*)([^?#]*)(?:\?([^#]*))?", re.DOTALL)
_NOT_IN_URL = re.compile(rb"[\x01-\x20\x7f]")
_ADDRESS = re.compile(rb"(?:[^/?#@]*@)?\[[0-9A-Fa-f:.%]+\](?::[0-9]*)?")
_GLOB = re.compile(rb"(?<!\\)[\[\]{}]")
_ESCAPED_GLOB = re.compile(rb"\\([\[\]{}])")


class Url(NamedTuple):
    """A URL split as curl does. `scheme` is None if it is missing."""

    scheme: bytes | None
    host: bytes
    path: bytes
    query: bytes | None


class _Operation:
    """What the options up to `--next` ask for."""

    def __init__(self) -> None:
        self.urls: list[bytes] = []
        self.arguments: dict[str, bytes] = {}
        self.flags: set[str] = set()
        self.headers: list[bytes] = []
        self.data: bytes | None = None
        self.url_query = b""

    def add(self, option: Option) -> None:
        """Apply an option. Raises CurlError."""
        name, argument = option
        if name in _UNSUPPORTED or name.startswith("expand-"):
            raise CurlError(f"--{name}: not supported")
        if name in _DATA:
            separator = b"&" if self.data and name != "json" else b""
            self.data = (self.data or b"") + separator + build_data(option)
            self.flags.add(name)
        elif name == "url":
            self.urls.append(argument)
        elif name == "url-query":
            self.url_query += (b"&" if self.url_query else b"") + build_data(option)
        elif name == "header":
            self.headers += self._split_headers(argument)
        elif argument:
            self.arguments[name] = argument
        else:
            self.flags.add(name)

    def _split_headers(self, argument: bytes) -> list[bytes]:
        if not argument.startswith(b"@"):
            return [argument]
        check_known("header", argument)
        return read_file("header", argument[1:]).splitlines()

    def build(self) -> Iterator[tuple[Head, bytes]]:
        """Build the head and body of the request for each URL.

        Raises CurlError.
        """
        if not self.urls:
            raise CurlError("no URL")
        body = None if "get" in self.flags else self.data
        if body is not None and "head" in self.flags:
            raise CurlError("--head with data, which curl refuses; add --get")
        method = self._find_method(body)
        for text in self.urls:
            url = split_url(text, is_globbed="globoff" not in self.flags)
            headers = self._build_headers(url.host, body)
            yield build_head(method, self._build_target(url), headers), body or b""

    def _find_method(self, body: bytes | None) -> str:
        given = self.arguments.get("request")
        if given is not None:
            check_known("request", given)
            return given.decode("utf-8", "backslashreplace")
        if "head" in self.flags:
            return "HEAD"
        return "GET" if body is None else "POST"

    def _build_target(self, url: Url) -> bytes:
        if url.scheme not in (None, b"http", b"https"):
            return (url.scheme or b"") + b":"
        given = self.arguments.get("request-target")
        if given is not None:
            check_known("request-target", given)
            return given
        path = url.path if "path-as-is" in self.flags else _remove_dot_segments(url.path)
        moved = self.data if "get" in self.flags else None
        queries = [part for part in (url.query, self.url_query, moved) if part]
        return path + b"?" + b"&".join(queries) if queries else path

    def _build_headers(self, host: bytes, body: bytes | None) -> Headers:
        """Build all headers that curl sends: those given, and the defaults that they leave."""
        given = [pair for line in self.headers if (pair := _split_header(line))]
        names = {name for name, _ in given}
        headers = HeaderList()
        for name, value in given:
            if value is not None:
                headers.add(name, value)
        for name, value in self._list_defaults(host, body):
            if name not in names:
                headers.add(name, value)
        return headers.build()

    def _list_defaults(self, host: bytes, body: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        is_json = "json" in self.flags
        yield b"host", host
        yield b"user-agent", self.arguments.get("user-agent", _USER_AGENT)
        yield b"accept", _JSON_TYPE if is_json else b"*/*"
        for name, option in ((b"cookie", "cookie"), (b"referer", "referer")):
            if option in self.arguments:
                yield name, self.arguments[option]
        if "user" in self.arguments:
            yield b"authorization", b"Basic " + base64.b64encode(self.arguments["user"])
        if is_json:
            yield b"content-type", _JSON_TYPE
        elif body is not None:
            yield b"content-type", _FORM_TYPE
        if body is not None and not self._is_chunked():
            yield b"content-length", str(len(body)).encode()

    def _is_chunked(self) -> bool:
        pairs = filter(None, map(_split_header, self.headers))
        return any(
            name == b"transfer-encoding" and b"chunked" in (value or b"").lower()
            for name, value in pairs
        )


def build_requests(words: Sequence[bytes]) -> Iterator[tuple[Head, bytes]]:
    """Build the heads and bodies of the requests of a command, given the words after `curl`.

    Raises CurlError.
    """
    operation = _Operation()
    for option in split_options(words):
        if option.name == "next":
            yield from operation.build()
            operation = _Operation()
        else:
            operation.add(option)
    yield from operation.build()


def split_url(text: bytes, *, is_globbed: bool) -> Url:
    """Split a URL. `is_globbed`: curl takes {} and [] for sets and ranges of URLs.

    Raises CurlError.
    """
    scheme = _SCHEME.match(text)
    match = _URL.match(text, scheme.end() if scheme else 0)
    host, path, query = match.groups() if match else (b"", b"", None)
    if (
        VARIABLE in path
        or VARIABLE in (query or b"")
        or (VARIABLE in host and is_foreign_path(path))
    ):
        check_known("url", text)
    if _NOT_IN_URL.search(text):
        raise CurlError("--url: a space or a control character, which curl refuses")
    if is_globbed:
        host_part = b"" if _ADDRESS.fullmatch(host) else host
        if any(_GLOB.search(part) for part in (host_part, path, query or b"")):
            raise CurlError("--url: {} or [] stand for several URLs; give each, or add --globoff")
        path, query = (part and _ESCAPED_GLOB.sub(rb"\1", part) for part in (path, query))
    return Url(scheme[1].lower() if scheme else None, host, path or b"/", query)


def _split_header(line: bytes) -> tuple[bytes, bytes | None] | None:
    """Split the argument of -H. The value is None if the header is removed, or not known.

    Returns None for a line that curl ignores.
    """
    name, separator, value = line.partition(b":")
    if not separator:
        name, separator, value = line.partition(b";")
        if not separator or value.strip():
            return None
        return name.strip().lower(), b""  # sent without a value
    name, value = name.strip().lower(), value.strip()
    check_known("header", name)
    if VARIABLE in value and name == _KEY:
        return name, None
    if name in JUDGED_HEADERS:
        check_known("header", value)
    return name, value or None


def _remove_dot_segments(path: bytes) -> bytes:
    """Remove `.` and `..` from a path as curl does (RFC 3986, section 5.2.4)."""
    kept: list[bytes] = []
    segments = path.split(b"/")[1:]
    for segment in segments:
        if segment == b"..":
            del kept[-1:]
        elif segment != b".":
            kept.append(segment)
    if segments[-1:] in ([b"."], [b".."]):
        kept.append(b"")
    return b"/" + b"/".join(kept)
