"""`snapshot diff`: the differences between two snapshots."""

from contextlib import closing
from typing import Annotated

import typer

from srvstat.analysis.selection import Name, Reference, build_references, find_references
from srvstat.cli.hints import add_hint
from srvstat.cli.options import (
    ByOption,
    JsonOption,
    TableOption,
    complete_identifier,
    parse_instant_option,
)
from srvstat.cli.output import Outcome, choose_form, report
from srvstat.cli.show import show, show_error
from srvstat.contract.errors import ApiError, DifferenceError
from srvstat.contract.requests import ServerReference, build_server_reference
from srvstat.render.text import format_time
from srvstat.snapshot.read.snapshot import Snapshot, open_snapshot
from srvstat.support.diff import compare_snapshots

OldArgument = Annotated[str, typer.Argument(metavar="OLD", help="The earlier snapshot.")]
NewArgument = Annotated[str, typer.Argument(metavar="NEW", help="The later snapshot.")]
NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="IDENTIFIER",
        help="Compare only these servers: ID, name, id:ID or cfxId:ID.",
        autocompletion=complete_identifier,
    ),
]
AtOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Compare the answers as of this instant, such as 2026-01-31T12:00Z or Unix"
        " milliseconds [default: the end of the snapshot that ends first].",
    ),
]


def diff(
    old: OldArgument,
    new: NewArgument,
    identifiers: NamesArgument = None,
    by: ByOption = None,
    at: AtOption = None,
    json: JsonOption = False,
    table: TableOption = False,
) -> Outcome:
    """Show what differs between two snapshots.

    Lists servers that were added or removed, fields that changed, days (UTC) whose observations
    differ, and the answers of the API that change because of it. Exits with 5 if there is a
    difference.

    Example: srvstat snapshot diff old.db new.db srv-1
    """
    form = choose_form(json=json, table=table)
    instant = parse_instant_option("--at", at)
    try:
        wanted = build_references(identifiers, by)
        with closing(open_snapshot(old)) as before, closing(open_snapshot(new)) as after:
            _warn_of_missing_data(before, after, instant)
            with add_hint(after, before):
                references = [_find_reference(before, after, one) for one in wanted]
                found = compare_snapshots(before, after, references, at=instant)
    except ApiError as error:
        return show_error(error, form)
    return show(found, form, exit_code=0 if found.is_empty else DifferenceError.exit_code)


def _find_reference(old: Snapshot, new: Snapshot, wanted: Reference) -> ServerReference:
    """Return what names a server in both snapshots; a name is that of a server in the later one."""
    if not isinstance(wanted, Name):
        return wanted
    if wanted.reference and any(file.has_identifier("id", wanted.text) for file in (old, new)):
        return wanted.reference
    (server,) = find_references(new, [wanted])
    return build_server_reference(server.id, by="id")


def _warn_of_missing_data(old: Snapshot, new: Snapshot, at: int | None) -> None:
    for snapshot in (old, new):
        if at is not None and at > snapshot.as_of:
            end = format_time(snapshot.as_of)
            report(f"warning: --at is later than {snapshot.path}, which ends {end}")
