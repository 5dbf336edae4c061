"""From arguments to an exit code: the only place where an error becomes one."""

import io
import traceback
from contextlib import redirect_stdout

import typer

from srvstat.cli.app import app
from srvstat.cli.completion import completion_arguments, join_bash_words
from srvstat.cli.interruptions import interrupted
from srvstat.cli.output import Outcome, ReaderGoneError, report, write
from srvstat.contract.errors import SrvstatError

BUG = 1
READER_GONE = 141

_USAGE_REMEDY = "srvstat --help shows the commands and their options"


def main(arguments: list[str]) -> int:
    """Run a command line and return its exit code (docs/errors.md has the table)."""
    try:
        outcome = _run(arguments)
        for piece in outcome.pieces:
            write(piece)
    except SrvstatError as error:
        # SQLite makes an error of its own of an interruption while it asks what a statement may do.
        if exit_code := interrupted():
            return exit_code
        report(f"error: {error.reason}")
        return error.exit_code
    except ReaderGoneError:
        return READER_GONE
    except Exception as error:  # noqa: BLE001 - whatever else comes here is a bug, and no user reads a traceback
        if exit_code := interrupted():
            return exit_code
        place = traceback.extract_tb(error.__traceback__)[-1]
        report(
            f"error: a bug in srvstat: {type(error).__name__} in {place.name}, {place.filename}"
            f" line {place.lineno}; please report it"
        )
        return BUG
    return outcome.exit_code


def _run(arguments: list[str]) -> Outcome:
    """Let Typer parse and call. What Typer prints itself, such as help, is collected.

    Typer would end the process with 1 for every closed pipe, so nothing is written in here.
    """
    printed = io.StringIO()
    arguments = completion_arguments(arguments)
    kept = join_bash_words()
    try:
        with redirect_stdout(printed):
            result = app(arguments, prog_name="srvstat", standalone_mode=False)
    except typer.TyperException as error:
        report(f"error: {error.format_message()}", _USAGE_REMEDY)
        return Outcome(exit_code=error.exit_code)
    except SystemExit as stop:  # the end of a shell's completion, or of a signal's
        result = stop.code
    if isinstance(result, Outcome):
        return result
    lines = printed.getvalue().splitlines(keepends=True)
    text = "".join(line.removeprefix(kept) for line in lines)
    return Outcome([text.encode("utf-8")], result or 0)
