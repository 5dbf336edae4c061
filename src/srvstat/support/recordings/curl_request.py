"""Build the requests that a curl command sends."""

import base64
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import quote_from_bytes

from srvstat.contract.http import KEY_HEADER, Head, Headers
from srvstat.support.recordings.curl_options import CurlError, Option, split_options
from srvstat.support.recordings.heads import (
    JUDGED_HEADERS,
    HeaderList,
    build_head,
    find_host,
    is_foreign_path,
)
from srvstat.support.recordings.shell_words import VARIABLE

_UNSUPPORTED = frozenset(("form", "form-string", "variable"))
_FILES = frozenset(
    ("config", "etag-compare", "netrc", "netrc-file", "netrc-optional", "upload-file")
)
"""Options that make curl read a file, whatever their argument."""
_FILES_AFTER_AT = frozenset(
    ("data", "data-ascii", "data-binary", "header", "json", "proxy-header", "url", "url-query")
)
"""Options that make curl read a file if their argument begins with `@`."""
NOT_READ = "files and standard input are not read; write the contents into the command"
_DATA = frozenset(("data", "data-ascii", "data-binary", "data-raw", "data-urlencode", "json"))
_ENCODED_DATA = frozenset(("data-urlencode", "url-query"))
_KEY = KEY_HEADER.lower().encode()
_FORM_TYPE, _JSON_TYPE = b"application/x-www-form-urlencoded", b"application/json"
_USER_AGENT = b"curl/8.0.0"

_HTTP = (None, b"http", b"https")
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
        if _names_file(option):
            raise CurlError(f"--{name}: {NOT_READ}")
        if name in _DATA:
            separator = b"&" if self.data and name != "json" else b""
            self.data = (self.data or b"") + separator + _build_data(option)
            self.flags.add(name)
        elif name == "url":
            self.urls.append(argument)
        elif name == "url-query":
            self.url_query += (b"&" if self.url_query else b"") + _build_data(option)
        elif name == "header":
            self.headers.append(argument)
        elif argument:
            self.arguments[name] = argument
        else:
            self.flags.add(name)

    def build(self) -> Iterator[tuple[Head, bytes, str]]:
        """Build the head, the body and the host of the request for each URL.

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
            host = find_host(b"http://" + url.host + url.path) if url.scheme in _HTTP else ""
            yield build_head(method, self._build_target(url), headers), body or b"", host

    def _find_method(self, body: bytes | None) -> str:
        given = self.arguments.get("request")
        if given is not None:
            _check_known("request", given)
            return given.decode("utf-8", "backslashreplace")
        if "head" in self.flags:
            return "HEAD"
        return "GET" if body is None else "POST"

    def _build_target(self, url: Url) -> bytes:
        if url.scheme not in _HTTP:
            return (url.scheme or b"") + b":"
        given = self.arguments.get("request-target")
        if given is not None:
            _check_known("request-target", given)
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


def build_requests(words: Sequence[bytes]) -> Iterator[tuple[Head, bytes, str]]:
    """Build the heads, bodies and hosts of a command's requests, given the words after `curl`.

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
        _check_known("url", text)
    if _NOT_IN_URL.search(text):
        raise CurlError("--url: a space or a control character, which curl refuses")
    if is_globbed:
        host_part = b"" if _ADDRESS.fullmatch(host) else host
        if any(_GLOB.search(part) for part in (host_part, path, query or b"")):
            raise CurlError("--url: {} or [] stand for several URLs; give each, or add --globoff")
        path, query = (part and _ESCAPED_GLOB.sub(rb"\1", part) for part in (path, query))
    return Url(scheme[1].lower() if scheme else None, host, path or b"/", query)


def _names_file(option: Option) -> bool:
    """Return whether curl would read a file, or standard input, because of an option.

    Strangers may have written the command. The file would be one of the person who replays it, and
    its contents would be shown.
    """
    name, argument = option
    if name in _FILES or (name in _FILES_AFTER_AT and argument.startswith(b"@")):
        return True
    if name == "cookie":  # a file unless it has a cookie; an empty name is no file
        return argument != b"" and b"=" not in argument and VARIABLE not in argument
    is_literal = name == "url-query" and argument.startswith(b"+")
    has_file = b"@" in argument and b"=" not in argument
    return name in _ENCODED_DATA and has_file and not is_literal


def _build_data(option: Option) -> bytes:
    """Return the data that an option adds to the body or, with -G, to the query.

    Raises CurlError.
    """
    name, argument = option
    _check_known(name, argument)
    if name not in _ENCODED_DATA:
        return argument
    if name == "url-query" and argument.startswith(b"+"):
        return argument[1:]
    label, separator, content = argument.partition(b"=")
    if not separator:
        label, content = b"", argument
    encoded = quote_from_bytes(content, safe="").replace("%20", "+").encode()
    return label + b"=" + encoded if label else encoded


def _check_known(name: str, argument: bytes) -> None:
    """Raise CurlError if the argument of an option has a shell variable."""
    if VARIABLE in argument:
        raise CurlError(f"--{name}: a shell variable or substitution; replace it by its value")


def _split_header(line: bytes) -> tuple[bytes, bytes | None] | None:
    """Split the argument of -H. The value is None if the header is removed, or not known.

    Returns None for a line that curl ignores.
    """
    name, separator, value = line.partition(b":")
    if not separator:
        _check_known("header", line)
        name, separator, value = line.partition(b";")
        if not separator or value.strip():
            return None
        return name.strip().lower(), b""  # sent without a value
    name, value = name.strip().lower(), value.strip()
    _check_known("header", name)
    if VARIABLE in value and name == _KEY:
        return name, None
    if name in JUDGED_HEADERS:
        _check_known("header", value)
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
