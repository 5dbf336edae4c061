"""Strict, frozen models of what comes from outside, and in one line what is wrong with it."""

import re
from collections.abc import Hashable, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from srvstat.contract import wire

Location = tuple[int | str, ...]
"""The steps from a whole value to a part of it: names of properties, positions in arrays."""

_SHA256 = re.compile(r"[0-9a-f]{64}")
_LONGEST_NAME = 30
"""No property of ours has a longer name."""


class ContractModel(BaseModel):
    """A model that coerces nothing, knows all its properties and does not change."""

    # A command pays for the models it uses: the others are never built.
    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        defer_build=True,
        json_schema_serialization_defaults_required=True,  # an answer leaves nothing out
    )


_Member = TypeVar("_Member", bound=Hashable)


def reject_duplicates(members: tuple[_Member, ...]) -> tuple[_Member, ...]:
    """Return members as they are.

    Raises ValueError where two are equal.
    """
    repeated = find_duplicate(members)
    if repeated is not None:
        first, again = repeated
        raise ValueError(f"[{again}]: the same as [{first}]")
    return members


def find_duplicate(members: tuple[Hashable, ...]) -> tuple[int, int] | None:
    """Return where the first member that stands there twice stands, both times."""
    seen: dict[Hashable, int] = {}
    for position, member in enumerate(members):
        first = seen.setdefault(member, position)
        if first < position:
            return first, position
    return None


# Strictness would refuse the list that a file gives for a tuple; its members stay strict.
Members = Annotated[tuple[_Member, ...], Field(strict=False)]
Choices = Annotated[Members[_Member], AfterValidator(reject_duplicates)]
WholeNumber = Annotated[int, Field(ge=0, le=wire.MAX_SAFE_INTEGER)]
PositiveNumber = Annotated[int, Field(ge=1, le=wire.MAX_SAFE_INTEGER)]


def _sha256(text: str) -> str:
    if not _SHA256.fullmatch(text):
        # Whoever puts a key in its place must not find it in a log.
        raise ValueError(": 64 hexadecimal digits in lower case are needed")
    return text


Sha256 = Annotated[str, AfterValidator(_sha256)]


class InvalidValueError(ValueError):
    """A value is not what its model says; `reason` is one line that begins with the place.

    `location` leads to the part at fault.
    """

    def __init__(self, location: Location, finding: str) -> None:
        super().__init__(f"{format_location(location)}{finding}")
        self.location = location
        self.reason = str(self)


_Model = TypeVar("_Model", bound=ContractModel)


def validate(model: type[_Model], value: Any, words: Mapping[str, str]) -> _Model:
    """Return the model of a value.

    `words` says, by the kind of a finding, what is wrong where the general words do not fit.

    Raises NotValidError, for the first thing at fault.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        location, finding = _first_finding(error, words)
    # Not raised inside `except`, where the ValidationError would become its context. That one
    # refers to what a validator of ours raised, and so to all frames above, but hides this from
    # the garbage collector: a cycle through it is never freed.
    raise InvalidValueError(location, finding)


def _first_finding(error: ValidationError, words: Mapping[str, str]) -> tuple[Location, str]:
    first = error.errors(include_url=False)[0]
    return first["loc"], _finding(first, words)


def _finding(error: Any, words: Mapping[str, str]) -> str:
    """Say what pydantic found, in words that follow the place."""
    given, limits = error["input"], error.get("ctx", {})
    match error["type"]:
        case "missing":
            finding = "missing"
        case "literal_error":
            allowed = limits["expected"].replace("'", "").replace(" or ", ", ")
            finding = f"{wire.quote_value(given)} is not one of {allowed}"
        case "string_too_short":
            finding = "empty"
        case "string_too_long":
            finding = f"{len(given)} characters, at most {limits['max_length']} allowed"
        case "string_pattern_mismatch" as kind:
            finding = f"{wire.quote_value(given)} {words[kind]}"
        case "greater_than_equal":
            finding = f"at least {limits['ge']} is needed"
        case "less_than_equal":
            finding = f"at most {limits['le']:,} is allowed"
        case "value_error":
            return str(limits["error"])
        case kind:
            finding = f"{words.get(kind) or _NEEDED.get(kind, 'not valid')}"
    return f": {finding}"


_NEEDED = {
    "model_type": "an object is needed",
    "tuple_type": "an array is needed",
    "int_type": "a whole number is needed",
    "string_type": "a string is needed",
    "string_unicode": "not Unicode text (a lone surrogate)",
}


def format_location(location: Location) -> str:
    """Write a location: `servers[1].range`."""
    return "".join(map(_step, location)).removeprefix(".") or "body"


def _step(step: int | str) -> str:
    """Write a step towards a property; a name of the customer's own is quoted."""
    plain = isinstance(step, str) and step.isascii() and step.isidentifier()
    if plain and len(str(step)) <= _LONGEST_NAME:
        return f".{step}"
    return f"[{wire.quote_value(step)}]"
