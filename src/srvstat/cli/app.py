"""The app of the command line: its name, its commands and --version."""

from typing import Annotated

import typer

from srvstat.cli.commands import COMMANDS, create_app, show_help_without_command
from srvstat.contract import CONTRACT_VERSION
from srvstat.snapshot.format.rows import FORMAT_VERSION
from srvstat.version import __version__

_EXIT_CODES = """Exit codes: 0 success, 2 invalid usage, 3 no usable snapshot, 4 output not
written, 5 a difference found, 6 an input file rejected, 40 invalid request, 43 not in the plan,
44 server not found, 130 interrupted."""

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
