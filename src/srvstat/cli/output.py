"""Write to standard output and standard error, and choose the form of an answer."""

import os
import select
from collections.abc import Iterable
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

from srvstat.contract import wire
from srvstat.contract.errors import OutputError, UsageError
from srvstat.render.text import escape_non_ascii, escape_text

STDOUT, STDERR = 1, 2


class Outcome(NamedTuple):
    """The result of a command: its output in pieces, and its exit code.

    Pieces can be computed while they are written, so iterating over them can raise any error.
    """

    pieces: Iterable[bytes] = ()
    exit_code: int = 0


class ReaderGoneError(Exception):
    """The reader of standard output has closed it. Not an OSError: nothing failed."""


class Form(Enum):
    """The form of an answer."""

    JSON = "json"
    TABLE = "table"
    CSV = "csv"
    NDJSON = "ndjson"
    MARKDOWN = "markdown"
    PARQUET = "parquet"


ROW_FORMS = (Form.CSV, Form.NDJSON, Form.MARKDOWN, Form.PARQUET)
"""The forms of documents that are tables of rows."""


def choose_form(*, json: bool, table: bool, format: str | None = None, chart: bool = False) -> Form:
    """Return the form that a flag sets. The default is a table on a terminal, JSON elsewhere.

    A chart goes with a table.

    Raises UsageError for more than one of the flags, for an unknown format, and for Parquet on a
    terminal.
    """
    if chart and (json or format is not None):
        raise UsageError("--chart can't be combined with --json or --format")
    if json and table:
        raise UsageError("--json and --table can't be combined")
    if format is not None:
        if json or table:
            raise UsageError("--format can't be combined with --json or --table")
        names = [form.value for form in ROW_FORMS]
        if format not in names:
            raise UsageError(
                f"--format: {wire.quote_value(format)} is not one of {', '.join(names)}"
            )
        form = Form(format)
        if form is Form.PARQUET and os.isatty(STDOUT):
            raise UsageError("--format parquet: not for a terminal; add > file.parquet")
        return form
    if json or table or chart:
        return Form.JSON if json else Form.TABLE
    return Form.TABLE if os.isatty(STDOUT) else Form.JSON


def prepare_json(part: bytes) -> bytes:
    """Return a part of a JSON text, escaped if standard output is a terminal."""
    return wire.escape_for_terminal(part) if os.isatty(STDOUT) else part


def write(data: bytes) -> None:
    """Write all bytes to standard output.

    Python's own streams lose data silently when unbuffered on a full disk, and print nothing to a
    closed standard output.

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
    """Write lines to standard error, escaped so that each stays one line.

    Ignores failures.
    """
    text = "".join(f"{escape_text(line)}\n" for line in lines)
    if is_ascii_only():
        text = escape_non_ascii(text)
    # Not through sys.stderr: flushing its buffer would fail again and change the exit code to 120.
    with suppress(OSError):
        os.write(STDERR, text.encode("utf-8"))


def is_ascii_only() -> bool:
    """Return whether the locale is limited to ASCII.

    Python reads the C locale as UTF-8, so only the environment has the user's choice.
    """
    names = (os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    return next(filter(None, names), "") in ("C", "POSIX")


def is_progress_shown(*, quiet: bool) -> bool:
    """Return whether standard error is a terminal that can show a progress bar."""
    return not quiet and os.isatty(STDERR) and os.environ.get("TERM") != "dumb"
