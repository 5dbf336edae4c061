"""Convert the identifiers of a source to identifiers that the contract allows."""

import re

from srvstat.contract import wire
from srvstat.contract.identifiers import MAX_IDENTIFIER_LENGTH

MAX_SOURCE_ID_LENGTH = 512
"""The most characters of a server's identifier in its source."""

_OTHERS = re.compile("[^a-z0-9]+")


class SlugError(ValueError):
    """An identifier has no slug. The message names it."""


def make_slug(identifier: str) -> str:
    """Return an identifier in lower case, with a hyphen for each run of other characters.

    Only ASCII letters and digits are kept, so a letter or digit of another script is an error: two
    identifiers could differ in nothing else. There is no hyphen at the ends.

    Raises SlugError for such a letter, and for a slug that is empty or too long.
    """
    if "\x00" in identifier or any("\ud800" <= character <= "\udfff" for character in identifier):
        raise SlugError(_describe(identifier, "is not Unicode text without U+0000"))
    if any(character.isalnum() and not character.isascii() for character in identifier):
        raise SlugError(_describe(identifier, "has a letter or digit that is not ASCII"))
    slug = _OTHERS.sub("-", identifier.lower()).strip("-")
    if not slug:
        raise SlugError(_describe(identifier, "has no letter or digit"))
    for text, most in ((slug, MAX_IDENTIFIER_LENGTH), (identifier, MAX_SOURCE_ID_LENGTH)):
        if len(text) > most:
            raise SlugError(_describe(identifier, f"is too long, with more than {most} characters"))
    return slug


def _describe(identifier: str, problem: str) -> str:
    return (
        f"{wire.quote_value(identifier)} {problem}, so --ids slug can't convert it; give it"
        " an id in a servers file, with this sourceId"
    )
