"""Describe a parameter once, for the command line and the Python API.

A group of parameters is a dataclass whose fields are `Annotated` with a Parameter. The command line
turns the fields into options, and the Python API fills the same dataclasses. Errors name fields,
and each surface replaces these by its own names.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

from srvstat.contract.errors import ParameterError
from srvstat.contract.requests import NAMESPACES
from srvstat.contract.wire import quote_value

_Choice = TypeVar("_Choice", bound=str)

Completion = Literal["identifier", "plan", "games", "regions", "tags"]
"""What a shell completes from a snapshot, or from the access file."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """How a parameter is written and described.

    `metavar` stands for its value, by default its choices. `names` are the names of its option,
    by default the name of the field. `completes` are values for a shell, or where it finds them.
    A number is at least `least` and at most `most`. An argument has no option.
    """

    help: str
    metavar: str | None = None
    names: tuple[str, ...] = ()
    completes: Sequence[str] | Completion = ()
    least: int | None = None
    most: int | None = None
    is_argument: bool = False


class Without:
    """Leaves parameters out of a group, in the annotation of a command."""

    def __init__(self, *names: str) -> None:
        self.names = names


def check_choice(name: str, value: str, choices: Iterable[_Choice]) -> _Choice:
    """Return the choice that is equal to the value of a parameter.

    Raises ParameterError.
    """
    known = list(choices)
    for choice in known:
        if choice == value:
            return choice
    raise ParameterError(
        f"{{{name}}}: {{value}} is not one of {', '.join(known)}", value=quote_value(value)
    )


IDENTIFIER = Parameter(
    "Servers: ID, name, id:ID or cfxId:ID.", "IDENTIFIER", completes="identifier", is_argument=True
)
By = Annotated[
    str | None,
    Parameter(
        "The namespace of identifiers without a prefix"
        f" ({' or '.join(f'{name}:' for name in NAMESPACES)}) [default: {NAMESPACES[0]}].",
        "|".join(NAMESPACES),
        completes=NAMESPACES,
    ),
]
"""A parameter of every question about servers. The contract judges its value."""
