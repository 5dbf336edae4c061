"""Generate the table of the options of `srvstat serve` from the command itself."""

from typing import cast

from typer.core import TyperGroup, TyperOption
from typer.main import get_command
from typer.models import Context

from srvstat.cli.app import app
from srvstat.cli.options import DEFAULT_SNAPSHOT, SNAPSHOT_VARIABLE


def format_settings() -> str:
    """Return the table: option, variable, default, meaning."""
    head = ["| option | variable | default | meaning |", "|---|---|---|---|"]
    rows = [_format_row(option) for option in list_options()]
    return "\n".join([*head, *rows]) + "\n"


def list_options() -> list[TyperOption]:
    """Return the options of `serve`, except --help."""
    group = cast("TyperGroup", get_command(app))
    command = group.get_command(Context(group), "serve")
    return [
        option
        for option in (command.params if command else ())
        if isinstance(option, TyperOption) and option.name not in (None, "help")
    ]


def _format_row(option: TyperOption) -> str:
    flags = ", ".join(f"`{flag}`" for flag in option.opts)
    if option.name == "snapshot":  # other commands have it too, and its default is in its help
        return f"| {flags} | `{SNAPSHOT_VARIABLE}` | `{DEFAULT_SNAPSHOT}` | The snapshot. |"
    # An option without a default of its own describes it.
    meaning, _, described = (option.help or "").partition(" [default: ")
    default = option.default or described.removesuffix("].")
    meaning = meaning.replace("|", "\\|").removesuffix(".")
    return f"| {flags} | `{option.envvar}` | {f'`{default}`' if default else ''} | {meaning}. |"
