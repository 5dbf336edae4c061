"""Request lines, headers, lengths and chunks, as bytes on a socket.

The pinned h11 accepts a bare LF, a folded header and HTTP/1.2.
"""

from collections.abc import Iterator

import pytest

from asgi.small_service import (
    COMPARISON,
    INVALID_REQUEST,
    MALFORMED,
    SERVER_FOUND,
    UNAUTHORIZED,
    UNKNOWN_PATH,
    serve_small,
)
from support.http import COMPARE, HOST, JSON, KEY, TWO, A, Expected, check_answer, request
from support.process import Service

CHUNKED = b"Transfer-Encoding: chunked"
CLOSE = {"connection": "close"}


def compare_with(*headers: bytes, body: bytes = TWO) -> bytes:
    """Return a comparison with the given headers about its body."""
    return request(COMPARE, HOST, KEY, JSON, *headers) + body


def build_chunked(*sizes: bytes, body: bytes = TWO, end: bytes = b"0\r\n\r\n") -> bytes:
    """Return a chunked comparison; `sizes` are the lines before its single chunk."""
    lines = b"".join(size + b"\r\n" for size in sizes or (b"%x" % len(body),))
    return compare_with(CHUNKED, body=lines + body + b"\r\n" + end)


def get_with(line: bytes, *headers: bytes) -> bytes:
    return request(line, HOST, KEY, *headers)


LINES = {
    "a plain request": (get_with(A), SERVER_FOUND),
    "no version": (get_with(b"GET /gateway/v1/servers/a"), MALFORMED),
    "two spaces": (get_with(b"GET  /gateway/v1/servers/a HTTP/1.1"), MALFORMED),
    "tabs": (get_with(b"GET\t/gateway/v1/servers/a\tHTTP/1.1"), MALFORMED),
    "a space at the end": (get_with(A + b" "), MALFORMED),
    "a space at the start": (get_with(b" " + A), MALFORMED),
    "an empty line before it": (b"\r\n" + get_with(A), SERVER_FOUND),
    "two empty lines before it": (b"\r\n\r\n" + get_with(A), MALFORMED),
    "a bare LF before it": (b"\n" + get_with(A), MALFORMED),
    "a bare CR before it": (b"\r" + get_with(A), MALFORMED),
    "a space in the target": (get_with(b"GET /gateway/v1/servers/a b HTTP/1.1"), MALFORMED),
    "no target": (get_with(b"GET HTTP/1.1"), MALFORMED),
    "no method": (get_with(b"/gateway/v1/servers/a HTTP/1.1"), MALFORMED),
    "a method that is not a token": (get_with(A.replace(b"GET", b"GE{T")), MALFORMED),
    "http in lower case": (get_with(A.replace(b"HTTP", b"http")), MALFORMED),
    "HTTP/1.2": (get_with(A.replace(b"1.1", b"1.2")), SERVER_FOUND),
    "HTTP/0.9": (get_with(A.replace(b"1.1", b"0.9")), MALFORMED),
    "HTTP/2.0": (get_with(A.replace(b"1.1", b"2.0")), MALFORMED),
    "HTTP/3.0": (get_with(A.replace(b"1.1", b"3.0")), MALFORMED),
    "HTTP/3.0 with a body": (
        request(COMPARE.replace(b"1.1", b"3.0"), HOST, KEY, JSON, body=TWO),
        MALFORMED,
    ),
    "HTTP/1.10": (get_with(A.replace(b"1.1", b"1.10")), MALFORMED),
    "HTTP/11": (get_with(A.replace(b"1.1", b"11")), MALFORMED),
    "zeros": (b"\x00" * 40 + b"\r\n\r\n", MALFORMED),
    "the start of TLS": (bytes.fromhex("16030100c8010000c40303") + bytes(200), MALFORMED),
    "a bare LF at each line": (get_with(A).replace(b"\r\n", b"\n"), SERVER_FOUND),
    "bytes beyond ASCII": (get_with(b"GET /gateway/v1/servers/\xc3\xa4 HTTP/1.1"), MALFORMED),
    "a control character": (get_with(b"GET /gateway/v1/servers/a\x01 HTTP/1.1"), MALFORMED),
    "DEL": (get_with(b"GET /gateway/v1/servers/a\x7f HTTP/1.1"), MALFORMED),
    "HTTP/1.0": (request(A.replace(b"1.1", b"1.0"), KEY), SERVER_FOUND._replace(stays=False)),
    "HTTP/1.0 with keep-alive": (
        request(A.replace(b"1.1", b"1.0"), KEY, b"Connection: keep-alive"),
        SERVER_FOUND._replace(stays=False),
    ),
    "HTTP/1.0 with a body": (
        request(COMPARE.replace(b"1.1", b"1.0"), KEY, JSON, body=TWO),
        COMPARISON._replace(stays=False),
    ),
}

