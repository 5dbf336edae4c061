"""Validate external data with strict, frozen models, and describe the first problem in one line."""

import re
from collections.abc import Callable, Hashable, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, ValidationError

from srvstat.contract import wire

Location = tuple[int | str, ...]
"""The path from a value to a part: property names and array positions."""

_SHA256 = re.compile(r"[0-9a-f]{64}")
_MAX_NAME_LENGTH = 30
"""The maximum length of a property name shown without quotation marks. No defined name is
longer.
"""


class ContractModel(BaseModel):
    """An immutable model that coerces nothing and rejects unknown properties."""

    # Building a model takes time, so a command builds only the models it uses.
    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        defer_build=True,
        json_schema_serialization_defaults_required=True,  # a response omits no field
    )


_Member = TypeVar("_Member", bound=Hashable)


def reject_duplicates(members: tuple[_Member, ...]) -> tuple[_Member, ...]:
    """Return the members unchanged. Raises ValueError if two are equal."""
    if duplicate := find_duplicate(members):
        first, second = duplicate
        raise ValueError(f"[{second}]: the same as [{first}]")
    return members


def find_duplicate(members: tuple[Hashable, ...]) -> tuple[int, int] | None:
    """Return the positions of the first two equal members, or None if all differ."""
    seen: dict[Hashable, int] = {}
    for position, member in enumerate(members):
        first = seen.setdefault(member, position)
        if first < position:
            return first, position
    return None


# A strict tuple would reject the list that a parser returns. The members are still strict.
Members = Annotated[tuple[_Member, ...], Field(strict=False)]
Choices = Annotated[Members[_Member], AfterValidator(reject_duplicates)]
NOT_EMPTY: Any = Field(min_length=1)
WholeNumber = Annotated[int, Field(ge=0, le=wire.MAX_SAFE_INTEGER)]
PositiveNumber = Annotated[int, Field(ge=1, le=wire.MAX_SAFE_INTEGER)]


def _check_sha256(text: str) -> str:
    if not _SHA256.fullmatch(text):
        # The message does not quote the text, which may be a key entered by mistake.
        raise ValueError(": must be 64 lower-case hexadecimal digits")
    return text


Sha256 = Annotated[str, AfterValidator(_check_sha256)]


def parsed_by(parse: Callable[[object], object]) -> Any:
    """Return an annotation for a type whose values `parse` parses.

    `parse` raises ValueError with the problem, as `_check_sha256` does.
    """
    return PlainValidator(parse)


class InvalidValueError(ValueError):
    """A value is invalid.

    - `reason`: one line with the location and the problem.
    - `location`: the path to the invalid part.
    - `problem`: the text after the location. It usually begins with a colon and a space.
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

    - `messages`: messages by pydantic's error type, in addition to or in place of `_MESSAGES`.
    - `by_alias`: whether properties are named by the fields' aliases or by their names. Default:
      the model's configuration.

    Raises InvalidValueError for the first problem.
    """
    by_name = None if by_alias is None else not by_alias
    try:
        return model.model_validate(value, by_alias=by_alias, by_name=by_name)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        location, problem = first["loc"], _describe_problem(first, messages)
    # Raised outside `except`, so that the ValidationError does not become the context. It
    # references our validators' exceptions, and thus all calling frames, but hides these references
    # from the garbage collector. A reference cycle through it would therefore leak.
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
    """Format a location as text, such as `servers[1].range`. The empty location is `body`."""
    return "".join(map(_format_step, location)).removeprefix(".") or "body"


def _format_step(step: int | str) -> str:
    # Unknown properties can have any name, so most names are quoted.
    is_plain = isinstance(step, str) and step.isascii() and step.isidentifier()
    if is_plain and len(str(step)) <= _MAX_NAME_LENGTH:
        return f".{step}"
    return f"[{wire.quote_value(step)}]"
