"""The commands by name. A command's module is imported when the command is used."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_command

from srvstat.cli.output import report


class Command(NamedTuple):
    """A function in a module of this package."""

    module: str
    function: str


class Group(NamedTuple):
    """Commands that share a first word, such as `snapshot`."""

    help: str
    commands: Mapping[str, Command]


COMMANDS: Mapping[str, Command | Group] = {
    "get": Command("queries", "get"),
    "compare": Command("queries", "compare"),
    "servers": Command("servers", "servers"),
    "stats": Command("stats", "stats"),
    "top": Command("stats", "top"),
    "growth": Command("growth", "growth"),
    "peak-hours": Command("peak_hours", "peak_hours"),
    "history": Command("history", "history"),
    "integrity": Command("integrity", "integrity"),
    "report": Command("report", "report"),
    "plot": Command("plot", "plot"),
    "replay": Command("replay", "replay"),
    "snapshot": Group(
        "Build, inspect, verify and compare snapshots.",
        {
            "build": Command("build", "build"),
            "update": Command("update", "update"),
            "draft-servers": Command("draft_servers", "draft_servers"),
            "bundle": Command("bundle", "bundle"),
            "export": Command("export", "export"),
            "info": Command("info", "info"),
            "verify": Command("verify", "verify"),
            "diff": Command("diff", "diff"),
        },
    ),
    "fleet": Command("fleet", "fleet"),
    "serve": Command("serve", "serve"),
    "access": Group(
        "Create keys and check an access file.",
        {
            "new-key": Command("access", "new_key"),
            "check": Command("access", "check"),
        },
    ),
    "openapi": Command("openapi", "openapi"),
    "schema": Command("schema", "schema"),
    "demo": Command("demo", "demo"),
    "completion": Command("completion", "completion"),
}
"""All commands, in the order of the help."""


def create_app(
    commands: Mapping[str, Command | Group], *, name: str, help: str, **settings: Any
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


def _build_command(name: str, entry: Command | Group) -> Any:
    if isinstance(entry, Group):
        app = create_app(entry.commands, name=name, help=entry.help, add_completion=False)
        app.callback(invoke_without_command=True)(show_help_without_command)
    else:
        app = typer.Typer(rich_markup_mode=None, add_completion=False)
        module = import_module(f"srvstat.cli.{entry.module}")
        app.command(name)(getattr(module, entry.function))
    return get_command(app)
