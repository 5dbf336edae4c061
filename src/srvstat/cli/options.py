"""Define options that several commands share, and interpret their values."""

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice, takewhile
from operator import methodcaller
from os.path import commonprefix
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from srvstat.cli.output import ROW_FORMS, report
from srvstat.contract.errors import SnapshotError, SrvstatError, UsageError
from srvstat.contract.instants import YEAR_2001, InstantError, parse_instant
from srvstat.contract.ranges import DEFAULT_RANGE, Range
from srvstat.contract.requests import NAMESPACES, CompareRequest, Namespace, ServerReference
from srvstat.contract.wire import MAX_SAFE_INTEGER, quote_value
from srvstat.files.errors import convert_errors
from srvstat.render.text import format_time
from srvstat.snapshot.read.snapshot import Snapshot, open_snapshot

if TYPE_CHECKING:
    from srvstat.access import Plan

SNAPSHOT_VARIABLE = "SRVSTAT_SNAPSHOT"
DEFAULT_SNAPSHOT = "snapshot.db"

_MAX_COMPLETIONS = 500
_IDENTIFIER_CHARACTERS = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

RANGES: tuple[str, ...] = get_args(Range)


def complete_range(incomplete: str) -> list[str]:
    """Complete the name of a range."""
    return [name for name in RANGES if name.startswith(incomplete)]


def _complete_namespace(incomplete: str) -> list[str]:
    return [namespace for namespace in NAMESPACES if namespace.startswith(incomplete)]


def complete_identifier(ctx: typer.Context, incomplete: str) -> Iterable[str]:
    """Complete an identifier of --snapshot, of NEW in `snapshot diff`, or of the default one."""
    by: Namespace = "cfxId" if ctx.params.get("by") == "cfxId" else "id"
    searches: list[tuple[str, Namespace, str]] = [("", by, incomplete)]
    for namespace in NAMESPACES:
        prefix = f"{namespace}:"
        if incomplete.startswith(prefix):
            searches = [(prefix, namespace, incomplete.removeprefix(prefix))]
        elif incomplete and prefix.startswith(incomplete):
            searches.append((prefix, namespace, ""))
    name = ctx.params.get("snapshot") or ctx.params.get("new")
    try:
        with closing(open_snapshot(find_snapshot(name))) as snapshot:
            return [
                prefix + name
                for prefix, namespace, start in searches
                for name in _list_identifiers(snapshot, namespace, start)
            ]
    except SrvstatError:
        return []


def _list_identifiers(snapshot: Snapshot, by: Namespace, start: str) -> list[str]:
    """Return the identifiers that begin with a text, or how they continue if they are many.

    These continuations are texts such as `srv-0` and `srv-1`, one character longer than what all
    identifiers share. A part of the identifiers would mislead: a shell completes what they share.
    """
    found = list(islice(_iter_identifiers(snapshot, by, start), _MAX_COMPLETIONS + 1))
    if len(found) <= _MAX_COMPLETIONS:
        return found
    last = next(snapshot.iter_identifiers(by, f"{start}~", backwards=True), found[0])
    shared = commonprefix([found[0], last])  # noqa: RUF071 - of characters, as shells do
    longer = (shared + character for character in _IDENTIFIER_CHARACTERS)
    return [name for name in found[:1] if name == shared] + [
        text for text in longer if any(_iter_identifiers(snapshot, by, text))
    ]


def _iter_identifiers(snapshot: Snapshot, by: Namespace, start: str) -> Iterator[str]:
    names = snapshot.iter_identifiers(by, start)
    return takewhile(methodcaller("startswith", start), names)


