"""Read the items of a large JSON text one after another, in little memory."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import ijson

MAX_TEXT_BYTES = 4 << 20
"""The maximum length of a string, as written in the JSON text. Longer strings are replaced."""
TOO_LONG = "\0too long\0"
"""The prefix of the string that replaces an over-long string. The beginning of the latter
follows.
"""

Events = Iterator[tuple[str, Any]]
"""The events of ijson, such as `("map_key", "name")`."""

_BEGINNINGS = ("start_map", "start_array", "map_key")
"""Events that are never the last of an item."""

# From outside a string: any complete strings, and the text up to the next one.
# The outer group is not possessive: when a possessive group fails at an incomplete string, Python
# before 3.11.5 continues from there instead of from the end of the last complete string.
_COMPLETE = re.compile(rb'(?:[^"]*+"[^"\\]*+(?:\\.[^"\\]*+)*+")*[^"]*+', re.DOTALL)
_INSIDE = re.compile(rb"[^\"\\]*+(?:\\.[^\"\\]*+)*+", re.DOTALL)
_BEGINNING = re.compile(rb'"([ !#-\[\]-~]{0,200})')
"""Characters that need no escape, so that the text can be cut after any of them."""
_SURROGATES = re.compile(
    rb"\\\\|\\u[Dd][89ABab]..\\u[Dd][C-Fc-f]|\\u([Dd][89A-Fa-f][0-9A-Fa-f]{2})"
)
"""Escaped backslashes and surrogate pairs and, as a group, escaped lone surrogates."""
_REPLACEMENT = rb"\ufffd"
_MAX_DIGITS = 4_300
"""Python does not convert longer numbers, and reading them would take very long."""
_NOT_JSON = b"!"
_TOO_LONG = b'"' + TOO_LONG.replace("\0", r"\u0000").encode()


class NotJsonError(ValueError):
    """The text is not JSON."""


class CutOffError(ValueError):
    """The JSON text is truncated."""


class MissingArrayError(ValueError):
    """The path has no array in the text, or several arrays."""


_PARSE_ERRORS = (ijson.JSONError, ValueError, SystemError, ArithmeticError)
"""ijson's errors. Besides JSONError, which includes IncompleteJSONError, ijson raises ValueError in
its Python backend, SystemError for too many digits, and ArithmeticError for too large exponents.
"""


def parse_events(chunks: Iterable[bytes]) -> Events:
    """Parse JSON text to events. Long strings do not increase the memory used.

    Raises NotJsonError if the text is not JSON, and CutOffError if it ends too early.
    """
    events = ijson.sendable_list()
    parser = ijson.basic_parse_coro(events)
    for chunk in filter(None, limit_strings(chunks)):  # ijson treats an empty chunk as the end
        try:
            is_number = len(chunk) > _MAX_DIGITS and chunk.isdigit()
            parser.send(_NOT_JSON if is_number else _replace_surrogates(chunk))
        except _PARSE_ERRORS as error:
            if isinstance(error, SystemError):
                # The value of the last event is a null pointer: reading it ends the process.
                del events[-1:]
            yield from events  # events before the error
            raise NotJsonError from None
        yield from events
        events.clear()
    try:
        parser.close()
    except ijson.IncompleteJSONError:
        raise CutOffError from None
    except _PARSE_ERRORS:
        raise NotJsonError from None
    yield from events


def _replace_surrogates(text: bytes) -> bytes:
    """Replace lone surrogates, as browsers do when they send text. ijson refuses some of them."""
    if b"\\ud" not in text.lower():
        return text
    return _SURROGATES.sub(lambda match: _REPLACEMENT if match[1] else match[0], text)


def limit_strings(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Replace the strings of JSON text that are longer than MAX_TEXT_BYTES.

    A parser would hold them in memory, using up to four bytes per character.
    """
    parts: list[bytes] = []  # parts of a string whose end is not yet known
    size, backslash = (
        0,
        b"",
    )  # a backslash at the end of a chunk escapes a character of the next chunk
    for chunk in chunks:
        text, backslash, start = backslash + chunk, b"", 0
        while start < len(text):
            if not parts:
                end = _find_end(_COMPLETE, text, start)
                yield text[start:end]
                if end < len(text):
                    parts, size = [b'"'], 0
                start = end + 1
                continue
            end = _find_end(_INSIDE, text, start)
            if size <= MAX_TEXT_BYTES:
                parts.append(text[start:end])
                size += end - start
                if size > MAX_TEXT_BYTES:
                    beginning = _BEGINNING.match(b"".join(parts))
                    parts = [_TOO_LONG, beginning[1] if beginning else b""]
            if text[end : end + 1] == b'"':
                yield b"".join([*parts, b'"'])
                parts = []
            else:
                backslash = text[end:]
                break
            start = end + 1
    # Inside a string, the text is incomplete.
    yield b"".join([*parts, backslash])


def _find_end(pattern: re.Pattern[bytes], text: bytes, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


def iter_items(chunks: Iterable[bytes], path: str) -> Iterator[Any]:
    """Yield the items of the array at a path, such as `log.entries`, then read to the end.

    Omits members whose names begin with `_`, except for Playwright's `_file`.

    Raises MissingArrayError unless the path has exactly one array, and the errors of
    `parse_events`.
    """
    item, arrays = f"{path}.item", 0
    builder = ijson.ObjectBuilder()
    for prefix, event, value in ijson.parse(parse_events(chunks)):
        if prefix == path:
            arrays += event == "start_array"
        # Members such as `_webSocketMessages`, the recordings of WebSockets, can be very large.
        elif arrays and prefix.startswith(item) and "._" not in prefix.removesuffix("._file"):
            builder.event(event, value)
            if prefix == item and event not in _BEGINNINGS:
                yield builder.value
                builder = ijson.ObjectBuilder()
    if arrays != 1:
        raise MissingArrayError
