"""The app of the command line. It imports a command's module when the command is used."""

import io
import os
import re
from collections.abc import Mapping
from contextlib import redirect_stdout
from functools import partial
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.completion import completion_init  # type: ignore[attr-defined] # imported there without `as`
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from srvstat.cli.options import SNAPSHOT_VARIABLE, flatten, join_bash_words, replace_help
from srvstat.cli.output import Outcome, ReaderGoneError, report, write
from srvstat.cli.process import get_interruption_code
from srvstat.contract import CONTRACT_VERSION, __version__
from srvstat.contract.errors import (
    THREAD_LIMIT,
    EngineError,
    ParameterError,
    SrvstatError,
    UsageError,
    describe_unexpected,
)
from srvstat.snapshot.rows import FORMAT_VERSION


class Group(NamedTuple):
    """Commands that share a first word, such as `snapshot`, and their modules."""

    help: str
    commands: Mapping[str, str]


GROUPS: Mapping[str, Mapping[str, str | Group]] = {
    "Start": {
        "demo": "demo",
        "snapshot": Group(
            "Build, update, describe, verify and compare snapshots.",
            {
                **dict.fromkeys(("build", "update", "draft-servers", "bundle", "export"), "build"),
                **dict.fromkeys(("info", "verify", "diff"), "snapshot"),
            },
        ),
        **dict.fromkeys(("help", "completion"), "options"),
    },
    "Ask": {
        **dict.fromkeys(("get", "compare"), "answers"),
        **dict.fromkeys(
            (
                *("servers", "stats", "top", "growth", "peak-hours", "history", "together"),
                *("integrity", "events", "today"),
            ),
            "analyzer",
        ),
    },
    "Show": dict.fromkeys(("report", "plot"), "pictures"),
    "Support": dict.fromkeys(("replay", "when"), "replay"),
    "API": {
        "serve": "serve",
        "access": Group(
            "Create keys and check an access file.", {"new-key": "serve", "check": "serve"}
        ),
        **dict.fromkeys(("openapi", "schema"), "serve"),
    },
    "Fleet": {"fleet": "fleet"},
}
"""All commands with their modules, in the groups of the help. Each module has a function with the
command's name.
"""

COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}

PAGES = {
    "snapshot": "import-data",
    **dict.fromkeys(GROUPS["Ask"], "ask-questions"),
    **dict.fromkeys(GROUPS["Show"], "draw"),
    **dict.fromkeys(GROUPS["Support"], "support"),
    "serve": "service",
    "access": "access",
    "openapi": "generate-a-client",
    "schema": "documents",
    "fleet": "compute-a-fleet",
}
"""The documentation page of each command, by the command's first word."""

_WIDTH = 90
_FIRST_COLUMN = 26

_VARIABLES = {"serve": "SRVSTAT_"}
"""The prefix of environment variables that set a command's options."""


class _PlacedErrors:
    """A mixin that adds the context to parser errors that lack it."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().parse_args(ctx, args)  # type: ignore[misc] # of Typer's class beside it
        except typer.TyperException as error:
            error.ctx = error.ctx or ctx  # type: ignore[attr-defined] # of its subclasses
            raise


def create_app(
    groups: Mapping[str, Mapping[str, str | Group]], *, name: str, help: str, **settings: Any
) -> typer.Typer:
    """Create an app that imports the module of a command when the command is used.

    `settings`: passed to `typer.Typer`.
    """
    commands = {name: entry for group in groups.values() for name, entry in group.items()}

    class LazyGroup(_PlacedErrors, TyperGroup):
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            self.commands = dict.fromkeys(commands)  # type: ignore[assignment] # see get_command

        def get_command(self, _ctx: object, cmd_name: str) -> Any:
            # Built only once, for callers of `main` that run many commands.
            if cmd_name in commands and self.commands[cmd_name] is None:
                self.commands[cmd_name] = _build_command(cmd_name, commands[cmd_name])
            return self.commands.get(cmd_name)

        def format_options(self, ctx: Any, formatter: Any) -> None:
            listed = {
                title: [
                    (name, self.get_command(ctx, name).help.partition("\n\n")[0]) for name in group
                ]
                for title, group in groups.items()
            }
            _write_groups(formatter, listed | group_parameters(self, ctx))

    # Our own code writes help as plain text, which suits every terminal and does not need Rich.
    return typer.Typer(
        name=name,
        cls=LazyGroup,
        help=help,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,  # see `completion`
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": _WIDTH},
        **settings,
    )


def show_help_without_command(ctx: typer.Context) -> None:
    """If no command was given, report the group's help as a usage error."""
    if ctx.invoked_subcommand is None:
        report(*ctx.get_help().split("\n"))
        raise typer.Exit(2)


def _build_command(name: str, entry: str | Group) -> Any:
    if isinstance(entry, Group):
        commands = {"Commands": entry.commands}
        app = create_app(commands, name=name, help=entry.help)
        app.callback(invoke_without_command=True)(show_help_without_command)
    else:
        app = typer.Typer(rich_markup_mode=None, add_completion=False)
        function = getattr(import_module(f"srvstat.cli.{entry}"), name.replace("-", "_"))
        app.command(name, cls=_Command)(flatten(function, _VARIABLES.get(name, "")))
    return get_command(app)


