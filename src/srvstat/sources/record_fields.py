"""Check the fields of server records."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from srvstat.contract import wire
from srvstat.contract.instants import parse_instant
from srvstat.files.json_events import Problem
from srvstat.sources.batch import COUNT_RULE, IDENTIFIER, IDENTIFIER_RULE, MAX_PLAYERS
from srvstat.sources.server_records import COMPLETED_FIELDS, GAMES
from srvstat.sources.slugs import MAX_SOURCE_ID_LENGTH

_T = TypeVar("_T")


class FieldError(ValueError):
    """A field of a record is invalid."""


def check_object(value: Any, what: str, known: tuple[str, ...]) -> Mapping[str, Any]:
    """Return an object whose keys are all known.

    Raises FieldError.
    """
    if not isinstance(value, dict):
        raise FieldError(f"{what}: must be an object")
    for key in value:
        if key not in known:
            raise FieldError(f"{wire.quote_value(key)} is not a field of {what}")
    return value


def require_field(given: Mapping[str, Any], name: str, check: Callable[[Any], _T]) -> _T:
    """Return the checked value of a field that may not be missing or null.

    Raises FieldError.
    """
    value = get_field(given, name, check)
    if value is None:
        raise FieldError(f"{name}: required, but {'null' if name in given else 'missing'}")
    return value


def get_field(
    given: Mapping[str, Any], name: str, check: Callable[[Any], _T], *, within: str = ""
) -> _T | None:
    """Return the checked value of a field; None if it is missing or null.

    `within` is the path of the object, for messages.

    Raises FieldError.
    """
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, Problem):
        raise FieldError(f"{within}{name}: {value.reason}")
    try:
        return check(value)
    except ValueError as error:
        raise FieldError(f"{within}{name}: {error}") from None


def check_identifier(value: Any) -> str:
    """Return an identifier that the contract allows.

    Raises ValueError.
    """
    if not isinstance(value, str) or not IDENTIFIER.fullmatch(value):
        raise ValueError(IDENTIFIER_RULE)
    return value


def check_game(value: Any) -> str:
    """Return a game of the contract.

    Raises ValueError.
    """
    if value not in GAMES:
        raise ValueError(f"must be {' or '.join(GAMES)}")
    return str(value)


def check_text(value: Any) -> str:
    """Return Unicode text that a snapshot can store.

    Raises ValueError.
    """
    if not isinstance(value, str):
        raise ValueError("must be a string")
    if "\x00" in value:
        raise ValueError("contains U+0000")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError("not Unicode text (a lone surrogate)")
    return value


def check_texts(value: Any) -> tuple[str, ...]:
    """Return an array of texts.

    Raises ValueError.
    """
    if not isinstance(value, list):
        raise ValueError("must be an array of strings")
    return tuple(map(check_text, value))


def check_source_id(value: Any) -> str:
    """Return the identifier that a source uses for a server.

    Raises ValueError.
    """
    text = check_text(value)
    if not 1 <= len(text) <= MAX_SOURCE_ID_LENGTH:
        raise ValueError(f"must have 1 to {MAX_SOURCE_ID_LENGTH} characters")
    return text


def check_completed(value: Any) -> tuple[str, ...]:
    """Return the names of completed fields, in order, each once.

    Raises ValueError.
    """
    names = set(check_texts(value))
    if not names <= set(COMPLETED_FIELDS):
        raise ValueError(f"must be names of {', '.join(COMPLETED_FIELDS)}")
    return tuple(sorted(names))


def check_count(value: Any) -> int:
    """Return a number of players.

    Raises ValueError.
    """
    if type(value) is not int or not 0 <= value <= MAX_PLAYERS:
        raise ValueError(COUNT_RULE)
    return value


def check_flag(value: Any) -> bool:
    """Return a Boolean value.

    Raises ValueError.
    """
    if type(value) is not bool:
        raise ValueError("must be true or false")
    return value


def parse_record_instant(value: Any) -> int:
    """Return an instant in Unix milliseconds.

    Raises ValueError.
    """
    if type(value) not in (int, str):
        raise ValueError("must be an integer or a string")
    return parse_instant(str(value))
