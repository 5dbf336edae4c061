"""The app of the command line. A command's module is imported when the command is used."""

import io
import traceback
from collections.abc import Mapping
from contextlib import redirect_stdout
from functools import partial
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from srvstat.cli.options import flatten, join_bash_words, replace_completion_options, replace_help
from srvstat.cli.output import Outcome, ReaderGoneError, report, write
from srvstat.cli.process import get_interruption_code
from srvstat.contract import CONTRACT_VERSION, __version__
from srvstat.contract.errors import ParameterError, SrvstatError, UsageError
from srvstat.snapshot.rows import FORMAT_VERSION


class Group(NamedTuple):
    """Commands that share a first word, such as `snapshot`, and their modules."""

    help: str
    commands: Mapping[str, str]


COMMANDS: Mapping[str, str | Group] = {
    **dict.fromkeys(("get", "compare"), "answers"),
    **dict.fromkeys(
        (
            *("servers", "stats", "top", "growth", "peak-hours", "history", "together"),
            *("integrity", "events", "today"),
        ),
        "analyzer",
    ),
    **dict.fromkeys(("report", "plot"), "pictures"),
    **dict.fromkeys(("replay", "when"), "replay"),
    "snapshot": Group(
        "Build, inspect, verify and compare snapshots.",
        {
            **dict.fromkeys(("build", "update", "draft-servers", "bundle", "export"), "build"),
            **dict.fromkeys(("info", "verify", "diff"), "snapshot"),
        },
    ),
    "fleet": "fleet",
    "serve": "serve",
    "access": Group(
        "Create keys and check an access file.", {"new-key": "serve", "check": "serve"}
    ),
    "openapi": "serve",
    "schema": "serve",
    "demo": "demo",
    "completion": "options",
    "help": "options",
}
"""All commands, in the order of the help, with their modules. Each has a function of its name."""

_VARIABLES = {"serve": "SRVSTAT_"}
"""The prefix of the environment variables of a command's options."""


def create_app(
    commands: Mapping[str, str | Group], *, name: str, help: str, **settings: Any
) -> typer.Typer:
    """Create an app that imports the module of a command when the command is used.

    `settings` are passed to `typer.Typer`.
    """

    class LazyGroup(TyperGroup):
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            # Typer lists these names in the help, and suggests one for an unknown command.
            self.commands = dict.fromkeys(commands)  # type: ignore[assignment] # see get_command

        def get_command(self, _ctx: object, cmd_name: str) -> Any:
            # Built once, for callers of `main` that run many commands.
            if cmd_name in commands and self.commands[cmd_name] is None:
                self.commands[cmd_name] = _build_command(cmd_name, commands[cmd_name])
            return self.commands.get(cmd_name)

    # Plain help needs no Rich, suits every terminal, and goes through our own writer.
    return typer.Typer(
        name=name,
        cls=LazyGroup,
        help=help,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        **settings,
    )


def show_help_without_command(ctx: typer.Context) -> None:
    """Report the help of a group, as invalid usage, if no command was given."""
    if ctx.invoked_subcommand is None:
        report(*ctx.get_help().split("\n"))
        raise typer.Exit(2)


def _build_command(name: str, entry: str | Group) -> Any:
    if isinstance(entry, Group):
        app = create_app(entry.commands, name=name, help=entry.help, add_completion=False)
        app.callback(invoke_without_command=True)(show_help_without_command)
    else:
        app = typer.Typer(rich_markup_mode=None, add_completion=False)
        function = getattr(import_module(f"srvstat.cli.{entry}"), name.replace("-", "_"))
        app.command(name, cls=_Command)(flatten(function, _VARIABLES.get(name, "")))
    return get_command(app)


class _Command(TyperCommand):
    """A command whose errors name its options, or the variables that have their values."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override] # Typer's own class
        try:
            return super().invoke(ctx)
        except ParameterError as error:
            raise UsageError(error.describe(partial(_find_name, ctx))) from None


def _find_name(ctx: typer.Context, field: str) -> str:
    """Return the name of a parameter's option, or of the variable that its value comes from."""
    for parameter in ctx.command.params:
        if parameter.name == field:
            source = ctx.get_parameter_source(field)
            is_variable = source is not None and source.name == "ENVIRONMENT"
            return str(parameter.envvar) if is_variable else str(parameter.opts[0])
    return f"--{field.replace('_', '-')}"


_EXIT_CODES = """Exit codes: 0 success, 2 invalid usage, 3 no usable snapshot, 4 output not
written, 5 a difference found, 6 an input file rejected, 7 an engine failed, 40 invalid request,
43 not in the plan, 44 server not found, 130 interrupted."""

app = create_app(
    COMMANDS,
    name="srvstat",
    help="Answer Server Analytics API requests from one local file, with the API's exact bytes.",
    epilog=_EXIT_CODES,
)


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(
            f"srvstat {__version__} (contract {CONTRACT_VERSION}, snapshot format {FORMAT_VERSION})"
        )
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _main(
    ctx: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback acts on it
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the versions and exit."
        ),
    ] = False,
) -> None:
    show_help_without_command(ctx)


_BUG = _OUT_OF_MEMORY = 1
_READER_GONE = 141

_COMMAND = get_command(app)

_USAGE_REMEDY = "srvstat --help shows the commands and their options"


def main(arguments: list[str]) -> int:
    """Run a command line and return its exit code (docs/reference/errors.md has the table)."""
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

    Nothing is written inside Typer: it would exit with 1 for a closed pipe, and show a traceback if
    the disk is full.
    """
    printed = io.StringIO()
    arguments = replace_help(replace_completion_options(arguments))
    prefix = join_bash_words()
    try:
        with redirect_stdout(printed):
            result = _COMMAND(arguments, prog_name="srvstat", standalone_mode=False, obj=arguments)
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
