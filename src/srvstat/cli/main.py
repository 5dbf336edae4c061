"""Run a command line. The class of an error has its exit code (contract/errors.py)."""

import io
import traceback
from contextlib import redirect_stdout

import typer
from typer.main import get_command

from srvstat.cli.app import app
from srvstat.cli.completion import join_bash_words, replace_completion_options
from srvstat.cli.output import Outcome, ReaderGoneError, report, write
from srvstat.cli.process import get_interruption_code
from srvstat.contract.errors import SrvstatError

_BUG = _OUT_OF_MEMORY = 1
_READER_GONE = 141

_COMMAND = get_command(app)

_USAGE_REMEDY = "srvstat --help shows the commands and their options"


def main(arguments: list[str]) -> int:
    """Run a command line and return its exit code (docs/errors.md has the table)."""
    try:
        outcome = _run(arguments)
        for piece in outcome.pieces:
            write(piece)
    except SrvstatError as error:
        # SQLite turns an interruption of its authorizer callback into an error of its own.
        if exit_code := get_interruption_code():
            return exit_code
        report(f"error: {error.reason}")
        return error.exit_code
    except ReaderGoneError:
        return _READER_GONE
    except Exception as error:  # noqa: BLE001 - any other error is a bug, reported without a traceback
        return get_interruption_code() or _report_failure(error)
    return outcome.exit_code


def _report_failure(error: Exception) -> int:
    """Report an error that no command expects, and return the exit code."""
    if isinstance(error, MemoryError):
        report("error: out of memory; free some, or raise the limit with ulimit -v")
        return _OUT_OF_MEMORY
    place = traceback.extract_tb(error.__traceback__)[-1]
    report(
        f"error: a bug in srvstat: {type(error).__name__} in {place.name}, {place.filename}"
        f" line {place.lineno}; please report it"
    )
    return _BUG


def _run(arguments: list[str]) -> Outcome:
    """Let Typer parse the arguments and call the command. Collects what Typer prints, such as help.

    Nothing is written inside Typer: it would exit with 1 for a closed pipe.
    """
    printed = io.StringIO()
    arguments = replace_completion_options(arguments)
    prefix = join_bash_words()
    try:
        with redirect_stdout(printed):
            result = _COMMAND(arguments, prog_name="srvstat", standalone_mode=False)
    except typer.TyperException as error:
        message = error.format_message().replace("Value error, ", "")  # of pydantic
        report(f"error: {' '.join(message.split())}", _USAGE_REMEDY)  # choices stand in lines
        return Outcome(exit_code=error.exit_code)
    except SystemExit as stop:  # from completion, or from a signal
        result = stop.code
    if isinstance(result, Outcome):
        return result
    lines = printed.getvalue().splitlines(keepends=True)
    text = "".join(line.removeprefix(prefix) for line in lines)
    return Outcome([text.encode("utf-8")], result or 0)
