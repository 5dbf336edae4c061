"""The commands that read a whole snapshot: info, verify and diff."""

import re
from typing import Annotated

from srvstat.analysis import selection
from srvstat.analysis.parameters import Parameter
from srvstat.analysis.servers import describe_snapshot
from srvstat.cli import options
from srvstat.cli.hints import report_no_match
from srvstat.cli.output import Outcome, PlainForm, report, show, show_progress
from srvstat.contract.errors import DifferenceError, ParameterError
from srvstat.contract.requests import ServerReference, build_server_reference
from srvstat.render.text import format_time
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.snapshot.read.verify import verify as verify_snapshot
from srvstat.support.diff import compare_snapshots


def info(
    filters: selection.FilterOptions,
    form: PlainForm,
    path: options.PathArgument = None,
    limit: options.LimitOption = None,
    snapshot: options.SnapshotOption = None,
) -> Outcome:
    """Describe a snapshot.

    Print totals, and the servers that match the options, with the span of their observations.

    Example: srvstat snapshot info snapshot.db
    """
    chosen = form.choose()
    with options.open_chosen(options.choose_snapshot(path, snapshot)) as file:
        found = describe_snapshot(file, filters, limit=options.choose_limit(limit, chosen))
        if found.servers and not found.matched:
            report_no_match(file, filters)
        return show(found, chosen)


def verify(
    form: PlainForm,
    path: options.PathArgument = None,
    snapshot: options.SnapshotOption = None,
    expect: Annotated[
        str | None, Parameter("Fail unless the root hash matches this one.", "HASH")
    ] = None,
    quiet: Annotated[options.QuietOption, "Show no progress bar."] = False,
) -> Outcome:
    """Verify a whole snapshot and print its root hash.

    Recompute all derived data from the observations. The root is a hash of the whole content. Exit
    with 3 if the snapshot is damaged, and with 5 if its root is not the expected root.

    Example: srvstat snapshot verify snapshot.db
    """
    chosen = form.choose()
    expected = _parse_root(expect)
    name = options.choose_snapshot(path, snapshot)
    with show_progress(lambda bars: bars.show_rows_progress(), quiet=quiet) as progress:
        verification = verify_snapshot(name, progress)
    if expected in (None, verification.root):
        return show(verification, chosen)
    report(f"error: --expect: the root of {name} is not {expected}")
    return show(verification, chosen, exit_code=DifferenceError.exit_code)


def _parse_root(text: str | None) -> str | None:
    """Return the root of --expect in lower case. Raises ParameterError if it is invalid."""
    if text is None or re.fullmatch("[0-9A-Fa-f]{64}", text):
        return text and text.lower()
    raise ParameterError(
        "{expect}: must be 64 hexadecimal digits, as `srvstat snapshot info` prints the root"
    )


def diff(
    old: Annotated[str, Parameter("The earlier snapshot.", "OLD", is_argument=True)],
    new: Annotated[str, Parameter("The later snapshot.", "NEW", is_argument=True)],
    named: selection.NamedServers,
    form: PlainForm,
    at: Annotated[
        options.AtOption,
        "Compare the responses as of this time, such as 2026-02-01T12:00Z [default: the end of the"
        " snapshot that ends first].",
    ] = None,
) -> Outcome:
    """Show what differs between two snapshots.

    List servers that were added or removed, fields that changed, days (UTC) whose observations
    differ, and API responses that change as a result. With identifiers, compare only the named
    servers. Exit with 5 if there is a difference.

    Example: srvstat snapshot diff old.db new.db harbor-city
    """
    chosen = form.choose()
    instant = options.parse_instant_option("--at", at)
    wanted = named.build_references()
    with options.open_chosen(old) as before, options.open_chosen(new) as after:
        _warn_of_missing_data(before, after, instant)
        references = [_find_reference(before, after, one) for one in wanted]
        found = compare_snapshots(before, after, references, at=instant)
    return show(found, chosen, exit_code=0 if found.is_empty else DifferenceError.exit_code)


def _find_reference(old: Snapshot, new: Snapshot, wanted: selection.Reference) -> ServerReference:
    """Return the reference of a server in both snapshots.

    A name is resolved in the later snapshot.
    """
    if not isinstance(wanted, selection.Name):
        return wanted
    if wanted.reference and any(file.has_identifier("id", wanted.text) for file in (old, new)):
        return wanted.reference
    (server,) = selection.find_references(new, [wanted])
    return build_server_reference(server.id, by="id")


def _warn_of_missing_data(old: Snapshot, new: Snapshot, at: int | None) -> None:
    for snapshot in (old, new):
        if at is not None and at > snapshot.as_of:
            end = format_time(snapshot.as_of)
            report(f"warning: --at is after the end of {snapshot.path}, {end}")
