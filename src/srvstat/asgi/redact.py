"""Keys, taken out of whatever is logged or sent back: a client may put one anywhere."""

import re
from collections.abc import Callable, Iterator, Sequence
from json import dumps, loads
from urllib.parse import unquote, unquote_to_bytes

HIDDEN = "[key]"
_OURS = re.compile(r"srvstat_[A-Za-z0-9_-]{8,}")
"""Looks like a key of an access file, or like the beginning of one."""

_CUT = "…"
_MOST_QUOTED = 60
_SHORTEST_SECRET = 8
"""Fewer characters are no secret: they stand in any text, and to take them out would tell them."""

_VALUE = re.compile(r'"(?:[^"\\…]|\\.)*"|[A-Za-z0-9_-]{8,}')
"""What a reason quotes, or names without quotation marks: an identifier or a property."""

IsKey = Callable[[bytes], bool]
"""Says whether the access file has the digest of such a key."""


def is_known(text: str, is_key: IsKey) -> bool:
    """Say whether a part of a request's head is a key, and long enough to be a secret."""
    return len(text) >= _SHORTEST_SECRET and is_key(text.encode("latin-1"))


def path_without_known(path: str, is_key: IsKey) -> str:
    """Return a path without those of its pieces that are keys, plain or percent-encoded."""
    return "/".join(
        HIDDEN if _is_known_piece(piece, is_key) else piece for piece in path.split("/")
    )


def _is_known_piece(piece: str, is_key: IsKey) -> bool:
    if "%" not in piece:
        return is_known(piece, is_key)
    key = unquote_to_bytes(piece.encode("latin-1"))
    return len(key) >= _SHORTEST_SECRET and is_key(key)


def reason_without_known(reason: str, is_key: IsKey) -> str:
    """Return a reason without those values that are keys. One that is cut can't be known."""

    def hidden(found: re.Match[str]) -> str:
        return HIDDEN if _is_known_value(_unquoted(found[0]), is_key) else found[0]

    return _VALUE.sub(hidden, reason)


def _unquoted(text: str) -> str:
    try:
        return str(loads(text)) if text.startswith('"') else text
    except ValueError:  # a reason may hold quotation marks that are not those of JSON
        return text


def _is_known_value(value: str, is_key: IsKey) -> bool:
    return len(value) >= _SHORTEST_SECRET and is_key(value.encode("utf-8", "replace"))


def without_keys(text: str, keys: Sequence[str]) -> str:
    """Return a text without the keys that came with its request, and without any of our own form.

    A text that holds one percent-encoded is returned decoded.
    """
    plain = unquote(text, "latin-1")
    hidden = _OURS.sub(HIDDEN, plain)
    for key in keys:
        for spelled in _spellings(key) if len(key) >= _SHORTEST_SECRET else ():
            hidden = _without_beginning(hidden.replace(spelled, HIDDEN), spelled)
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
    quote_value, cut, rest = text.partition(_CUT)
    if cut:
        for length in range(min(len(key), _MOST_QUOTED), _SHORTEST_SECRET - 1, -1):
            if quote_value.endswith(key[:length]):
                return f"{quote_value[:-length]}{HIDDEN}{cut}{rest}"
    return text
