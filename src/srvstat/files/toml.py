"""Read TOML and find the line of a value, which Python's own reader does not report."""

import re
import tomllib
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from srvstat.contract.errors import SourceError
from srvstat.contract.models import InvalidValueError, Location

# Strings and comments are single tokens, because brackets and line ends in them have no meaning.
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

# Masked in errors, because it may be a key written by mistake in place of its checksum.
_MAYBE_KEY = re.compile(r"[A-Za-z0-9_+/=-]{31,}")

_T = TypeVar("_T")


class TomlError(ValueError):
    """A text is not valid TOML. `line` is the line of the error, from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


def read_toml(text: str) -> dict[str, Any]:
    """Read a TOML text. Raises TomlError if it is not valid."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise TomlError(1, "nested too deeply") from None
    except ValueError as error:
        found = _SYNTAX_ERROR.fullmatch(str(error))
    if found is None:  # Python's error about too many digits has no place
        raise TomlError(1, "not TOML: a number has too many digits")
    if found["line"] is None:
        raise TomlError(text.count("\n") + 1, f"not TOML at its end: {found['problem']}")
    problem = f"not TOML at column {found['column']}: {found['problem']}"
    raise TomlError(int(found["line"]), problem)


def parse_toml(title: str, content: bytes, build: Callable[[dict[str, Any]], _T]) -> _T:
    """Parse a file, and return what `build` makes of its values.

    `build` may raise InvalidValueError. Text that may be a key is hidden in errors.

    Raises SourceError, with the line and the location of the problem.
    """
    try:
        # Skips one byte order mark, as all our file readers do.
        text = content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SourceError(f"{title}, line {line}: not UTF-8") from None
    try:
        return _build(text, build)
    except TomlError as error:
        line, reason = error.line, str(error)
    except RecursionError:  # shallow enough to parse, too deep to validate
        line, reason = 1, "nested too deeply"
    raise SourceError(f"{title}, line {line}: {_MAYBE_KEY.sub('…', reason)}")


def _build(text: str, build: Callable[[dict[str, Any]], _T]) -> _T:
    """Build a value. Raises TomlError, and RecursionError if the text is nested too deeply."""
    try:
        return build(read_toml(text))
    except InvalidValueError as error:
        raise TomlError(find_line(text, error.location), error.reason) from None


def find_line(text: str, location: Location) -> int:
    """Return the line, from 1, on which the statement of a value begins.

    `location` is the path of names and positions to the value. For a missing value, returns the
    line of the table that lacks it. The text must be valid TOML.
    """
    text = text.replace("\r\n", "\n")

    def count_until(end: int) -> int:
        """Return the number of steps that exist before the end of a statement."""
        return _count_steps(tomllib.loads(text[:end]), location)

    lines, ends = zip(*_split_statements(text), strict=True)
    # Each statement only adds values, so a binary search finds the first statement with a step.
    found: int = lines[bisect_left(ends, count_until(len(text)), key=count_until)]
    return found


def _split_statements(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start line and the end offset of each header and each key with its value."""
    line, start, depth = 1, 0, 0
    for token in _TOKEN.finditer(f"{text}\n"):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
        elif token[0] == "\n" and not depth:
            yield line, token.start()
            line += text.count("\n", start, token.start()) + 1
            start = token.end()


def _count_steps(value: Any, location: Location) -> int:
    """Return the number of steps of a location that exist in a value."""
    for steps, step in enumerate(location):
        try:
            value = value[step]
        except (IndexError, KeyError, TypeError):
            return steps
    return len(location)
