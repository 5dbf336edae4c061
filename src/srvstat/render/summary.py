"""The summaries of builds, updates, bundles, exports and fleets as plain lines."""

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

from srvstat.contract.requests import MAX_SERVERS, MIN_SERVERS
from srvstat.contract.time import format_instant
from srvstat.documents.snapshot import (
    BuildSummary,
    BundleSummary,
    ExportSummary,
    FleetSummary,
    UpdateSummary,
)
from srvstat.render import text

_INDENT = 15
"""The column in which values begin."""


def format_build_summary(output: str, summary: BuildSummary, seconds: float) -> list[str]:
    """Return the summary of a build as lines; `seconds` is the time that it took."""
    return [
        f"built {output}",
        f"  servers      {summary.servers:,}{_format_withheld(summary)}",
        *_format_rows(summary, seconds),
    ]


def format_update_summary(path: str, summary: UpdateSummary, seconds: float) -> list[str]:
    """Return the summary of an update as lines; `seconds` is the time that it took."""
    counts = {"added": summary.added, "removed": summary.removed}
    changes = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    return [
        f"updated {path}",
        f"  servers      {summary.rows.servers:,}{f' ({changes})' if changes else ''}",
        f"  total        {text.format_count(summary.observations, 'observation')}",
        *_format_rows(summary.rows, seconds),
        f"  root         {summary.root}",
    ]


def _format_rows(summary: BuildSummary, seconds: float) -> list[str]:
    """Return what became of the rows of the sources, and what the snapshot covers, as lines."""
    return [
        *_format_kept(summary, seconds),
        f"  rejected     {summary.rejected:,}",
        f"  skipped      {_format_reasons(summary.skipped)}",
        f"  span         {text.format_span(summary.first_observed_at, summary.last_observed_at)}",
        f"  as of        {text.format_time(summary.as_of)}",
        *_format_completion(summary),
    ]


def _format_kept(summary: BuildSummary | FleetSummary, seconds: float) -> list[str]:
    # The rate is computed from the rounded seconds, so that the line is consistent.
    shown = f"{seconds:.1f}" if seconds >= 1 else f"{max(seconds, 0.001):.3f}"
    rate = f"{summary.read / float(shown):,.0f} per second"
    return [
        f"  read         {text.format_count(summary.read, 'row')} in {shown} s, {rate}",
        f"  kept         {summary.kept:,}",
        f"  repeated     {summary.repeated:,}",
        f"  conflicting  {summary.conflicting:,}",
    ]


def _format_completion(summary: BuildSummary | FleetSummary) -> Iterator[str]:
    if summary.completed:
        yield f"  completed    {text.format_completed(summary.completed)}"
    if summary.fallbacks:
        yield f"  fallbacks    {text.format_fallbacks(summary.fallbacks)}"


def format_fleet_summary(
    outputs: Sequence[str], summary: FleetSummary, seconds: float
) -> list[str]:
    """Return the summary of a fleet as lines; `seconds` is the time that it took."""
    early = {"before the window": summary.early} if summary.early else {}
    skipped = {**summary.skipped, **early}
    lines = [
        f"wrote {' and '.join(outputs)}",
        f"  servers      {summary.servers:,}{_format_withheld(summary)}",
        f"  observed     {summary.observed:,} of them in the window",
        *_format_kept(summary, seconds),
        f"  rejected     {summary.rejected:,}",
        *_list_reasons(summary.reject_reasons),
        f"  skipped      {_format_reasons(skipped)}",
        f"  window       {text.format_window(summary.start, summary.as_of)}",
        *_format_completion(summary),
    ]
    if summary.manifest:
        observations = text.format_count(summary.manifest.observations, "observation")
        shards = text.format_count(len(summary.manifest.shards), "shard")
        lines += [
            f"  snapshot     {observations} in {shards}",
            f"  root         {summary.manifest.root}",
        ]
    return lines


