"""The commands that write snapshots: build, update, draft-servers, bundle and export."""

import os
import shlex
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Annotated, Literal

from srvstat.analysis.parameters import Parameter, Without
from srvstat.analysis.selection import NamedServers, Question, find_references
from srvstat.cli import options
from srvstat.cli.output import STDERR, Form, Outcome, report, show
from srvstat.cli.process import allow_cleanup
from srvstat.cli.proposals import Command, settle
from srvstat.cli.sources import (
    RejectOptions,
    SourceOptions,
    Sources,
    parse_sources,
    report_summary,
    save_mapping,
    show_build_progress,
)
from srvstat.contract.errors import ParameterError, SnapshotError, SourceError
from srvstat.contract.requests import parse_range
from srvstat.contract.windows import Window, find_window
from srvstat.documents.rows import encode_rows, import_pyarrow
from srvstat.documents.snapshot import BuildSummary, BundleSummary, DryRun
from srvstat.files.writing import check_destination, check_name, check_new_folder
from srvstat.operations.answers import check_coverage
from srvstat.render import summary
from srvstat.render.text import format_count
from srvstat.snapshot.read.snapshot import Snapshot, open_snapshot
from srvstat.snapshot.rows import ServerRow
from srvstat.snapshot.write.build import build as build_snapshot
from srvstat.snapshot.write.copies import write_bundle, write_export
from srvstat.snapshot.write.dry_run import draft_records, run_dry
from srvstat.snapshot.write.intake import Inputs
from srvstat.snapshot.write.update import update as update_snapshot
from srvstat.sources.mapping import MappingOptions, build_options
from srvstat.sources.servers import format_records


def build(
    output: Annotated[str, Parameter("The snapshot to write.", "OUTPUT", is_argument=True)],
    sources: SourceOptions,
    rows: RejectOptions,
    at: options.EndOption = None,
    allow_empty: Annotated[
        bool, Parameter("Build without servers or, with --at, without observations.")
    ] = False,
    overwrite: options.OverwriteOption = False,
    quiet: options.QuietOption = False,
    dry_run: Annotated[
        bool,
        Parameter(
            "Write nothing; show what would be built, and which rows would be rejected and why."
        ),
    ] = False,
) -> Outcome:
    """Build a snapshot from files or databases.

    Example: srvstat snapshot build snapshot.db --servers servers.ndjson --observations week.csv.gz
    """
    options.check_ending(output, *options.SNAPSHOT_ENDINGS, hint="; did you forget OUTPUT?")
    options.check_ending(rows.rejects, *options.NDJSON_ENDINGS)
    others = {**vars(rows), "at": at, "allow_empty": allow_empty, "overwrite": overwrite}
    command = Command(("snapshot", "build", output), sources, others)
    parsed = _add_limits(parse_sources(sources), rows, at)
    if not dry_run:  # check now, before the user answers questions
        check_name("OUTPUT", output)
        check_destination(output, overwrite=overwrite)
    parsed = settle(parsed, command, quiet=quiet)
    inputs = replace(parsed.inputs, allow_empty=allow_empty)
    if dry_run:
        return _show_dry_run(output, inputs, overwrite=overwrite, quiet=quiet)
    started = time.monotonic()
    with show_build_progress(inputs, quiet=quiet) as inputs:
        built = build_snapshot(output, inputs, rejects=rows.rejects, overwrite=overwrite)
    seconds = time.monotonic() - started
    lines = summary.format_build_summary(
        output, _select_fields(built, has_records=inputs.servers is not None), seconds
    )
    return _finish(parsed, lines, built, quiet=quiet)


def _select_fields(read: BuildSummary, *, has_records: bool) -> BuildSummary:
    """Return the fields to show.

    Omits filled-in values if there is no servers file, because they are then expected.
    """
    return read if has_records else replace(read, completed={}, fallbacks=0)


def update(
    path: Annotated[str, Parameter("The snapshot to update.", "PATH", is_argument=True)],
    sources: SourceOptions,
    rows: RejectOptions,
    at: Annotated[
        options.EndOption,
        "End the snapshot at this time and leave out later observations [default: the latest"
        " observation, or the current end if that is later].",
    ] = None,
    quiet: options.QuietOption = False,
) -> Outcome:
    """Add observations and servers to a snapshot.

    Add the servers of --servers, or replace their metadata. The file is replaced when the new one
    is complete. Updating gives the same content, and the same root hash, as building from all files
    at once.

    Example: srvstat snapshot update snapshot.db --observations today.csv
    """
    options.check_ending(rows.rejects, *options.NDJSON_ENDINGS)
    # An update may consist of server records only.
    remembered = _read_remembered(path)
    parsed = parse_sources(
        sources,
        needs_observations=sources.servers is None and sources.game is None,
        remembered=remembered,
    )
    others = {**vars(rows), "at": at}
    words = ("snapshot", "update", path)
    command = Command(words, sources, others, path, remembered)
    parsed = settle(_add_limits(parsed, rows, at), command, quiet=quiet)
    inputs = parsed.inputs
    started = time.monotonic()
    with show_build_progress(inputs, quiet=quiet) as inputs:
        updated = update_snapshot(path, inputs, rejects=rows.rejects)
    has_records = inputs.servers is not None or not updated.is_open
    shown = replace(updated, rows=_select_fields(updated.rows, has_records=has_records))
    lines = summary.format_update_summary(path, shown, time.monotonic() - started)
    return _finish(parsed, lines, updated.rows, quiet=quiet)


