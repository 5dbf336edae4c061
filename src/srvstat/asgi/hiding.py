"""Keys, taken out of whatever is logged or sent back: a client may put one anywhere."""

import re
from collections.abc import Iterator, Sequence
from json import dumps
from urllib.parse import unquote

_HIDDEN = "[key]"
_OURS = re.compile(r"srvstat_[A-Za-z0-9_-]{8,}")
"""Looks like a key of an access file, or like the beginning of one."""

_CUT = "…"
_MOST_QUOTED = 60
_SHORTEST_SECRET = 8
"""Fewer characters are no secret: they stand in any text, and to take them out would tell them."""


def without_keys(text: str, keys: Sequence[str]) -> str:
    """Return a text without the keys that came with its request, and without any of our own form.

    A text that holds one percent-encoded is returned decoded.
    """
    plain = unquote(text, "latin-1")
    hidden = _OURS.sub(_HIDDEN, plain)
    for key in keys:
        for spelled in _spellings(key) if len(key) >= _SHORTEST_SECRET else ():
            hidden = _without_beginning(hidden.replace(spelled, _HIDDEN), spelled)
    return text if hidden == plain else hidden


def _spellings(key: str) -> Iterator[str]:
    """Yield a key as it was sent, and as it is quoted where it stood in a body or a path."""
    yield key
    if not key.isascii() or '"' in key or "\\" in key:
        text = key.encode("latin-1").decode("utf-8", "replace")
        yield text
        for told in (key, text):
            yield dumps(told, ensure_ascii=False)[1:-1]


def _without_beginning(text: str, key: str) -> str:
    """Take out what is left of a key where a quotation was cut."""
    quoted, cut, rest = text.partition(_CUT)
    if cut:
        for length in range(min(len(key), _MOST_QUOTED), _SHORTEST_SECRET - 1, -1):
            if quoted.endswith(key[:length]):
                return f"{quoted[:-length]}{_HIDDEN}{cut}{rest}"
    return text
