"""Find and hide keys in what clients send, before it is logged or stored."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

HIDDEN = "[key]"
"""The replacement of a key."""
_SHORTEST_SECRET = 8
"""The length from which a key is hidden. Shorter keys may be common words."""

_GENERATED_KEY = re.compile(r"srvstat_[A-Za-z0-9_-]{8,}")
_QUOTATION = re.compile(rf'".{{{_SHORTEST_SECRET},}}["…]', re.DOTALL)
"""From the first quotation mark to the last one, or to the … of a quotation that was cut."""
_WORD = re.compile(rf"[A-Za-z0-9_-]{{{_SHORTEST_SECRET},}}")
"""A word outside of quotation marks, such as an identifier or the name of a property."""


class KeyFilter(NamedTuple):
    """Find and hide keys, which a client may send in any part of a request."""

    own_keys: Sequence[str]
    """The keys in the header of the request."""
    is_registered: Callable[[bytes], bool]
    """Returns whether the access file has a key."""

    def has_key(self, text: str) -> bool:
        """Return whether a text is registered or contains a generated key or one of the request."""
        return len(text) >= _SHORTEST_SECRET and (
            any(key in text for key in self.own_keys if len(key) >= _SHORTEST_SECRET)
            or _GENERATED_KEY.search(text) is not None
            or self.is_registered(text.encode("utf-8", "replace"))
        )

    def redact(self, reason: str) -> str:
        """Remove keys from the reason of an error, and quotations long enough to be one."""
        text = _QUOTATION.sub('"…"', reason)
        return _WORD.sub(lambda word: HIDDEN if self._may_be_key(word[0]) else word[0], text)

    def _may_be_key(self, word: str) -> bool:
        # Messages cut long numbers, so a word may be only the beginning of a key.
        return self.has_key(word) or any(word in key for key in self.own_keys)
