"""Find and hide keys in the data that clients send, before the data are logged or stored."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Self

from srvstat.contract.http import KEY_NAME, Headers, find_values

HIDDEN = "[key]"
"""The replacement of a key in the log."""
HIDDEN_PART = "…".encode()
"""The replacement of a key in a recording."""
_SHORTEST_SECRET = 8
"""The minimum length of a key to hide. Shorter keys may be common words."""

_GENERATED_KEY = re.compile(r"srvstat_[A-Za-z0-9_-]{8,}")
_QUOTATION = re.compile(rf'".{{{_SHORTEST_SECRET},}}["…]', re.DOTALL)
"""From the first quotation mark to the last quotation mark, or to the … of a shortened
quotation.
"""
_WORD = re.compile(rf"[A-Za-z0-9_-]{{{_SHORTEST_SECRET},}}")
"""A word outside quotation marks, such as an identifier or a property name."""

_PIECES = (
    re.compile(r"[A-Za-z0-9_-]{8,}"),
    re.compile(r'[^\s"/?&=,:;]{8,}'),
    re.compile(r"[^/?&=]{8,}"),
    re.compile(r"=([^&]*)"),
    re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)', re.DOTALL),
)
"""Parts of a text that can be a key: words, parts of a path or a query, JSON strings."""
_SECRET_PARAMETER = re.compile(
    r"([?&][^?=&]*(?:key|token|secret|password|signature|auth|authorization|session)(?:_?id)?=)"
    r"[^&]+",
    re.IGNORECASE,
)
"""A query parameter whose name suggests that its value is secret. No operation has such a
parameter.
"""
_REST_OF_ADDRESS = re.compile(rb"[?#].*", re.DOTALL)
_REST_OF_METHOD = re.compile(r"[^A-Za-z0-9!#$%&'*+.^_`|~-].*", re.DOTALL)
_SECRETS_OF_ADDRESS = re.compile(r"""(?<=//)[^/\s"]*@|[?#](?:\\.|[^"\\])*""")
"""The user with the password, the query and the fragment of an address in a message."""
_ESCAPES = {
    "%": re.compile(r"%(?:25)*[0-9A-Fa-f]{2}"),  # also if encoded several times
    "\\": re.compile(r'(?:\\u[0-9A-Fa-f]{4})+|\\["\\/bfnrt]'),
}
"""The escapes of URLs and of JSON strings, by their first character."""
_SHORT_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class KeyFilter(NamedTuple):
    """Find and hide keys, which a client may send in any part of a request."""

    own_keys: Sequence[str]
    """The keys in the request's header, decoded as Latin-1."""
    is_registered: Callable[[bytes], bool]
    """Returns whether the access file contains a key."""

    @classmethod
    def for_headers(cls, headers: Headers, is_registered: Callable[[bytes], bool]) -> Self:
        """Return the filter for a request with these headers."""
        return cls([key.decode("latin-1") for key in find_values(headers, KEY_NAME)], is_registered)

    def has_key(self, text: str) -> bool:
        """Return whether a text is a registered key, or contains a generated or sent key."""
        return len(text) >= _SHORTEST_SECRET and (
            any(key in text for key in self.own_keys if len(key) >= _SHORTEST_SECRET)
            or _GENERATED_KEY.search(text) is not None
            or self.is_registered(text.encode("utf-8", "replace"))
        )

    def redact(self, reason: str) -> str:
        """Remove keys from an error's reason, and quotations that are long enough to be keys."""
        text = _QUOTATION.sub('"…"', reason)
        return _WORD.sub(lambda word: HIDDEN if self._may_be_key(word[0]) else word[0], text)

    def _may_be_key(self, word: str) -> bool:
        # Messages shorten long numbers, so a word may be only the beginning of a key.
        return self.has_key(word) or any(word in key for key in self.own_keys)

    def hide(self, data: bytes) -> bytes:
        """Replace the keys in a part of a request or a response by `…`.

        - The request's own keys and generated keys are found anywhere.
        - A key of the access file is found if it is a word, a part of the path or the query, a JSON
          string, or the complete data.
        - Keys are also found percent-encoded and with JSON escapes.
        """
        if len(data) < _SHORTEST_SECRET:
            return data
        text = data.decode("latin-1")
        parts: list[bytes] = []
        end = 0
        for start, key_end in sorted(self._find_keys(text)):
            if start >= end:
                parts += (data[end:start], HIDDEN_PART)
            end = max(end, key_end)
        return b"".join((*parts, data[end:]))

    def hide_data(self, data: bytes) -> str:
        """Return data as text without keys.

        Keys are replaced before decoding, because a key can be any bytes, such as a part of a
        character.
        """
        return self.hide(data).decode("utf-8", "replace")

    def hide_text(self, text: str) -> str:
        """Replace the keys in a text, however they are escaped."""
        return self.hide_data(text.encode("utf-8", "backslashreplace"))

    def hide_target(self, target: bytes) -> str:
        """Return the target of a request as text, without keys and other secrets in its query."""
        hidden = self.hide(target).decode("utf-8", "backslashreplace")
        return _SECRET_PARAMETER.sub(r"\1…", hidden)

    def hide_foreign_path(self, path: bytes) -> str:
        """Return the path of a request outside the API, without query and fragment.

        Query and fragment hold other services' keys and codes, under any name. The part before an
        `@` may be a user with a password, because some clients accept these in an unusual place.
        """
        _, at, rest = (kept := _REST_OF_ADDRESS.sub(b"", path)).rpartition(b"@")
        kept = "/…@".encode() + rest if at else kept
        return self.hide(kept).decode("utf-8", "backslashreplace")

    def hide_method(self, method: str) -> str:
        """Return a method, cut off at the first invalid character: the rest may be a query."""
        return _REST_OF_METHOD.sub("…", self.hide_text(method))

    def hide_reason(self, reason: str) -> str:
        """Return the reason why a part is unreadable, without keys.

        Of an address, only host and path remain.
        """
        return _SECRETS_OF_ADDRESS.sub("", self.hide_text(reason))

    def _find_keys(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the start and the end of each key."""
        long_keys = [key for key in self.own_keys if len(key) >= _SHORTEST_SECRET]
        # A key can be Latin-1 in the header and UTF-8 elsewhere.
        own_keys = {*long_keys, *(key.encode("utf-8").decode("latin-1") for key in long_keys)}
        yield from _find_known(text, own_keys)
        for first, escape in _ESCAPES.items():
            if first in text:
                found = list(_find_known(escape.sub(_decode_escape, text), own_keys))
                starts = _list_starts(text, escape) if found else ()
                yield from ((starts[start], starts[end]) for start, end in found)
        for piece in {text}.union(*(pattern.findall(text) for pattern in _PIECES)):
            if len(piece) >= _SHORTEST_SECRET and self._is_registered_piece(piece):
                yield from (match.span() for match in re.finditer(re.escape(piece), text))

    def _is_registered_piece(self, piece: str) -> bool:
        return self.is_registered(piece.encode("latin-1")) or any(
            self.is_registered(escape.sub(_decode_escape, piece).encode("latin-1"))
            for first, escape in _ESCAPES.items()
            if first in piece
        )


def _find_known(text: str, keys: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of the given keys and of generated keys."""
    for pattern in (*map(re.escape, keys), _GENERATED_KEY.pattern):
        yield from (match.span() for match in re.finditer(pattern, text))


def _list_starts(text: str, escape: re.Pattern[str]) -> list[int]:
    """Return the start offset of each decoded character, plus the end."""
    starts: list[int] = []
    end = 0
    for match in escape.finditer(text):
        starts += (*range(end, match.start()), *(match.start() for _ in _decode_escape(match)))
        end = match.end()
    return [*starts, *range(end, len(text) + 1)]


def _decode_escape(match: re.Match[str]) -> str:
    """Decode an escape to bytes, each as a Latin-1 character."""
    kind, rest = match[0][:2], match[0][1:]
    if kind == "\\u":
        units = bytes.fromhex(match[0].replace("\\u", ""))
        return units.decode("utf-16-be", "replace").encode("utf-8").decode("latin-1")
    return _SHORT_ESCAPES.get(rest, rest) if kind[0] == "\\" else chr(int(rest[-2:], 16))
