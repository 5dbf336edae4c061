"""Find the differences between two API responses."""

import re
from collections.abc import Iterator
from decimal import Decimal, DecimalException
from itertools import islice
from typing import Any

from srvstat.contract import wire
from srvstat.contract.wire import EncodedJson
from srvstat.documents.support import Difference

MAX_DIFFERENCES = 1000
"""The maximum number of differences listed for one response."""

EXACT = Decimal(0)
"""The default tolerance: numbers must be equal."""

_MAX_TEXT = 200
_MAX_VALUE = 10_000
"""The maximum length of a value shown, in characters of JSON. Longer values are shortened."""

_CURRENT = re.compile(r"(/data/[0-9]+)?/currentPlayers|/data/players/current")
_INTEGER = re.compile(r"-?[0-9]+")


def compare_bodies(
    recorded: bytes, recomputed: bytes, tolerance: Decimal = EXACT
) -> list[Difference]:
    """Return the differences between the bodies of two responses. `recomputed` must be valid JSON.

    If the recorded body is not JSON, the result is one difference of the whole body. If only white
    space, escapes or the order of keys differ, the result is one difference of class `text`. Values
    are not shortened, so that API keys can be found in them; see `shorten_difference`.
    """
    if recorded == recomputed:
        return []
    texts = [body.decode("utf-8", "backslashreplace") for body in (recorded, recomputed)]
    try:
        theirs, ours = (
            wire.decode(body, convert_number=wire.EncodedJson) for body in (recorded, recomputed)
        )
        wire.encode(theirs)
    except (wire.JsonError, UnicodeEncodeError, RecursionError):
        # Our body has no lone surrogates, and is never nested that deeply.
        return [_build_difference("", *texts)]
    found = find_differences(theirs, ours, tolerance)
    if found or find_differences(theirs, ours):  # within the tolerance
        return found
    return [_build_difference("", *texts, class_="text")]


def find_differences(
    recorded: Any, recomputed: Any, tolerance: Decimal = EXACT
) -> list[Difference]:
    """Return the differences between two JSON values, at most MAX_DIFFERENCES.

    Numbers may be EncodedJson, so that their texts are compared too. Numbers differ only if they
    are more than `tolerance` apart.
    """
    return [*islice(_iter_differences(recorded, recomputed, "", tolerance), MAX_DIFFERENCES)]


def is_number_equal(recorded: str, recomputed: str, tolerance: Decimal = EXACT) -> bool:
    """Return whether two JSON numbers are equal: integers exactly, others as doubles."""
    are_integers = _INTEGER.fullmatch(recorded) and _INTEGER.fullmatch(recomputed)
    if not are_integers and float(recorded) == float(recomputed):
        return True
    try:
        return abs(Decimal(recorded) - Decimal(recomputed)) <= tolerance
    except DecimalException:  # an exponent beyond all limits
        return False


def shorten_difference(difference: Difference) -> Difference:
    """Shorten values that are too long to show."""
    # The text of a whole body is shown only to identify it.
    longest_text = _MAX_VALUE if difference.pointer else _MAX_TEXT
    names = ("recorded", "recomputed")
    values = {name: _shorten(getattr(difference, name), longest_text) for name in names}
    return difference.model_copy(update=values)


def escape_step(key: str) -> str:
    """Escape a key for a JSON Pointer (RFC 6901, section 3)."""
    return key.replace("~", "~0").replace("/", "~1")


def unescape_step(step: str) -> str:
    """Return the key of a JSON Pointer step."""
    return step.replace("~1", "/").replace("~0", "~")


def _iter_differences(
    recorded: Any, recomputed: Any, pointer: str, tolerance: Decimal
) -> Iterator[Difference]:
    if isinstance(recorded, list | tuple) and isinstance(recomputed, list | tuple):
        recorded, recomputed = dict(enumerate(recorded)), dict(enumerate(recomputed))
    if isinstance(recorded, dict) and isinstance(recomputed, dict):
        yield from _compare_members(recorded, recomputed, pointer, tolerance)
    elif _is_number(recorded) and _is_number(recomputed):
        yield from _compare_numbers(recorded, recomputed, pointer, tolerance)
    elif type(recorded) is not type(recomputed) or recorded != recomputed:
        yield _build_difference(pointer, recorded, recomputed)


def _compare_members(
    recorded: dict[Any, Any], recomputed: dict[Any, Any], pointer: str, tolerance: Decimal
) -> Iterator[Difference]:
    for key in {**recomputed, **recorded}:
        step = f"{pointer}/{escape_step(str(key))}"
        if key not in recorded:
            yield _build_difference(step, None, recomputed[key], absent_in="recorded")
        elif key not in recomputed:
            yield _build_difference(step, recorded[key], None, absent_in="recomputed")
        else:
            yield from _iter_differences(recorded[key], recomputed[key], step, tolerance)


def _compare_numbers(
    recorded: Any, recomputed: Any, pointer: str, tolerance: Decimal
) -> Iterator[Difference]:
    theirs, ours = (wire.encode(number).decode() for number in (recorded, recomputed))
    if theirs != ours and is_number_equal(theirs, ours):
        yield _build_difference(pointer, recorded, recomputed, class_="text")
    elif not is_number_equal(theirs, ours, tolerance):
        is_current = _CURRENT.fullmatch(pointer) and theirs.isdigit()  # never 27.5 or -1
        class_ = "current" if is_current else "value"
        yield _build_difference(pointer, recorded, recomputed, class_=class_)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | EncodedJson) and not isinstance(value, bool)


def _build_difference(pointer: str, recorded: Any, recomputed: Any, **more: Any) -> Difference:
    theirs, ours = (
        wire.encode_once(value) if isinstance(value, dict | list | tuple) else value
        for value in (recorded, recomputed)
    )
    values: dict[str, Any] = {"recorded": theirs, "recomputed": ours, "class_": "value"}
    return Difference(pointer=pointer, **values | more)


def _shorten(value: Any, longest_text: int) -> Any:
    """Return a value, or the beginning of its text if the text is too long."""
    text, longest = value, longest_text
    if isinstance(value, EncodedJson):
        text, longest = value.text, _MAX_VALUE
    is_long = isinstance(text, str) and len(text) > longest
    return f"{text[:_MAX_TEXT]}…" if is_long else value