HEADERS = {
    "no Host": (request(A, KEY), MALFORMED),
    "two Hosts": (request(A, HOST, HOST, KEY), MALFORMED),
    "an empty Host": (request(A, b"Host:", KEY), SERVER_FOUND),
    "a folded header": (request(A, HOST, b"X-Gateway-Key:\r\n k"), SERVER_FOUND),
    "a fold before any header": (request(A, b" " + HOST, KEY), MALFORMED),
    "a space after a name": (request(A, HOST, b"X-Gateway-Key : k"), MALFORMED),
    "a space in a name": (get_with(A, b"X y: z"), MALFORMED),
    "no colon": (get_with(A, b"nothing"), MALFORMED),
    "an empty name": (get_with(A, b": z"), MALFORMED),
    "a name beyond ASCII": (get_with(A, b"X\xc3\xa4: z"), MALFORMED),
    "NUL in a value": (get_with(A, b"X: y\x00z"), MALFORMED),
    "a bare CR in a value": (get_with(A, b"X: y\rZ: z"), MALFORMED),
    "a value beyond ASCII": (get_with(A, b"X: \xff\xfe"), SERVER_FOUND),
    "Connection: close": (
        get_with(A, b"Connection: Close"),
        Expected(SERVER_FOUND.status, SERVER_FOUND.body, stays=False, headers=CLOSE),
    ),
    "a websocket": (
        get_with(
            A,
            b"Connection: upgrade",
            b"Upgrade: websocket",
            b"Sec-WebSocket-Version: 13",
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        ),
        SERVER_FOUND,
    ),
    "HTTP/2 on the same connection": (
        get_with(
            A, b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMA"
        ),
        SERVER_FOUND,
    ),
    "400 headers": (get_with(A, *(b"X-%d: y" % number for number in range(400))), SERVER_FOUND),
    "headers of 15,000 bytes": (get_with(A, b"X: " + b"y" * 15_000), SERVER_FOUND),
    "headers of 16,400 bytes": (get_with(A, b"X: " + b"y" * 16_400), INVALID_REQUEST),
}

