"""The commands by name."""

from typing import Annotated

import typer

import srvstat
from srvstat.cli import access, completion, demo, openapi, queries, serve, snapshots
from srvstat.cli.output import report
from srvstat.contract import CONTRACT_VERSION
from srvstat.snapshot.format.schema import FORMAT_VERSION

_EXIT_CODES = """Exit codes: 0 an answer, 2 wrong usage, 3 no usable snapshot, 4 output not written,
5 a difference found, 6 an input file refused, 40 invalid request, 43 not in the plan,
44 server not found, 130 interrupted."""

_SETTINGS = {"help_option_names": ["-h", "--help"]}

# Plain help: it needs no Rich, reads in any terminal, and goes through our own writer.
app = typer.Typer(
    name="srvstat",
    help="Exact statistics of game servers from one local file, byte for byte as the API answers.",
    epilog=_EXIT_CODES,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=_SETTINGS,
)
snapshot_app = typer.Typer(
    help="Build, inspect and check snapshots.",
    rich_markup_mode=None,
    context_settings=_SETTINGS,
)
access_app = typer.Typer(
    help="Make keys and check an access file.",
    rich_markup_mode=None,
    context_settings=_SETTINGS,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(
            f"srvstat {srvstat.__version__}"
            f" (contract {CONTRACT_VERSION}, snapshot format {FORMAT_VERSION})"
        )
        raise typer.Exit


def _help_for_nothing(ctx: typer.Context) -> None:
    """Show whoever names no command which ones there are."""
    if ctx.invoked_subcommand is None:
        report(*ctx.get_help().split("\n"))
        raise typer.Exit(2)


@app.callback(invoke_without_command=True)
def _main(
    ctx: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback has acted on it
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the versions."),
    ] = False,
) -> None:
    _help_for_nothing(ctx)


@snapshot_app.callback(invoke_without_command=True)
def _snapshot(ctx: typer.Context) -> None:
    _help_for_nothing(ctx)


@access_app.callback(invoke_without_command=True)
def _access(ctx: typer.Context) -> None:
    _help_for_nothing(ctx)


app.command()(queries.get)
app.command()(queries.compare)
app.add_typer(snapshot_app, name="snapshot")
app.add_typer(access_app, name="access")
app.command()(serve.serve)
app.command()(openapi.openapi)
app.command()(demo.demo)
app.command()(completion.completion)
snapshot_app.command()(snapshots.build)
snapshot_app.command()(snapshots.info)
snapshot_app.command()(snapshots.verify)
snapshot_app.command("draft-servers")(snapshots.draft_servers)
access_app.command("new-key")(access.new_key)
access_app.command()(access.check)
