"""Decode the bodies of a HAR file: base64, and compression that was not undone."""

import base64
import zlib

MAX_BODY_BYTES = 4 << 20
"""No body of the API comes near; more is refused instead of decompressed."""

_ZLIB_START = b"\x78"
_ANY_HEADER, _NO_HEADER = zlib.MAX_WBITS | 32, -zlib.MAX_WBITS
_GZIP = (b"gzip", b"x-gzip")


class BodyError(ValueError):
    """A body can't be read. The message gives its place in the entry and the reason."""


def decode_body(place: str, text: str, encoding: str) -> bytes:
    """Return the bytes of a body, given its text and the encoding of the text ("" or base64).

    Raises BodyError.
    """
    if not encoding:
        return text.encode()
    if encoding.lower() != "base64":
        raise BodyError(f"{place}.encoding: not base64")
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except ValueError:  # binascii.Error, or a character that is not ASCII
        raise BodyError(f"{place}.text: not base64") from None


def decompress(place: str, body: bytes, coding: bytes) -> bytes:
    """Return a body decompressed if it still is compressed as its `Content-Encoding` says.

    Most programs record the decompressed body beside the original header.

    Raises BodyError for a coding that can't be decompressed, and for damaged or too much data.
    """
    # Compressed data is not UTF-8: neither its first bytes nor its checksum.
    if not coding or coding == b"identity" or _is_text(body):
        return body
    if coding in _GZIP:
        return _inflate(place, body, _ANY_HEADER)
    if coding == b"deflate":
        return _inflate(place, body, _ANY_HEADER if body.startswith(_ZLIB_START) else _NO_HEADER)
    name = coding.decode("latin-1") if coding.isalnum() else "an unknown coding"
    raise BodyError(
        f"{place}: compressed with {name[:20]}; export it again with decompressed bodies"
    )


def _is_text(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _inflate(place: str, body: bytes, window_bits: int) -> bytes:
    stream = zlib.decompressobj(window_bits)
    try:
        text = stream.decompress(body, MAX_BODY_BYTES + 1)
    except zlib.error:
        raise BodyError(f"{place}: damaged compressed data") from None
    if len(text) > MAX_BODY_BYTES:
        raise BodyError(f"{place}: more than {MAX_BODY_BYTES:,} bytes when decompressed")
    if not stream.eof:
        raise BodyError(f"{place}: compressed data that is cut off")
    return text
