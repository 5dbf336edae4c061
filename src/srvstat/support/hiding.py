"""Hide the keys of callers in what is shown of a recorded exchange."""

import re
from collections.abc import Mapping
from typing import Any

from srvstat.access import Access
from srvstat.contract import wire
from srvstat.contract.http import KEY_HEADER, Headers, find_values
from srvstat.contract.key_filter import KeyFilter
from srvstat.documents.support import Difference
from srvstat.support.comparing import escape_step, shorten_difference, unescape_step

_SECRET_PARAMETER = re.compile(
    r"([?&][^?=&]*(?:key|token|secret|password|signature|auth|authorization|session)(?:_?id)?=)"
    r"[^&]+",
    re.IGNORECASE,
)
"""A query parameter whose name says that its value is secret. No operation has one."""


_REST_OF_ADDRESS = re.compile(rb"[?#].*", re.DOTALL)
_USER = re.compile(rb".*@", re.DOTALL)
_REST_OF_METHOD = re.compile(r"[^A-Za-z0-9!#$%&'*+.^_`|~-].*", re.DOTALL)
_SECRETS_OF_ADDRESS = re.compile(r"""(?<=//)[^/\s"]*@|[?#](?:\\.|[^"\\])*""")
"""The user with the password, the query and the fragment of an address in a message."""


class KeyHider:
    """Hide the keys in the headers of a request, those of an access file, and generated ones."""

    def __init__(self, headers: Headers, access: Access | None) -> None:
        keys = find_values(headers, KEY_HEADER.lower().encode())
        self._filter = KeyFilter(
            [key.decode("latin-1") for key in keys],
            lambda key: access is not None and access.find_customer(key) is not None,
        )

    def hide(self, text: str) -> str:
        """Replace the keys in a text, however they are escaped."""
        return self._filter.hide(text.encode("utf-8", "backslashreplace")).decode(
            "utf-8", "replace"
        )

    def hide_target(self, target: bytes) -> str:
        """Return the target of a request as text, without keys and other secrets in its query."""
        hidden = self._filter.hide(target).decode("utf-8", "backslashreplace")
        return _SECRET_PARAMETER.sub(r"\1…", hidden)

    def hide_foreign_path(self, path: bytes) -> str:
        """Return the path of a request that is not to the API, without query and fragment.

        Those hold keys and codes of others, under any name. What is before an `@` may be a user
        with a password: not every client refuses an address with these in an unusual place.
        """
        kept = _USER.sub("/…@".encode(), _REST_OF_ADDRESS.sub(b"", path), count=1)
        return self._filter.hide(kept).decode("utf-8", "backslashreplace")

    def hide_method(self, method: str) -> str:
        """Return a method without what can't be in one, which may be a query."""
        return _REST_OF_METHOD.sub("…", self.hide(method))

    def hide_reason(self, reason: str) -> str:
        """Return why a part is unreadable, without keys, and only host and path of an address."""
        return _SECRETS_OF_ADDRESS.sub("", self.hide(reason))

    def hide_findings(self, findings: Mapping[str, Any]) -> dict[str, Any]:
        """Hide keys in the fields of a ReplayedExchange that can repeat what a client sent.

        Differences are shortened after that: half a key could not be found.
        """
        hidden = dict(findings)
        if hidden.get("reason") is not None:
            hidden["reason"] = self._filter.redact(hidden["reason"])
        if "request" in hidden:
            names = tuple(map(self.hide, hidden["request"].servers))
            hidden["request"] = hidden["request"].model_copy(update={"servers": names})
        if "differences" in hidden:
            hidden["differences"] = tuple(
                shorten_difference(self._hide_difference(each)) for each in hidden["differences"]
            )
        return hidden

    def _hide_difference(self, difference: Difference) -> Difference:
        steps = map(unescape_step, difference.pointer.split("/"))
        return difference.model_copy(
            update={
                "pointer": "/".join(escape_step(self.hide(step)) for step in steps),
                "recorded": self._hide_value(difference.recorded),
            }
        )

    def _hide_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, wire.EncodedJson) and self.hide(value.text) != value.text:
            decoded = wire.decode_text(value.text, keep_numbers=True)
            return wire.encode_once(self._hide_parts(decoded))
        return value

    def _hide_parts(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self.hide(key): self._hide_parts(member) for key, member in value.items()}
        if isinstance(value, list):
            return [self._hide_parts(item) for item in value]
        return self.hide(value) if isinstance(value, str) else value