def _read_remembered(path: str) -> MappingOptions:
    """Return the options that a snapshot was built with.

    Raises SnapshotError if they are invalid.
    """
    with closing(open_snapshot(path)) as snapshot:
        return build_options(
            snapshot.reading, lambda name, reason: SnapshotError(f"{path}: {name}: {reason}")
        )


def _add_limits(sources: Sources, rows: RejectOptions, at: str | None) -> Sources:
    instant, limit = options.parse_instant_option("--at", at), rows.parse_limit()
    inputs = replace(sources.inputs, as_of=instant, strict=rows.strict, max_rejected=limit)
    return sources._replace(inputs=inputs)


def _finish(sources: Sources, lines: Sequence[str], read: BuildSummary, *, quiet: bool) -> Outcome:
    """Report the summary, and save the mapping, which has now read the sources successfully."""
    report_summary(lines, (*summary.format_dropped_rows(read), *read.warnings), quiet=quiet)
    save_mapping(sources)
    return Outcome()


def draft_servers(sources: Annotated[SourceOptions, Without("servers", "save_mapping")]) -> Outcome:
    """Generate a servers file to edit.

    Print one line of server metadata, with blank fields, for each identifier in the observations.
    Build with the file as it is, or edit it first.

    Example: srvstat snapshot draft-servers --observations week.csv --game game_a > servers.ndjson
    """
    parsed = parse_sources(sources, reads_servers=False)
    command = Command(("snapshot", "draft-servers"), sources, {})
    inputs = settle(parsed, command, quiet=False).inputs
    draft = draft_records(inputs, lambda warning: report(f"warning: {warning}"))
    if draft.rejected:
        ignored = format_count(draft.rejected, "malformed row")
        report(f"warning: {ignored} ignored: {draft.reason}")
    report(
        f"{format_count(draft.servers, 'server')}; if you edit a field, delete its name from"
        " `completed`"
    )
    return Outcome(format_records(draft.records))


def bundle(
    named: NamedServers,
    output: Annotated[str, replace(options.OUTPUT, help="The bundle to write.", metavar="PATH")],
    range: Annotated[
        str | None, options.RANGE, "The longest range that the bundle can answer [default: 1y]."
    ] = None,
    for_: Annotated[
        list[str] | None,
        Parameter(
            "Take servers, ranges and times from a recording, and store whether its responses are"
            " right; repeatable.",
            "RECORDING",
            ("--for",),
        ),
    ] = None,
    redact: Annotated[
        bool,
        Parameter(
            "Replace hostnames, project names, descriptions and links, and remove the names of"
            " source files. Identifiers, tags, flags, regions and counts are kept."
        ),
    ] = False,
    snapshot: options.SnapshotOption = None,
    overwrite: options.OverwriteOption = False,
) -> Outcome:
    """Copy some servers into a small snapshot.

    A bundle gives the same responses as the whole snapshot for its servers and days. Commands that
    need other servers or earlier windows exit with 3.

    With --for, a bundle contains what a recording's requests need. `snapshot info` shows the
    verdict on the recording, the command to repeat it, and one that explains the response without
    the recording.

    Example: srvstat snapshot bundle harbor-city new-frontier --range 30d -o case.db
    """
    options.check_ending(output, *options.SNAPSHOT_ENDINGS)
    write = partial(write_bundle, output, redact=redact, overwrite=overwrite)
    if for_:
        if named.identifiers or named.by or range:
            raise ParameterError("{for_} can't be combined with identifiers, {by} or {range}")
        written = _bundle_case(for_, output, snapshot, write)
    else:
        named.check()
        references, longest = named.build_references(), parse_range(range or "1y")
        with options.open_chosen(snapshot) as parent:
            check_coverage(parent, find_window(longest, parent.as_of))
            servers = find_references(parent, references)
            with allow_cleanup():
                written = write(parent, servers, longest)
    report(*summary.format_bundle_summary(output, written))
    return Outcome()


