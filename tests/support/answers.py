"""HTTP answers in what a socket has received: enough of HTTP for the load client."""

import re
from typing import NamedTuple

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
_NO_BODY = (204, 304)


class Answer(NamedTuple):
    """An answer that has come whole."""

    status: int
    body: bytes
    is_last: bool
    """Whether the server closes the connection after it."""


def answer_in(received: bytes, *, is_head: bool) -> Answer | None:
    """Return the answer that was received; None while it is not whole.

    Raises ValueError for what is no answer, or more than one.
    """
    head, blank, rest = received.partition(b"\r\n\r\n")
    if not blank:
        return None
    status, is_last = int(head[9:12]), bool(_CLOSE.search(head))
    if is_head or status in _NO_BODY:
        if rest:
            raise ValueError("a body where there is none")
        return Answer(status, b"", is_last)
    if length := _LENGTH.search(head):
        body = rest if len(rest) >= int(length[1]) else None
        if body is not None and len(body) > int(length[1]):
            raise ValueError("more than an answer")
    elif _CHUNKED.search(head):
        body = _dechunked(rest)
    else:
        raise ValueError("an answer without a length")
    return None if body is None else Answer(status, body, is_last)


def _dechunked(data: bytes) -> bytes | None:
    """Return a body that came in chunks; None while it is not whole.

    Raises ValueError.
    """
    body = b""
    while True:
        digits, end, data = data.partition(b"\r\n")
        if not end:
            return None
        size = int(digits, 16)
        if len(data) < size + 2:
            return None
        if data[size : size + 2] != b"\r\n":
            raise ValueError("a chunk without an end")
        if not size:
            return body
        body, data = body + data[:size], data[size + 2 :]
