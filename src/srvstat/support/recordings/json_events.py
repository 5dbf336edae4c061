"""Read a large JSON text as events, and only those of its values that are asked for."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

import ijson

MAX_TEXT_BYTES = 4 << 20
"""Longer strings, as written in the JSON text, are replaced."""
TOO_LONG = "\0too long\0"
"""Begins the string that replaces a longer one, and is followed by that one's beginning."""

Events = Iterator[tuple[str, Any]]
"""The events of ijson, such as `("map_key", "name")`."""
Shape = Mapping[str, "Shape"] | Callable[[Events], Any] | None
"""The members of an object to read, or a function that reads the rest of an array.

None is a string, a number, true, false or null.
"""

_STARTS = ("start_map", "start_array")
_ENDS = ("end_map", "end_array")

# From outside a string: any complete strings, and the text up to the next one.
_COMPLETE = re.compile(rb'(?:[^"]*+"[^"\\]*+(?:\\.[^"\\]*+)*+")*+[^"]*+', re.DOTALL)
_INSIDE = re.compile(rb"[^\"\\]*+(?:\\.[^\"\\]*+)*+", re.DOTALL)
_BEGINNING = re.compile(rb'"([ !#-\[\]-~]{0,200})')
"""Characters that need no escape, so that the text can be cut after each."""


class Problem(NamedTuple):
    """Stands for a value that does not have its shape."""

    reason: str


def parse_events(chunks: Iterable[bytes]) -> Events:
    """Parse JSON text to events, in little memory however long its strings are.

    Raises ijson.JSONError or ValueError for text that is not JSON, ijson.IncompleteJSONError if it
    ends too early.
    """
    events = ijson.sendable_list()
    parser = ijson.basic_parse_coro(events)
    for chunk in filter(None, limit_strings(chunks)):  # ijson takes an empty one as the end
        parser.send(chunk)
        yield from events
        events.clear()
    parser.close()
    yield from events


def limit_strings(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Replace the strings of JSON text that are longer than MAX_TEXT_BYTES.

    A parser would hold them in memory, in up to four bytes a character.
    """
    rest, is_skipping = b"", False
    for chunk in chunks:
        text = rest + chunk
        if is_skipping:
            end = _find_match_end(_INSIDE, text)
            is_skipping = text[end : end + 1] != b'"'
            if is_skipping:
                rest = text[end:]  # a backslash whose character is in the next chunk, or nothing
                continue
            yield b'"'
            text = text[end + 1 :]
        end = _find_match_end(_COMPLETE, text)
        yield text[:end]
        rest = text[end:]
        if len(rest) > MAX_TEXT_BYTES:
            yield _replace_string(rest)
            is_skipping = True
            rest = rest[_find_match_end(_INSIDE, rest[1:]) + 1 :]
    if not is_skipping:
        yield rest


def _find_match_end(pattern: re.Pattern[bytes], text: bytes) -> int:
    match = pattern.match(text)
    return match.end() if match else 0


def _replace_string(text: bytes) -> bytes:
    """Return the beginning of a string's replacement; its closing quote follows in the text."""
    beginning = _BEGINNING.match(text)
    kept = beginning[1] if beginning else b""
    return b'"' + TOO_LONG.replace("\0", r"\u0000").encode() + kept


def read_value(events: Events, shape: Shape) -> Any:
    """Read the next value and return it, or a Problem.

    An object has the members of its shape that were found; each may be a Problem.
    """
    event, value = next(events)
    if event == "start_map" and isinstance(shape, Mapping):
        return _read_object(events, shape)
    if event == "start_array" and callable(shape):
        return shape(events)
    if event in _STARTS:
        skip_rest(events)
    elif value is None or shape is None:
        return value
    kind = "an object" if isinstance(shape, Mapping) else "an array" if shape else "a plain value"
    return Problem(f"must be {kind}")


def _read_object(events: Events, shape: Mapping[str, Shape]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in read_keys(events):
        if key not in shape:
            skip_value(events)
        elif key in found:
            skip_value(events)
            found[key] = Problem("repeated")
        else:
            found[key] = read_value(events, shape[key])
    return found


def read_keys(events: Events) -> Iterator[str]:
    """Yield the keys of an object that has begun. The caller reads or skips each value."""
    for event, value in events:
        if event == "end_map":
            return
        yield value


def read_items(events: Events) -> Iterator[Events]:
    """Yield for each item of an array that has begun the events from this item on."""
    for first in events:
        if first[0] == "end_array":
            return
        yield chain([first], events)


def skip_value(events: Events) -> None:
    """Skip the next value."""
    event, _ = next(events)
    if event in _STARTS:
        skip_rest(events)


def skip_rest(events: Events) -> None:
    """Skip the rest of an object or array that has begun."""
    depth = 1
    for event, _ in events:
        if event in _STARTS:
            depth += 1
        elif event in _ENDS:
            depth -= 1
            if not depth:
                return
