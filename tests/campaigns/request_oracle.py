"""A second judge of request bodies, written from the specification and the decisions alone.

It reads no JSON. A valid body holds nothing but objects, arrays and strings, and each of its
strings is made of ASCII letters, digits and hyphens, plain or escaped. So every valid body matches
one expression over bytes, and what is left to judge is a few words.
"""

import re

RANGES = ("24h", "7d", "30d", "90d", "1y")
NAMESPACES = ("id", "cfxId")
MOST_BYTES = 16_384

Verdict = tuple[list[tuple[str, str]], str]
"""The references, each with its namespace first, and the range."""

_S = r"[ \t\n\r]*"
_WORD = r'"[A-Za-z0-9-]*(?:\\u00[2-7][0-9A-Fa-f][A-Za-z0-9-]*)*"'
_MEMBER = rf"{_WORD}{_S}:{_S}{_WORD}"
_REFERENCE = rf"\{{{_S}{_MEMBER}{_S},{_S}{_MEMBER}{_S}\}}"
_SERVERS = rf"{_WORD}{_S}:{_S}\[{_S}{_REFERENCE}(?:{_S},{_S}{_REFERENCE}){{1,4}}{_S}\]"
_BODY = re.compile(
    rf"{_S}\{{{_S}(?:({_MEMBER}){_S},{_S})?({_SERVERS})(?:{_S},{_S}({_MEMBER}))?{_S}\}}{_S}".encode()
)
_QUOTED = re.compile(rb'"([^"]*)"')
_IDENTIFIER = re.compile(r"[A-Za-z0-9-]{1,128}")


def expected(body: bytes) -> Verdict | None:
    """Judge a body; None means that it is refused."""
    shape = _BODY.fullmatch(body)
    if shape is None or len(body) > MOST_BYTES:
        return None
    before, (servers, *words), after = map(_words, shape.groups(b""))
    if before and after:
        return None
    (range_key, range_name) = before or after or ["range", "30d"]
    references = [_reference(*words[at : at + 4]) for at in range(0, len(words), 4)]
    is_sound = (
        (servers, range_key) == ("servers", "range")
        and range_name in RANGES
        and all(by in NAMESPACES and _IDENTIFIER.fullmatch(name) for by, name in references)
        and len(set(references)) == len(references)
    )
    return (references, range_name) if is_sound else None


def _words(part: bytes) -> list[str]:
    # No other escapes came so far than those that Python reads in the same way.
    return [word.decode("unicode_escape") for word in _QUOTED.findall(part)]


def _reference(key: str, value: str, other_key: str, other_value: str) -> tuple[str, str]:
    """Return the namespace and the identifier; a namespace that is none for keys that are not."""
    match key, other_key:
        case "by", "identifier":
            return value, other_value
        case "identifier", "by":
            return other_value, value
    return "", ""
