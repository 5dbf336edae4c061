"""Describe each parameter once, for the command line and the Python API.

A group of parameters is a dataclass whose fields are `Annotated` with a Parameter. The command line
converts the fields to options, and the Python API fills the same dataclasses. Errors name fields,
and each interface replaces these with its own names.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

from srvstat.contract import errors, requests, wire

_Choice = TypeVar("_Choice", bound=str)

Completion = Literal["identifier", "plan", "games", "regions", "tags"]
"""The source of a shell completion: the snapshot or the access file."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """The syntax and description of a parameter.

    - `metavar`: the name of its value in help; defaults to its choices.
    - `names`: the names of its option; defaults to the field's name. Help shows only the first long
      name; the others are accepted until 2.0.
    - `completes`: values for shell completion, or their source.
    - `least`, `most`: the limits of a number.
    - `is_argument`: a positional argument.
    - `is_hidden`: omitted from help.
    - `has_spaces`: values may contain spaces, so no environment variable sets the option.
    """

    help: str
    metavar: str | None = None
    names: tuple[str, ...] = ()
    completes: Sequence[str] | Completion = ()
    least: int | None = None
    most: int | None = None
    is_argument: bool = False
    is_hidden: bool = False
    has_spaces: bool = False


class Without:
    """Annotates a parameter group of a command, to omit some of its parameters."""

    def __init__(self, *names: str) -> None:
        self.names = names


def check_choice(name: str, value: str, choices: Iterable[_Choice]) -> _Choice:
    """Return the choice that is equal to a parameter's value.

    Raises ParameterError if there is none.
    """
    known = list(choices)
    for choice in known:
        if choice == value:
            return choice
    raise errors.ParameterError(
        f"{{{name}}}: {{value}} is not one of {', '.join(known)}", value=wire.quote_value(value)
    )


def check_text(name: str, value: str | None) -> None:
    """Check the text of a parameter, such as a title. None means the default.

    Raises ParameterError if the text is blank or not UTF-8.
    """
    if value is None:
        return
    if not value.strip():
        raise errors.ParameterError(f"{{{name}}}: empty; omit it or give a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise errors.ParameterError(f"{{{name}}}: not valid UTF-8") from None


IDENTIFIER = Parameter(
    "Servers: an id, a name, id:ID or cfxId:ID.",
    "IDENTIFIER",
    completes="identifier",
    is_argument=True,
)
By = Annotated[
    str | None,
    Parameter(
        "How to read identifiers without an id: or cfxId: prefix"
        f" [default: {requests.NAMESPACES[0]}].",
        "|".join(requests.NAMESPACES),
        completes=requests.NAMESPACES,
    ),
]
"""The namespace parameter; the contract validates it."""


@dataclass(frozen=True)
class MarkOption:
    """The marks of pictures over time, before parsing by `questions.parse_marks`."""

    panel = "Picture"

    mark: Annotated[
        list[str] | None,
        Parameter(
            'Draw a labeled line at a date or a time, such as 2026-02-14="Update 5"; repeatable.',
            "TIME=LABEL",
        ),
    ] = None