def complete_plan(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the name of a plan in the access file of the command line."""
    from srvstat.access import read_access  # noqa: PLC0415 - see find_plan

    try:
        access = read_access(ctx.params.get("access") or "")
    except SrvstatError:
        return []
    return [name for name in access.plans if name.startswith(incomplete)]


def _complete_format(incomplete: str) -> list[str]:
    return [form.value for form in ROW_FORMS if form.value.startswith(incomplete)]


SnapshotOption = Annotated[
    str | None,
    typer.Option(
        "--snapshot",
        "-s",
        metavar="PATH",
        help=f"The snapshot [default: ${SNAPSHOT_VARIABLE}, else ./{DEFAULT_SNAPSHOT}].",
    ),
]
PathArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="PATH",
        help=f"The snapshot [default: ${SNAPSHOT_VARIABLE}, else ./{DEFAULT_SNAPSHOT}].",
    ),
]
ByOption = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(NAMESPACES),
        help=f"The namespace of identifiers without a prefix"
        f" ({' or '.join(f'{name}:' for name in NAMESPACES)}) [default: {NAMESPACES[0]}].",
        autocompletion=_complete_namespace,
    ),
]
RangeOption = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(RANGES),
        help=f"The length of the window [default: {DEFAULT_RANGE}].",
        autocompletion=complete_range,
    ),
]
RequestOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|-", help="Answer a JSON request body, exactly as a customer sent it."
    ),
]
BatchOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|-",
        help="Answer JSON requests, one per line; print one answer or API error per line, and exit"
        " with 0 if all lines were answered.",
    ),
]
AtOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Answer as of this instant, such as 2026-01-31T12:00Z or Unix milliseconds, and ignore"
        " later observations [default: the end of the snapshot].",
    ),
]
PlanOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Answer as for a customer of this plan in the --access file.",
        autocompletion=complete_plan,
    ),
]
AccessOption = Annotated[
    str | None, typer.Option(metavar="FILE", help="The access file that defines the plan.")
]
ExactJsonOption = Annotated[
    bool,
    typer.Option("--json", help="Print the API's exact JSON; the default except on a terminal."),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print JSON; the default except on a terminal.")
]
TableOption = Annotated[
    bool, typer.Option("--table", help="Print a table; the default on a terminal.")
]
ChartOption = Annotated[bool, typer.Option("--chart", help="Draw a chart above the table.")]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="csv|ndjson|markdown|parquet",
        help="Print rows in this format.",
        autocompletion=_complete_format,
    ),
]
ExplainOption = Annotated[
    bool,
    typer.Option(
        "--explain", help="Show where each figure comes from, as text or as JSON of our own."
    ),
]
AccessFileOption = Annotated[
    str, typer.Option("--access", metavar="FILE", help="The access file, with plans and keys.")
]
IdentifierArgument = Annotated[
    str,
    typer.Argument(
        metavar="IDENTIFIER",
        help="A server: ID, id:ID or cfxId:ID.",
        autocompletion=complete_identifier,
    ),
]
IdentifiersArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="IDENTIFIER",
        help="2 to 5 servers: ID, id:ID or cfxId:ID.",
        autocompletion=complete_identifier,
    ),
]


def find_snapshot(given: str | None) -> str:
    """Return the path of the snapshot: the given one, that of the environment, or the default.

    Raises SnapshotError if there is none.
    """
    if given is not None:
        return given
    if path := os.environ.get(SNAPSHOT_VARIABLE):
        return path
    with convert_errors(DEFAULT_SNAPSHOT, SnapshotError):
        try:
            os.lstat(DEFAULT_SNAPSHOT)
        except FileNotFoundError:
            raise SnapshotError(
                f"no snapshot: give --snapshot PATH, set {SNAPSHOT_VARIABLE}, or change to a"
                f" directory with {DEFAULT_SNAPSHOT}"
            ) from None
    return DEFAULT_SNAPSHOT


def choose_snapshot(path: str | None, option: str | None) -> str:
    """Return the snapshot of PATH or --snapshot, else that of `find_snapshot`.

    Raises UsageError if both are given, SnapshotError.
    """
    if path is not None and option is not None:
        raise UsageError("PATH and --snapshot can't be combined")
    return find_snapshot(option if path is None else path)


def find_plan(name: str | None, path: str | None) -> "Plan | None":
    """Return the plan of --plan in the file of --access; None without these options.

    Raises UsageError for one option without the other or an unknown plan, SourceError.
    """
    if name is None and path is None:
        return None
    if name is None or path is None:
        raise UsageError("--plan NAME and --access FILE must be used together")
    # Importing the reader of access files takes 9 ms.
    from srvstat.access import read_access  # noqa: PLC0415

    return read_access(path).get_plan(name)


def check_plan(plan: "Plan | None", request: ServerReference | CompareRequest) -> None:
    """Check that a plan allows a request. None allows all requests.

    Raises FeatureNotAvailableError.
    """
    if plan is not None:
        plan.check_request(request)


def parse_instant_option(option: str, text: str | None) -> int | None:
    """Return the instant of an option in Unix milliseconds. Warns if it looks like seconds.

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
            f"warning: {option} {text}: read as milliseconds, {format_time(instant)};"
            " if these are seconds, multiply by 1000"
        )
    return instant


def parse_count(option: str, text: str, *, least: int) -> int:
    """Return the number of an option. `int` alone would also accept `1_0` and `+10`.

    Raises UsageError.
    """
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_SAFE_INTEGER))
    if not is_number or not least <= int(text) <= MAX_SAFE_INTEGER:
        raise UsageError(f"{option}: {quote_value(text)} is not a number from {least:,} on")
    return int(text)
