"""Requests that say it badly: lines, headers and lengths, as bytes on a socket.

h11 is pinned, and what it forgives is written down here: a bare LF, a folded header, HTTP/1.2.
"""

from collections.abc import Iterator

import pytest

from asgi.small_service import (
    ANSWERED,
    BROKEN,
    NO_SUCH_PATH,
    REFUSED,
    SHOWN,
    UNAUTHORIZED,
    serving_small,
)
from support.http import COMPARE, HOST, JSON, KEY, TWO, A, Expected, check_answer, request
from support.process import Service

CHUNKED = b"Transfer-Encoding: chunked"
CLOSE = {"connection": "close"}


def posted(*headers: bytes, body: bytes = TWO) -> bytes:
    """Return a comparison with headers of its own about its body."""
    return request(COMPARE, HOST, KEY, JSON, *headers) + body


def chunks(*sizes: bytes, body: bytes = TWO, end: bytes = b"0\r\n\r\n") -> bytes:
    """Return a chunked comparison; `sizes` are the lines before its only chunk."""
    lines = b"".join(size + b"\r\n" for size in sizes or (b"%x" % len(body),))
    return posted(CHUNKED, body=lines + body + b"\r\n" + end)


def asked(line: bytes, *headers: bytes) -> bytes:
    return request(line, HOST, KEY, *headers)


LINES = {
    "a plain request": (asked(A), SHOWN),
    "no version": (asked(b"GET /gateway/v1/servers/a"), BROKEN),
    "two spaces": (asked(b"GET  /gateway/v1/servers/a HTTP/1.1"), BROKEN),
    "tabs": (asked(b"GET\t/gateway/v1/servers/a\tHTTP/1.1"), BROKEN),
    "a space at the end": (asked(A + b" "), BROKEN),
    "a space at the start": (asked(b" " + A), BROKEN),
    "an empty line before it": (b"\r\n" + asked(A), SHOWN),
    "two empty lines before it": (b"\r\n\r\n" + asked(A), BROKEN),
    "a bare LF before it": (b"\n" + asked(A), BROKEN),
    "a bare CR before it": (b"\r" + asked(A), BROKEN),
    "a space in the target": (asked(b"GET /gateway/v1/servers/a b HTTP/1.1"), BROKEN),
    "no target": (asked(b"GET HTTP/1.1"), BROKEN),
    "no method": (asked(b"/gateway/v1/servers/a HTTP/1.1"), BROKEN),
    "a method that is no word": (asked(A.replace(b"GET", b"GE{T")), BROKEN),
    "http in lower case": (asked(A.replace(b"HTTP", b"http")), BROKEN),
    "HTTP/1.2": (asked(A.replace(b"1.1", b"1.2")), SHOWN),
    "HTTP/0.9": (asked(A.replace(b"1.1", b"0.9")), BROKEN),
    "HTTP/2.0": (asked(A.replace(b"1.1", b"2.0")), BROKEN),
    "HTTP/3.0": (asked(A.replace(b"1.1", b"3.0")), BROKEN),
    "HTTP/3.0 with a body": (
        request(COMPARE.replace(b"1.1", b"3.0"), HOST, KEY, JSON, body=TWO),
        BROKEN,
    ),
    "HTTP/1.10": (asked(A.replace(b"1.1", b"1.10")), BROKEN),
    "HTTP/11": (asked(A.replace(b"1.1", b"11")), BROKEN),
    "zeros": (b"\x00" * 40 + b"\r\n\r\n", BROKEN),
    "the start of TLS": (bytes.fromhex("16030100c8010000c40303") + bytes(200), BROKEN),
    "a bare LF at each line": (asked(A).replace(b"\r\n", b"\n"), SHOWN),
    "bytes beyond ASCII": (asked(b"GET /gateway/v1/servers/\xc3\xa4 HTTP/1.1"), BROKEN),
    "a control character": (asked(b"GET /gateway/v1/servers/a\x01 HTTP/1.1"), BROKEN),
    "DEL": (asked(b"GET /gateway/v1/servers/a\x7f HTTP/1.1"), BROKEN),
    "HTTP/1.0": (request(A.replace(b"1.1", b"1.0"), KEY), SHOWN._replace(stays=False)),
    "HTTP/1.0 that wants to stay": (
        request(A.replace(b"1.1", b"1.0"), KEY, b"Connection: keep-alive"),
        SHOWN._replace(stays=False),
    ),
    "HTTP/1.0 with a body": (
        request(COMPARE.replace(b"1.1", b"1.0"), KEY, JSON, body=TWO),
        ANSWERED._replace(stays=False),
    ),
}