def group_parameters(command: Any, context: typer.Context) -> dict[str, list[tuple[str, str]]]:
    """Return the names and help texts of arguments and options, by the title of their group."""
    found: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for each in command.get_params(context):
        if record := each.get_help_record(context):
            kind = "Arguments" if each.param_type_name == "argument" else "Options"
            title = getattr(each, "rich_help_panel", None) or kind
            # An argument's type, such as <list[str]>, is less helpful than its help text.
            names = re.sub(" <.*>$", "", record[0])
            text = re.sub(r"x>=(\d+)|(\d+)<=x<=\d{10,}", r"at least \1\2", record[1])
            text = re.sub(r"(\d+)<=x<=(\d+)", r"\1 to \2", text)
            found.setdefault(title, []).append((names, text))
    return {title: records for title, records in found.items() if records}


def _write_groups(formatter: Any, groups: Mapping[str, list[tuple[str, str]]]) -> None:
    """Write groups of names and texts in two columns."""
    widths = [len(name) for rows in groups.values() for name, _ in rows]
    width = max((each for each in widths if each <= _FIRST_COLUMN), default=0)
    for title, rows in groups.items():
        with formatter.section(title):
            formatter.write_dl([(name.ljust(width), text) for name, text in rows], width)


class _Command(_PlacedErrors, TyperCommand):
    """A command whose errors name its options, or the variables that set them.

    If an option has several long names, help shows only the first; the others are accepted.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.other_names: list[tuple[Any, list[str]]] = []
        for each in self.params:
            if others := [name for name in each.opts if name.startswith("--")][1:]:
                self.other_names.append((each, others))
                each.opts = [name for name in each.opts if name not in others]

    def make_parser(self, ctx: Any) -> Any:
        parser = super().make_parser(ctx)
        for each, names in self.other_names:
            parser.add_option(each, names, each.name, nargs=each.nargs)
        return parser

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        # Typer shows a required argument as {NAME}, which looks like a choice.
        return [re.sub(r"^\{(.*)\}", r"\1", piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_groups(formatter, group_parameters(self, ctx))
        words = ctx.command_path.split()
        page = f", docs page {PAGES[words[1]]}" if words[1] in PAGES else ""
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(f"See also: man {'-'.join(words)}{page}")

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override] # Typer's own class
        try:
            return super().invoke(ctx)
        except ParameterError as error:
            raise UsageError(error.describe(partial(_find_name, ctx))) from None


def _find_name(ctx: typer.Context, field: str) -> str:
    """Return a parameter's option, or the environment variable that has set it."""
    for parameter in ctx.command.params:
        if parameter.name == field:
            source = ctx.get_parameter_source(field)
            is_variable = source is not None and source.name == "ENVIRONMENT"
            return str(parameter.envvar) if is_variable else str(parameter.opts[0])
    return f"--{field.replace('_', '-')}"


_EXIT_CODES = """\b
Exit codes:
  0  success                   7    an engine failed
  2  invalid usage             40   invalid request
  3  no usable snapshot        43   not in the plan
  4  output not written        44   server not found
  5  a difference found        130  interrupted
  6  an input file rejected"""

app = create_app(
    GROUPS,
    name="srvstat",
    help="Analyze game-server player counts, and reproduce Server Analytics API responses, from one"
    " local file.\n\nExample: srvstat demo",
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


_BUG = 1
_READER_GONE = 141

_COMMAND = get_command(app)


def main(arguments: list[str]) -> int:
    """Run a command line and return its exit code (see docs/reference/errors.md)."""
    try:
        outcome = _run(arguments)
        for piece in outcome.pieces:
            write(piece)
    except SrvstatError as error:
        # SQLite replaces the exception of a signal in a callback by an error of its own.
        if exit_code := get_interruption_code():
            return exit_code
        report(f"error: {_name_variable(error, arguments)}{error.reason}")
        return error.exit_code
    except ReaderGoneError:
        return _READER_GONE
    except Exception as error:  # noqa: BLE001 - any other error is a bug, reported without a traceback
        return get_interruption_code() or _report_failure(error)
    return outcome.exit_code


def _name_variable(error: SrvstatError, arguments: list[str]) -> str:
    """Return the prefix of an error if SRVSTAT_SNAPSHOT named its snapshot, otherwise ""."""
    path = os.environ.get(SNAPSHOT_VARIABLE, "")
    is_named = any(argument.endswith(path) for argument in arguments)
    return "" if is_named or not error.reason.startswith(f"{path}: ") else f"{SNAPSHOT_VARIABLE}: "


def _report_failure(error: Exception) -> int:
    """Report an unexpected error, and return the exit code."""
    reason = describe_unexpected(error)
    report(f"error: {reason}")
    return EngineError.exit_code if reason == THREAD_LIMIT else _BUG


def _run(arguments: list[str]) -> Outcome:
    """Let Typer parse the arguments and call the command. Collect the text that Typer prints.

    Nothing is written inside Typer, which would exit with 1 for a closed pipe, and show a traceback
    if the disk is full.
    """
    printed = io.StringIO()
    arguments = replace_help(arguments)
    completion_init()
    prefix = join_bash_words()
    try:
        with redirect_stdout(printed):
            result = _COMMAND(arguments, prog_name="srvstat", standalone_mode=False, obj=arguments)
    except typer.TyperException as error:
        from srvstat.cli.hints import explain_usage_error  # noqa: PLC0415 - only errors pay for it

        report(*explain_usage_error(error, arguments))
        return Outcome(exit_code=error.exit_code)
    except SystemExit as stop:  # from completion, or from a signal
        result = stop.code
    if isinstance(result, Outcome):
        return result
    lines = printed.getvalue().splitlines(keepends=True)
    text = "".join(line.removeprefix(prefix) for line in lines)
    return Outcome([text.encode("utf-8")], result or 0)
