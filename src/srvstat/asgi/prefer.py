"""Read the header `Prefer` (RFC 7240)."""

import re

from srvstat.contract.http import Headers, find_values

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_QUOTED = rb'"(?:[^"\\]|\\.)*"'
_ELEMENT = re.compile(rb'(?:[^,"]|"(?:[^"\\]|\\.)*"?)+')
"""One preference in a list; a comma in quotes does not end it. Takes linear time."""
_PREFERENCE = re.compile(
    rb"[ \t]*(?P<name>%b)(?:[ \t]*=[ \t]*(?:(?P<word>%b)|(?P<quoted>%b)))?[ \t]*(?:;.*)?"
    % (_TOKEN, _TOKEN, _QUOTED)
)
_ESCAPED = re.compile(rb"\\(.)")


def find_preference(headers: Headers, name: bytes) -> bytes | None:
    """Return the value of a preference, empty if it has none; None if it is not among the headers.

    `name` is given in lower case. Only the first preference of a name counts (section 2). Malformed
    ones are skipped, because a server ignores what it does not understand.
    """
    for line in find_values(headers, b"prefer"):
        for element in _ELEMENT.findall(line):
            found = _PREFERENCE.fullmatch(element)
            if found and found["name"].lower() == name:
                quoted = found["quoted"]
                return found["word"] or (_ESCAPED.sub(rb"\1", quoted[1:-1]) if quoted else b"")
    return None