def _bundle_case(
    recordings: Sequence[str],
    output: str,
    snapshot: str | None,
    write: Callable[..., BundleSummary],
) -> BundleSummary:
    """Write a bundle that gives the same verdict on recordings as the whole snapshot.

    Raises SourceError for an unreadable recording, UnknownServerError or NotInBundleError if the
    snapshot lacks a server or a part of the window, SnapshotError if data are damaged, and the
    errors of `write`.
    """
    # Imported here, because the other commands of this module do not need these modules.
    from srvstat.cli.replay import describe_finding  # noqa: PLC0415
    from srvstat.support.recognition import read_recording  # noqa: PLC0415
    from srvstat.support.replay import ReplaySettings, find_case, replay  # noqa: PLC0415

    exchanges = [*chain.from_iterable(map(read_recording, recordings))]
    with options.open_chosen(snapshot) as parent:
        replayed = replay(parent, exchanges, ReplaySettings())
        case = find_case(replayed)
        check_coverage(parent, Window(case.starts_at, parent.as_of))
        servers = find_references(parent, case.references)
        names = [os.path.basename(name) for name in (*recordings, output)]
        words = ["srvstat", "replay", *names[:-1], "--snapshot", names[-1]]
        explained = [*case.explained, "--explain", "--snapshot", names[-1]]
        with allow_cleanup():
            return write(
                parent,
                servers,
                case.range,
                starts_at=max(case.searched_from, parent.covered_from or 0),
                case={
                    "verdict": describe_finding(replayed),
                    "command": shlex.join(words),
                    "explanation": shlex.join(["srvstat", *explained]),
                },
            )


def export(
    named: NamedServers,
    output: Annotated[str, replace(options.OUTPUT, help="The folder to create.", metavar="FOLDER")],
    format: Annotated[
        Literal["csv", "ndjson", "parquet"], Parameter("The format of the observations.")
    ] = "csv",
    snapshot: options.SnapshotOption = None,
) -> Outcome:
    """Write servers and observations to files.

    Write a new folder with all servers, or with the named servers only. Building from an export of
    all servers gives the same root hash, unless the snapshot has shards.

    Example: srvstat snapshot export --format parquet -o export
    """
    if format == "parquet":
        # Import it now, because nothing may be imported while signals raise exceptions.
        import_pyarrow()
    options.check_ending(output)
    check_new_folder("-o", output)
    references = named.build_references()
    with options.open_chosen(snapshot) as file:
        servers = file.iter_servers
        if named.identifiers:
            servers = find_references(file, references).__iter__
        with allow_cleanup():
            written = write_export(
                output, file, servers, partial(_encode, file, format), format=format
            )
    report(*summary.format_export_summary(output, written))
    return Outcome()


def _encode(
    snapshot: Snapshot, format: str, servers: Iterable[ServerRow], window: Window
) -> Iterable[bytes]:
    # Imported here, because builds and updates do not need its documents (60 ms).
    from srvstat.analysis.history import read_history  # noqa: PLC0415

    return encode_rows(read_history(Question(snapshot, list(servers), window)), format)


def _show_dry_run(output: str, inputs: Inputs, *, overwrite: bool, quiet: bool) -> Outcome:
    """Return the outcome of a dry run: a table.

    Raises SourceError if sources are unusable or the build would be refused, after printing the
    table on standard error.
    """
    # Not strict, so that the table has all reasons.
    with show_build_progress(replace(inputs, strict=False), quiet=quiet) as lenient:
        found = run_dry(lenient)
    is_in_the_way = os.path.lexists(output) and not overwrite
    completed = found.completed if inputs.servers else {}
    advice = _list_advice(found, output if is_in_the_way else None)
    found = replace(found, completed=completed, advice=advice)
    if found.kept and not found.refusal:
        return show(found, Form.TABLE)
    # Imported here, because Rich takes 40 ms.
    from srvstat.render.screen import UNLIMITED, Screen  # noqa: PLC0415
    from srvstat.render.tables import render_table  # noqa: PLC0415

    width = shutil.get_terminal_size().columns if os.isatty(STDERR) else UNLIMITED
    report(*render_table(found, Screen(width)).splitlines())
    raise SourceError(found.refusal or "no observations would be kept")


def _list_advice(found: DryRun, in_the_way: str | None) -> list[str]:
    """Return the remedies for rejected rows and for an existing output."""
    advice = [each.remedy for each in found.dropped if each.remedy]
    if found.max_rejected:
        kept = format_count(found.kept, found.unit)
        advice.append(f"add --max-rejected {found.max_rejected} to build with the other {kept}")
    if in_the_way is not None:
        advice.append(f"{in_the_way} already exists; add --overwrite to replace it")
    return advice
