"""A second validator of request bodies, written only from the specification and the decisions.

It does not parse JSON. A valid body contains only objects, arrays and strings, and its strings
consist of ASCII letters, digits and hyphens, plain or escaped. So one regular expression matches
every valid body, and only a few words remain to be checked.
"""

import re

RANGES = ("24h", "7d", "30d", "90d", "1y")
NAMESPACES = ("id", "cfxId")
MAX_BYTES = 16_384

Verdict = tuple[list[tuple[str, str]], str]
"""The references, as (namespace, identifier), and the range."""

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


def compute_verdict(body: bytes) -> Verdict | None:
    """Return the references and the range of a body; None if it is invalid."""
    shape = _BODY.fullmatch(body)
    if shape is None or len(body) > MAX_BYTES:
        return None
    before, (servers, *words), after = map(_read_words, shape.groups(b""))
    if before and after:
        return None
    (range_key, range_name) = before or after or ["range", "30d"]
    references = [_read_reference(*words[at : at + 4]) for at in range(0, len(words), 4)]
    is_sound = (
        (servers, range_key) == ("servers", "range")
        and range_name in RANGES
        and all(by in NAMESPACES and _IDENTIFIER.fullmatch(name) for by, name in references)
        and len(set(references)) == len(references)
    )
    return (references, range_name) if is_sound else None


def _read_words(part: bytes) -> list[str]:
    # The expression admits only escapes that Python decodes in the same way.
    return [word.decode("unicode_escape") for word in _QUOTED.findall(part)]


def _read_reference(key: str, value: str, other_key: str, other_value: str) -> tuple[str, str]:
    """Return (namespace, identifier); empty strings for unknown keys."""
    match key, other_key:
        case "by", "identifier":
            return value, other_value
        case "identifier", "by":
            return other_value, value
    return "", ""