LENGTHS = {
    "a length": (compare_with(b"Content-Length: %d" % len(TWO)), COMPARISON),
    "the same length twice": (compare_with(*[b"Content-Length: %d" % len(TWO)] * 2), COMPARISON),
    "the same length in a list": (compare_with(b"Content-Length: 71, 71"), COMPARISON),
    "two lengths": (compare_with(b"Content-Length: 71", b"Content-Length: 5"), MALFORMED),
    "two lengths in a list": (compare_with(b"Content-Length: 71, 5"), MALFORMED),
    "-1": (compare_with(b"Content-Length: -1"), MALFORMED),
    "+71": (compare_with(b"Content-Length: +71"), MALFORMED),
    "0x47": (compare_with(b"Content-Length: 0x47"), MALFORMED),
    "71.0": (compare_with(b"Content-Length: 71.0"), MALFORMED),
    "an empty length": (compare_with(b"Content-Length:"), MALFORMED),
    "a length beyond ASCII": (compare_with("Content-Length: \u0667\u0661".encode()), MALFORMED),
    "21 digits": (compare_with(b"Content-Length: " + b"9" * 21), MALFORMED),
    "5,000 digits": (compare_with(b"Content-Length: " + b"9" * 5_000), MALFORMED),
    "no length": (compare_with(body=b""), INVALID_REQUEST),
    "a length of zero": (compare_with(b"Content-Length: 0", body=b""), INVALID_REQUEST),
    "zeros before the length": (compare_with(b"Content-Length: 0000000071"), COMPARISON),
    "a length and chunks": (
        compare_with(b"Content-Length: 71", CHUNKED, body=b"47\r\n" + TWO + b"\r\n0\r\n\r\n"),
        INVALID_REQUEST._replace(stays=False, headers=CLOSE),
    ),
    "a length and chunks, without a key": (
        request(COMPARE, HOST, JSON, b"Content-Length: 5", CHUNKED) + b"0\r\n\r\n",
        UNAUTHORIZED._replace(stays=False),
    ),
    "gzip, then chunked": (compare_with(b"Transfer-Encoding: gzip, chunked"), MALFORMED),
    "identity": (compare_with(b"Transfer-Encoding: identity"), MALFORMED),
    "xchunked": (compare_with(b"Transfer-Encoding: xchunked"), MALFORMED),
    "chunked twice": (compare_with(CHUNKED, CHUNKED), MALFORMED),
}

CHUNKS = {
    "one chunk": (build_chunked(), COMPARISON),
    "a chunk a byte": (
        compare_with(CHUNKED, body=b"".join(b"1\r\n%c\r\n" % byte for byte in TWO) + b"0\r\n\r\n"),
        COMPARISON,
    ),
    "a capital in chunked, and no body": (
        compare_with(b"transfer-encoding: Chunked", body=b"0\r\n\r\n"),
        INVALID_REQUEST,
    ),
    "a size with zeros before it": (build_chunked(b"00047"), COMPARISON),
    "an extension": (build_chunked(b'47;a=b;c="d"'), COMPARISON),
    "a trailer": (build_chunked(end=b"0\r\nX-Other: y\r\n\r\n"), COMPARISON),
    "a key in the trailer": (build_chunked(end=b"0\r\nX-Gateway-Key: other\r\n\r\n"), COMPARISON),
    "16,384 bytes": (build_chunked(body=TWO.ljust(16_384)), COMPARISON),
    "16,385 bytes": (build_chunked(body=TWO.ljust(16_385)), INVALID_REQUEST),
    "16,385 bytes, a chunk each 1,000": (
        compare_with(
            CHUNKED,
            body=b"".join(b"3e8\r\n%b\r\n" % (b" " * 1_000) for _ in range(16))
            + b"181\r\n%b\r\n0\r\n\r\n" % TWO.ljust(385),
        ),
        INVALID_REQUEST,
    ),
    "no number": (build_chunked(b"zz"), MALFORMED),
    "a size of -1": (build_chunked(b"-1"), MALFORMED),
    "a size of 0x47": (build_chunked(b"0x47"), MALFORMED),
    "a size of 30 digits": (build_chunked(b"f" * 30), MALFORMED),
    "a malformed end after a valid body": (build_chunked(end=b"zz\r\n"), MALFORMED),
    "a chunk longer than its size": (build_chunked(b"46"), MALFORMED),
    "a malformed chunk without a key": (
        request(COMPARE, HOST, JSON, CHUNKED) + b"zz\r\n",
        UNAUTHORIZED._replace(stays=False),
    ),
    "a malformed chunk at an unknown path": (
        get_with(b"POST /nowhere HTTP/1.1", CHUNKED) + b"zz\r\n",
        UNKNOWN_PATH._replace(stays=False),
    ),
    "two million bytes": (build_chunked(body=TWO.ljust(2_000_000)), MALFORMED),
}


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serve_small() as running:
        yield running


TABLE = {**LINES, **HEADERS, **LENGTHS, **CHUNKS}


@pytest.mark.parametrize(("sent", "expected"), TABLE.values(), ids=TABLE)
def test_request_has_the_expected_answer(sent: bytes, expected: Expected, service: Service) -> None:
    check_answer(service, sent, expected)
