"""Validate external data with strict, frozen models, and describe the first problem in one line."""

import re
from collections.abc import Callable, Hashable, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, ValidationError

from srvstat.contract import wire

Location = tuple[int | str, ...]
"""The path from a value to one of its parts: property names and array positions."""

_SHA256 = re.compile(r"[0-9a-f]{64}")
_MAX_NAME_LENGTH = 30
"""Longer property names are quoted; none of ours is longer."""


class ContractModel(BaseModel):
    """A model that is immutable, coerces nothing and rejects unknown properties."""

    # Building a model takes time: a command builds only those it uses.
    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        defer_build=True,
        json_schema_serialization_defaults_required=True,  # a response omits no field
    )


_Member = TypeVar("_Member", bound=Hashable)


def reject_duplicates(members: tuple[_Member, ...]) -> tuple[_Member, ...]:
    """Return the members unchanged.

    Raises ValueError if two are equal.
    """
    if duplicate := find_duplicate(members):
        first, second = duplicate
        raise ValueError(f"[{second}]: the same as [{first}]")
    return members


def find_duplicate(members: tuple[Hashable, ...]) -> tuple[int, int] | None:
    """Return both positions of the first duplicate, or None."""
    seen: dict[Hashable, int] = {}
    for position, member in enumerate(members):
        first = seen.setdefault(member, position)
        if first < position:
            return first, position
    return None


# A strict tuple would reject the list that a parser returns; the members stay strict.
Members = Annotated[tuple[_Member, ...], Field(strict=False)]
Choices = Annotated[Members[_Member], AfterValidator(reject_duplicates)]
NOT_EMPTY: Any = Field(min_length=1)
WholeNumber = Annotated[int, Field(ge=0, le=wire.MAX_SAFE_INTEGER)]
PositiveNumber = Annotated[int, Field(ge=1, le=wire.MAX_SAFE_INTEGER)]


def _check_sha256(text: str) -> str:
    if not _SHA256.fullmatch(text):
        # The text is not quoted: it may be a key, written here by mistake.
        raise ValueError(": must be 64 lower-case hexadecimal digits")
    return text


Sha256 = Annotated[str, AfterValidator(_check_sha256)]


def parsed_by(parse: Callable[[object], object]) -> Any:
    """Annotate a type whose values a function parses. It raises ValueError, as `_check_sha256`."""
    return PlainValidator(parse)


class InvalidValueError(ValueError):
    """A value is invalid. `reason` is one line: the location, then the problem.

    `location` is the path to the invalid part. `problem` follows its text directly, so it usually
    begins with a colon and a space.
    """

    def __init__(self, location: Location, problem: str) -> None:
        super().__init__(f"{_format_location(location)}{problem}")
        self.location = location
        self.reason = str(self)


_Model = TypeVar("_Model", bound=BaseModel)


def validate(
    model: type[_Model], value: Any, messages: Mapping[str, str], *, by_alias: bool | None = None
) -> _Model:
    """Validate a value and return the model.

    `messages` adds to the messages of pydantic's error types, or overrides them. `by_alias` selects
    the aliases of the fields, or their names; None leaves it to the model.

    Raises InvalidValueError for the first problem.
    """
    by_name = None if by_alias is None else not by_alias
    try:
        return model.model_validate(value, by_alias=by_alias, by_name=by_name)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        location, problem = first["loc"], _describe_problem(first, messages)
    # Raised outside `except`, so that the ValidationError does not become the context. It refers to
    # the exceptions of our validators, and so to all frames above, but hides these references from
    # the garbage collector: a cycle through it would never be freed.
    raise InvalidValueError(location, problem)


def _describe_problem(error: Any, messages: Mapping[str, str]) -> str:
    given, limits = error["input"], error.get("ctx", {})
    match error["type"]:
        case "literal_error":
            allowed = limits["expected"].replace("'", "").replace(" or ", ", ")
            problem = f"{wire.quote_value(given)} is not one of {allowed}"
        case "string_too_long":
            problem = f"{len(given)} characters, at most {limits['max_length']} allowed"
        case "string_pattern_mismatch" as kind:
            problem = f"{wire.quote_value(given)} {messages[kind]}"
        case "greater_than_equal":
            problem = f"must be at least {limits['ge']}"
        case "less_than_equal":
            problem = f"must be at most {limits['le']:,}"
        case "value_error":
            return str(limits["error"])
        case kind:
            problem = messages.get(kind) or _MESSAGES.get(kind, "not valid")
    return f": {problem}"


_MESSAGES = {
    "missing": "missing",
    "extra_forbidden": "unknown property",
    "model_type": "must be an object",
    "tuple_type": "must be an array",
    "int_type": "must be an integer",
    "string_type": "must be a string",
    "string_too_short": "empty",
    "string_unicode": "not Unicode text (a lone surrogate)",
}


def _format_location(location: Location) -> str:
    """Format a location as text, such as `servers[1].range`; the empty one is `body`."""
    return "".join(map(_format_step, location)).removeprefix(".") or "body"


def _format_step(step: int | str) -> str:
    # An unknown property may have any name, which is quoted.
    is_plain = isinstance(step, str) and step.isascii() and step.isidentifier()
    if is_plain and len(str(step)) <= _MAX_NAME_LENGTH:
        return f".{step}"
    return f"[{wire.quote_value(step)}]"
