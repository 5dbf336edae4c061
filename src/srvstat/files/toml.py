"""Read TOML and find the line of a value, which Python's own reader does not report."""

import re
import tomllib
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from srvstat.contract.models import Location

# Strings and comments are single tokens: brackets and line ends in them have no meaning.
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|[\[\]{}\n]",
    re.DOTALL,
)
_SYNTAX_ERROR = re.compile(
    r"(?P<problem>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)",
    re.DOTALL,
)


class TomlError(ValueError):
    """A text is not valid TOML; `line` is the line of the error, from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


def read_toml(text: str) -> dict[str, Any]:
    """Read a TOML text.

    Raises TomlError.
    """
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise TomlError(1, "nested too deeply") from None
    except ValueError as error:
        found = _SYNTAX_ERROR.fullmatch(str(error))
    if found is None:  # Python's limit on digits reports no place
        raise TomlError(1, "not TOML: a number has too many digits")
    if found["line"] is None:
        raise TomlError(text.count("\n") + 1, f"not TOML at its end: {found['problem']}")
    problem = f"not TOML at column {found['column']}: {found['problem']}"
    raise TomlError(int(found["line"]), problem)


def find_line(text: str, location: Location) -> int:
    """Return the line, from 1, on which the statement of a value begins.

    `location` is the path of names and positions to the value. For a missing value, returns the
    line of the table that lacks it. The text must be valid TOML.
    """
    line, steps = 1, 0
    table: Location = ()
    last_positions: dict[Location, int] = {}
    for first_line, statement in _split_statements(text.replace("\r\n", "\n")):
        if statement.lstrip().startswith("["):
            table = _locate_table(tomllib.loads(statement), last_positions)
            reached = _count_common_steps(table, location)
        elif table == location[: len(table)]:
            reached = len(table) + _count_steps(statement, location[len(table) :])
        else:
            continue
        if reached > steps:
            line, steps = first_line, reached
    return line


def _count_common_steps(one: Location, other: Location) -> int:
    """Return the length of the common prefix of two locations."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _split_statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield each header and each key with its value, preceded by the line on which it begins."""
    line, start, depth = 1, 0, 0
    for token in _TOKEN.finditer(f"{text}\n"):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
        elif token[0] == "\n" and not depth:
            statement = text[start : token.start()]
            yield line, statement
            line += statement.count("\n") + 1
            start = token.end()


def _locate_table(header: Any, last_positions: dict[Location, int]) -> Location:
    """Return the location of a header's table.

    `last_positions` has the position of the last table of each array so far, and is updated.
    """
    table: Location = ()
    while header:
        if isinstance(header, list):
            last_positions[table] = last_positions.get(table, -1) + 1
            return (*table, last_positions[table])
        ((name, header),) = header.items()
        table = (*table, name)
        if table in last_positions and not isinstance(header, list):
            table = (*table, last_positions[table])
    return table


def _count_steps(statement: str, location: Location) -> int:
    """Return the number of steps of a location that exist in the value of a statement."""
    value: Any = tomllib.loads(statement)
    for steps, step in enumerate(location):
        try:
            value = value[step]
        except (IndexError, KeyError, TypeError):
            return steps
    return len(location)
