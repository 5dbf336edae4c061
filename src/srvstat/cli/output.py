"""The one writer of standard output, the lines on standard error, and the form of an answer."""

import os
import select
from collections.abc import Iterable
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

from srvstat.contract import wire
from srvstat.contract.errors import OutputError, UsageError
from srvstat.render.text import ascii_text, safe_text

STDOUT, STDERR = 1, 2


class Outcome(NamedTuple):
    """What a command ends with: its answer, in as many pieces as it comes in, and its exit code.

    The pieces may be computed while they are written, and fail like any other work.
    """

    pieces: Iterable[bytes] = ()
    exit_code: int = 0


class ReaderGoneError(Exception):
    """Whoever read standard output has closed it. Not an OSError: nothing failed."""


class Form(Enum):
    """How an answer is written."""

    JSON = "json"
    TABLE = "table"


def choose_form(*, json: bool, table: bool) -> Form:
    """Choose the form: the flags decide outright, else a terminal gets a table.

    Raises UsageError for both flags.
    """
    if json and table:
        raise UsageError("--json and --table exclude each other")
    if json or table:
        return Form.JSON if json else Form.TABLE
    return Form.TABLE if os.isatty(STDOUT) else Form.JSON


def json_output(body: bytes) -> bytes:
    """Return the bytes that show a JSON body: itself and a newline, harmless on a terminal."""
    return json_text(body) + b"\n"


def json_text(part: bytes) -> bytes:
    """Return the bytes that show a part of a JSON body, harmless on a terminal."""
    return wire.escape_for_terminal(part) if os.isatty(STDOUT) else part


def write(data: bytes) -> None:
    """Write all bytes to standard output, or say that it was not possible.

    Python's own streams lose data in silence when they are unbuffered and the disk is full, and
    print nothing at all to a closed standard output.

    Raises OutputError, ReaderGoneError.
    """
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(STDOUT, rest) :]
        except BlockingIOError:
            select.select([], [STDOUT], [])
        except BrokenPipeError:
            raise ReaderGoneError from None
        except OSError as error:
            raise OutputError(f"standard output: {error.strerror}") from None


def report(*lines: str) -> None:
    """Write lines to standard error, each of them one line whatever it holds.

    There is nobody to tell of a failure.
    """
    text = "".join(f"{safe_text(line)}\n" for line in lines)
    if shows_ascii_only():
        text = ascii_text(text)
    # Not through sys.stderr, whose buffer would fail once more, and turn the exit code into 120.
    with suppress(OSError):
        os.write(STDERR, text.encode("utf-8"))


def shows_ascii_only() -> bool:
    """Say whether the user's locale promises no more than ASCII.

    Python reads the C locale as UTF-8, so what the user asked for stands in the environment alone.
    """
    names = (os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    return next(filter(None, names), "") in ("C", "POSIX")
