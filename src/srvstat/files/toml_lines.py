"""Read TOML, and tell on which line a value stands, which Python's own reader does not."""

import re
import tomllib
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from srvstat.contract.models import Location

# Strings and comments are skipped whole, whatever brackets and line ends they hold.
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
    r"(?P<finding>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)",
    re.DOTALL,
)


class TomlError(ValueError):
    """A text is not the TOML that it should be: the message says why, `line` where, from 1."""

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
    if found is None:  # Python's limit on the digits it converts has no place
        raise TomlError(1, "not TOML: a number of too many digits")
    if found["line"] is None:
        raise TomlError(text.count("\n") + 1, f"not TOML at its end: {found['finding']}")
    finding = f"not TOML at column {found['column']}: {found['finding']}"
    raise TomlError(int(found["line"]), finding)


def find_line(text: str, location: Location) -> int:
    """Return the line on which the statement begins that gives a value, or as much of it as is.

    `location` has the names and positions that lead to the value. Of one that is not there, the
    line is that of the table which lacks it. The text must be TOML. Lines count from 1.
    """
    line, steps = 1, 0
    table: Location = ()
    last_of: dict[Location, int] = {}
    for first_line, statement in _statements(text.replace("\r\n", "\n")):
        if statement.lstrip().startswith("["):
            table = _table(tomllib.loads(statement), last_of)
            reached = _common(table, location)
        elif table == location[: len(table)]:
            reached = len(table) + _reached(statement, location[len(table) :])
        else:
            continue
        if reached > steps:
            line, steps = first_line, reached
    return line


def _common(one: Location, other: Location) -> int:
    """Return with how many equal steps two locations begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield each header and each key with its value, and the line on which it begins."""
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


def _table(header: Any, last_of: dict[Location, int]) -> Location:
    """Return which table a header begins; `last_of` counts the tables of each array so far."""
    table: Location = ()
    while header:
        if isinstance(header, list):
            last_of[table] = last_of.get(table, -1) + 1
            return (*table, last_of[table])
        ((name, header),) = header.items()
        table = (*table, name)
        if table in last_of and not isinstance(header, list):
            table = (*table, last_of[table])
    return table


def _reached(statement: str, location: Location) -> int:
    """Return how many steps of a location the value of a statement has."""
    value: Any = tomllib.loads(statement)
    for steps, step in enumerate(location):
        try:
            value = value[step]
        except (IndexError, KeyError, TypeError):
            return steps
    return len(location)
