"""The options that several commands share, and what their values mean."""

import os
from collections.abc import Iterable
from contextlib import closing
from itertools import takewhile
from operator import methodcaller
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from srvstat.cli.output import report
from srvstat.contract.errors import SnapshotError, SrvstatError, UsageError
from srvstat.contract.instants import YEAR_2001, InstantError, parse_instant
from srvstat.contract.ranges import DEFAULT_RANGE, Range
from srvstat.contract.requests import NAMESPACES, Namespace
from srvstat.files.errors import convert_errors
from srvstat.render.text import instant_text
from srvstat.snapshot.read.reader import open_file

if TYPE_CHECKING:
    from srvstat.access import Plan

SNAPSHOT_VARIABLE = "SRVSTAT_SNAPSHOT"
SNAPSHOT_DEFAULT = "snapshot.db"

RANGES: tuple[str, ...] = get_args(Range)


def _complete_range(incomplete: str) -> list[str]:
    return [name for name in RANGES if name.startswith(incomplete)]


def _complete_by(incomplete: str) -> list[str]:
    return [namespace for namespace in NAMESPACES if namespace.startswith(incomplete)]


def _complete_identifier(ctx: typer.Context, incomplete: str) -> Iterable[str]:
    by: Namespace = "cfxId" if ctx.params.get("by") == "cfxId" else "id"
    sought: list[tuple[str, Namespace, str]] = [("", by, incomplete)]
    for namespace in NAMESPACES:
        prefix = f"{namespace}:"
        if incomplete.startswith(prefix):
            sought = [(prefix, namespace, incomplete.removeprefix(prefix))]
        elif incomplete and prefix.startswith(incomplete):
            sought.append((prefix, namespace, ""))
    try:
        with closing(open_file(snapshot_path(ctx.params.get("snapshot")))) as snapshot:
            return [
                prefix + name
                for prefix, namespace, begun in sought
                for name in takewhile(
                    methodcaller("startswith", begun), snapshot.iter_identifiers(namespace, begun)
                )
            ]
    except SrvstatError:
        return []


def complete_plan(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the name of a plan of the access file that the command line names."""
    from srvstat.access import read_access

    try:
        access = read_access(ctx.params.get("access") or "")
    except SrvstatError:
        return []
    return [name for name in access.plans if name.startswith(incomplete)]


SnapshotOption = Annotated[
    str | None,
    typer.Option(
        "--snapshot",
        "-s",
        metavar="PATH",
        help=f"The snapshot to ask; else ${SNAPSHOT_VARIABLE}, else ./{SNAPSHOT_DEFAULT}.",
    ),
]
ByOption = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(NAMESPACES),
        help=f"The namespace of the identifiers [default: {NAMESPACES[0]}]."
        " One identifier may name its own: cfxId:abc123.",
        autocompletion=_complete_by,
    ),
]
RangeOption = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(RANGES),
        help=f"How far back to look [default: {DEFAULT_RANGE}].",
        autocompletion=_complete_range,
    ),
]
RequestOption = Annotated[
    str | None,
    typer.Option(metavar="FILE|-", help="One JSON request body, exactly as a customer sent it."),
]
BatchOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|-",
        help="One JSON request a line, and one answer a line, an error's body included;"
        " exit code 0 once every line has its answer.",
    ),
]
AtOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Answer as of this instant, not the snapshot's: 2026-01-31T12:00Z or Unix"
        " milliseconds. Later observations are ignored.",
    ),
]
PlanOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Answer as a customer of this plan would be, of those in --access FILE.",
        autocompletion=complete_plan,
    ),
]
AccessOption = Annotated[
    str | None, typer.Option(metavar="FILE", help="The file of plans, for --plan.")
]
JsonOption = Annotated[
    bool,
    typer.Option("--json", help="The API's exact JSON; the default where output is no terminal."),
]
TableOption = Annotated[
    bool, typer.Option("--table", help="A table to read; the default on a terminal.")
]
IdentifierArgument = Annotated[
    str,
    typer.Argument(
        metavar="IDENTIFIER",
        help="A server's id, or id:X, or cfxId:X.",
        autocompletion=_complete_identifier,
    ),
]
IdentifiersArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="IDENTIFIER",
        help="2 to 5 servers: id, id:X or cfxId:X.",
        autocompletion=_complete_identifier,
    ),
]


def snapshot_path(given: str | None) -> str:
    """Return the snapshot to open: the one given, the environment's, or the one at hand.

    Raises SnapshotError where there is none of them.
    """
    if given is not None:
        return given
    if path := os.environ.get(SNAPSHOT_VARIABLE):
        return path
    with convert_errors(SNAPSHOT_DEFAULT, SnapshotError):
        try:
            os.lstat(SNAPSHOT_DEFAULT)
        except FileNotFoundError:
            raise SnapshotError(
                f"no snapshot: give --snapshot PATH, set {SNAPSHOT_VARIABLE}, or have"
                f" {SNAPSHOT_DEFAULT} in the current directory"
            ) from None
    return SNAPSHOT_DEFAULT


def snapshot_argument(path: str | None, option: str | None) -> str:
    """Return the snapshot that PATH or --snapshot names, else the one of `snapshot_path`.

    Raises UsageError for both, SnapshotError.
    """
    if path is not None and option is not None:
        raise UsageError("PATH and --snapshot exclude each other")
    return snapshot_path(option if path is None else path)


def find_plan(name: str | None, path: str | None) -> "Plan | None":
    """Return the plan to ask under, or None for the operator, who may ask everything.

    Raises UsageError for one option without the other or an unknown plan, SourceError.
    """
    if name is None and path is None:
        return None
    if name is None or path is None:
        raise UsageError("--plan NAME and --access FILE need each other")
    from srvstat.access import read_access

    return read_access(path).get_plan(name)


def parse_instant_option(option: str, text: str | None) -> int | None:
    """Return the instant that an option names, in Unix milliseconds, and warn of likely seconds.

    Raises UsageError.
    """
    if text is None:
        return None
    try:
        instant = parse_instant(text)
    except InstantError as error:
        raise UsageError(f"{option}: {error}") from None
    if text.isdecimal() and instant < YEAR_2001:
        report(
            f"warning: {option} {text} is {instant_text(instant)}; are these seconds?"
            " They are read as milliseconds"
        )
    return instant