HEADERS = {
    "no Host": (request(A, KEY), BROKEN),
    "two Hosts": (request(A, HOST, HOST, KEY), BROKEN),
    "an empty Host": (request(A, b"Host:", KEY), SHOWN),
    "a folded header": (request(A, HOST, b"X-Gateway-Key:\r\n k"), SHOWN),
    "a fold before any header": (request(A, b" " + HOST, KEY), BROKEN),
    "a space after a name": (request(A, HOST, b"X-Gateway-Key : k"), BROKEN),
    "a space in a name": (asked(A, b"X y: z"), BROKEN),
    "no colon": (asked(A, b"nothing"), BROKEN),
    "an empty name": (asked(A, b": z"), BROKEN),
    "a name beyond ASCII": (asked(A, b"X\xc3\xa4: z"), BROKEN),
    "NUL in a value": (asked(A, b"X: y\x00z"), BROKEN),
    "a bare CR in a value": (asked(A, b"X: y\rZ: z"), BROKEN),
    "a value beyond ASCII": (asked(A, b"X: \xff\xfe"), SHOWN),
    "Connection: close": (
        asked(A, b"Connection: Close"),
        Expected(SHOWN.status, SHOWN.body, stays=False, headers=CLOSE),
    ),
    "a websocket": (
        asked(
            A,
            b"Connection: upgrade",
            b"Upgrade: websocket",
            b"Sec-WebSocket-Version: 13",
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        ),
        SHOWN,
    ),
    "HTTP/2 on the same connection": (
        asked(A, b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMA"),
        SHOWN,
    ),
    "400 headers": (asked(A, *(b"X-%d: y" % number for number in range(400))), SHOWN),
    "headers of 15,000 bytes": (asked(A, b"X: " + b"y" * 15_000), SHOWN),
    "headers of 16,400 bytes": (asked(A, b"X: " + b"y" * 16_400), REFUSED),
}

LENGTHS = {
    "a length": (posted(b"Content-Length: %d" % len(TWO)), ANSWERED),
    "the same length twice": (posted(*[b"Content-Length: %d" % len(TWO)] * 2), ANSWERED),
    "the same length in a list": (posted(b"Content-Length: 71, 71"), ANSWERED),
    "two lengths": (posted(b"Content-Length: 71", b"Content-Length: 5"), BROKEN),
    "two lengths in a list": (posted(b"Content-Length: 71, 5"), BROKEN),
    "-1": (posted(b"Content-Length: -1"), BROKEN),
    "+71": (posted(b"Content-Length: +71"), BROKEN),
    "0x47": (posted(b"Content-Length: 0x47"), BROKEN),
    "71.0": (posted(b"Content-Length: 71.0"), BROKEN),
    "an empty length": (posted(b"Content-Length:"), BROKEN),
    "a length beyond ASCII": (posted("Content-Length: \u0667\u0661".encode()), BROKEN),
    "21 digits": (posted(b"Content-Length: " + b"9" * 21), BROKEN),
    "5,000 digits": (posted(b"Content-Length: " + b"9" * 5_000), BROKEN),
    "no length": (posted(body=b""), REFUSED),
    "a length of nothing": (posted(b"Content-Length: 0", body=b""), REFUSED),
    "zeros before the length": (posted(b"Content-Length: 0000000071"), ANSWERED),
    "a length and chunks": (
        posted(b"Content-Length: 71", CHUNKED, body=b"47\r\n" + TWO + b"\r\n0\r\n\r\n"),
        REFUSED._replace(stays=False, headers=CLOSE),
    ),
    "a length and chunks, without a key": (
        request(COMPARE, HOST, JSON, b"Content-Length: 5", CHUNKED) + b"0\r\n\r\n",
        UNAUTHORIZED._replace(stays=False),
    ),
    "gzip, then chunked": (posted(b"Transfer-Encoding: gzip, chunked"), BROKEN),
    "identity": (posted(b"Transfer-Encoding: identity"), BROKEN),
    "xchunked": (posted(b"Transfer-Encoding: xchunked"), BROKEN),
    "chunked twice": (posted(CHUNKED, CHUNKED), BROKEN),
}

CHUNKS = {
    "one chunk": (chunks(), ANSWERED),
    "a chunk a byte": (
        posted(CHUNKED, body=b"".join(b"1\r\n%c\r\n" % byte for byte in TWO) + b"0\r\n\r\n"),
        ANSWERED,
    ),
    "Chunked, for once": (posted(b"transfer-encoding: Chunked", body=b"0\r\n\r\n"), REFUSED),
    "a size with zeros before it": (chunks(b"00047"), ANSWERED),
    "an extension": (chunks(b'47;a=b;c="d"'), ANSWERED),
    "a trailer": (chunks(end=b"0\r\nX-Other: y\r\n\r\n"), ANSWERED),
    "a key in the trailer": (chunks(end=b"0\r\nX-Gateway-Key: other\r\n\r\n"), ANSWERED),
    "16,384 bytes": (chunks(body=TWO.ljust(16_384)), ANSWERED),
    "16,385 bytes": (chunks(body=TWO.ljust(16_385)), REFUSED),
    "16,385 bytes, a chunk each 1,000": (
        posted(
            CHUNKED,
            body=b"".join(b"3e8\r\n%b\r\n" % (b" " * 1_000) for _ in range(16))
            + b"181\r\n%b\r\n0\r\n\r\n" % TWO.ljust(385),
        ),
        REFUSED,
    ),
    "no number": (chunks(b"zz"), BROKEN),
    "a size of -1": (chunks(b"-1"), BROKEN),
    "a size of 0x47": (chunks(b"0x47"), BROKEN),
    "a size of 30 digits": (chunks(b"f" * 30), BROKEN),
    "no end that is one, after a sound body": (chunks(end=b"zz\r\n"), BROKEN),
    "a chunk longer than its size": (chunks(b"46"), BROKEN),
    "a chunk that is none, without a key": (
        request(COMPARE, HOST, JSON, CHUNKED) + b"zz\r\n",
        UNAUTHORIZED._replace(stays=False),
    ),
    "a chunk that is none, at no path": (
        asked(b"POST /nowhere HTTP/1.1", CHUNKED) + b"zz\r\n",
        NO_SUCH_PATH._replace(stays=False),
    ),
    "two million bytes": (chunks(body=TWO.ljust(2_000_000)), BROKEN),
}


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serving_small() as under_way:
        yield under_way


TABLE = {**LINES, **HEADERS, **LENGTHS, **CHUNKS}


@pytest.mark.parametrize(("sent", "expected"), TABLE.values(), ids=TABLE)
def test_each_request_has_its_answer(sent: bytes, expected: Expected, service: Service) -> None:
    check_answer(service, sent, expected)