def format_bundle_summary(output: str, summary: BundleSummary) -> list[str]:
    """Return the summary of a bundle as lines, and the commands that check and use it."""
    path = quote(output)
    # The namespace keeps an identifier that starts with a hyphen from being read as an option.
    named = [f"id:{name}" if name.startswith("-") else name for name in summary.ids[:MAX_SERVERS]]
    question = f"get {named[0]}"
    if len(named) >= MIN_SERVERS:
        question = f"compare {' '.join(named)} --range {summary.range}"
    return [
        f"wrote {output}",
        f"  servers       {len(summary.ids):,}",
        f"  observations  {summary.observations:,}",
        f"  covered from  {text.format_time(summary.covered_from)}",
        f"  as of         {text.format_time(summary.as_of)}",
        f"  size          {summary.size:,} bytes",
        f"  root          {summary.root}",
        f"  parent root   {summary.parent_root}",
        f"check it with   srvstat snapshot verify {path}",
        f"use it with     srvstat {question} --snapshot {path}",
    ]


def format_export_summary(folder: str, summary: ExportSummary) -> list[str]:
    """Return the summary of an export as lines, and the command that builds a snapshot of it."""
    as_of = format_instant(summary.as_of)
    sources = f"--servers {quote(summary.servers_path)} --observations"
    empty = "" if summary.observations else " --allow-empty"
    lines = [
        f"wrote {folder}",
        f"  servers       {summary.servers:,}",
        f"  observations  {summary.observations:,}",
    ]
    if summary.covered_from is not None:
        lines.append(f"  covered from  {text.format_time(summary.covered_from)}, as in the bundle")
    lines += [
        f"  as of         {text.format_time(summary.as_of)}",
        f"  size          {summary.size:,} bytes",
    ]
    if summary.root is not None:
        lines.append(f"  root          {summary.root}")
    command = f"{sources} {quote(summary.observations_path)} --as-of {as_of}{empty}"
    return [*lines, f"build it with   srvstat snapshot build snapshot.db {command}"]


def format_dropped_rows(summary: BuildSummary) -> list[str]:
    """Return one line that counts the rows not kept by reason; no line if all were kept."""
    counts = {"rejected": summary.rejected, "conflicting": summary.conflicting}
    notes = [f"first rejected or conflicting row: {summary.first_reject}"]
    return _format_dropped(summary, counts, notes if summary.first_reject else [])


def format_dropped_fleet_rows(summary: FleetSummary) -> list[str]:
    """Return one line as `format_dropped_rows` does. Rows before the window are not missed."""
    rejected = {f"rejected, {why}": rows for why, rows in _sort_reasons(summary.reject_reasons)}
    counts = {**rejected, "conflicting": summary.conflicting}
    notes = [f"a conflicting row: {summary.conflict}"]
    return _format_dropped(summary, counts, notes if summary.conflict else [])


def _format_dropped(
    summary: BuildSummary | FleetSummary, counts: Mapping[str, int], notes: Sequence[str]
) -> list[str]:
    counts = {**counts, **dict(sorted(summary.skipped.items()))}
    dropped = sum(counts.values())
    if not dropped:
        return []
    reasons = ", ".join(f"{count:,} {why}" for why, count in counts.items() if count)
    line = f"{dropped:,} of {text.format_count(summary.read, 'row')} not kept: {reasons}"
    return ["; ".join([line, *notes, *filter(None, [summary.remedy])])]


def _format_withheld(summary: BuildSummary | FleetSummary) -> str:
    return f" ({summary.withheld:,} not publishable, skipped)" if summary.withheld else ""


def _list_reasons(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each reason, which can be long."""
    for why, rows in _sort_reasons(counts):
        yield f"{' ' * _INDENT}{rows:,} {why}"


def _format_reasons(counts: Mapping[str, int]) -> str:
    total = sum(counts.values())
    reasons = ", ".join(f"{count:,} {why}" for why, count in sorted(counts.items()))
    return f"{total:,} ({reasons})" if total else "0"


def _sort_reasons(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the reasons and their rows, the commonest first: engines count in any order."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
