"""Summaries of builds, updates, bundles, exports and fleets as plain lines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from shlex import quote

from srvstat.contract import wire
from srvstat.contract.requests import MAX_SERVERS, MIN_SERVERS
from srvstat.contract.time import format_instant
from srvstat.documents import snapshot
from srvstat.render import text

_Fields = Iterator[tuple[str, str]]


def format_build_summary(output: str, summary: snapshot.BuildSummary, seconds: float) -> list[str]:
    """Return the summary of a build as lines. `seconds` is the elapsed time."""
    servers = f"{summary.servers:,}{text.format_withheld(summary.withheld)}"
    fields = [("servers", servers), *_list_converted(summary), *_list_rows(summary, seconds)]
    return [f"built {output}", *_align(fields)]


def format_update_summary(path: str, summary: snapshot.UpdateSummary, seconds: float) -> list[str]:
    """Return the summary of an update as lines. `seconds` is the elapsed time."""
    counts = {"added": len(summary.added_ids), "removed": summary.removed}
    changes = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    fields = [
        ("servers", f"{summary.rows.servers:,}{f' ({changes})' if changes else ''}"),
        *([("added", _list_names(summary.added_ids))] if summary.added_ids else []),
        ("total", text.format_count(summary.observations, "observation")),
        *_list_rows(summary.rows, seconds),
        ("root", summary.root),
    ]
    return [f"updated {path}", *_align(fields)]


def format_fleet_summary(
    outputs: Sequence[str], summary: snapshot.FleetSummary, seconds: float
) -> list[str]:
    """Return the summary of a fleet as lines. `seconds` is the elapsed time."""
    early = {"before the window": summary.early} if summary.early else {}
    fields = [
        ("servers", f"{summary.servers:,}{text.format_withheld(summary.withheld)}"),
        ("with data", f"{summary.observed:,} in the window"),
        *_list_kept(summary, seconds),
        ("rejected", f"{summary.rejected:,}"),
        # A reason can be long, so each has its own line.
        *(("", f"{rows:,} {why}") for why, rows in _sort_reasons(summary.reject_reasons)),
        ("skipped", _format_reasons({**summary.skipped, **early})),
        ("window", text.format_window(summary.start, summary.as_of)),
        *_list_completion(summary),
    ]
    if summary.manifest:
        observations = text.format_count(summary.manifest.observations, "observation")
        shards = text.format_count(len(summary.manifest.shards), "shard")
        fields += [("snapshot", f"{observations} in {shards}"), ("root", summary.manifest.root)]
    return [f"wrote {' and '.join(outputs)}", *_align(fields)]


def format_bundle_summary(output: str, summary: snapshot.BundleSummary) -> list[str]:
    """Return the summary of a bundle as lines, with the commands that check and use it."""
    path = quote(output)
    # The namespace keeps an identifier that starts with a hyphen from being read as an option.
    named = [f"id:{name}" if name.startswith("-") else name for name in summary.ids[:MAX_SERVERS]]
    question = f"get {named[0]}"
    if len(named) >= MIN_SERVERS:
        question = f"compare {' '.join(named)} --range {summary.range}"
    fields = [
        ("servers", f"{len(summary.ids):,}"),
        ("observations", f"{summary.observations:,}"),
        ("covered from", text.format_time(summary.covered_from)),
        ("as of", text.format_time(summary.as_of)),
        ("size", f"{summary.size:,} bytes"),
        ("root", summary.root),
        ("parent root", summary.parent_root),
    ]
    return [
        f"wrote {output}",
        *_align(fields),
        f"verify:  srvstat snapshot verify {path}",
        f"query:   srvstat {question} --snapshot {path}",
    ]


def format_export_summary(folder: str, summary: snapshot.ExportSummary) -> list[str]:
    """Return the summary of an export as lines, with the command that builds a snapshot from it."""
    fields = [("servers", f"{summary.servers:,}"), ("observations", f"{summary.observations:,}")]
    if summary.covered_from is not None:
        start = text.format_time(summary.covered_from)
        fields.append(("covered from", f"{start}, as in the bundle"))
    fields += [("as of", text.format_time(summary.as_of)), ("size", f"{summary.size:,} bytes")]
    if summary.root is not None:
        fields.append(("root", summary.root))
    paths = f"--servers {quote(summary.servers_path)} --observations"
    command = f"{paths} {quote(summary.observations_path)} --at {format_instant(summary.as_of)}"
    empty = "" if summary.observations else " --allow-empty"
    return [
        f"wrote {folder}",
        *_align(fields),
        f"rebuild:  srvstat snapshot build snapshot.db {command}{empty}",
    ]


def format_dropped_rows(summary: snapshot.BuildSummary) -> list[str]:
    """Return one line that counts the rows not kept by reason, or no line if all were kept."""
    counts = {"rejected": summary.rejected, "conflicting": summary.conflicting}
    first = summary.first_reject
    return _format_dropped(summary, counts, first and f"first: {first}")


def format_dropped_fleet_rows(summary: snapshot.FleetSummary) -> list[str]:
    """Return one line as `format_dropped_rows` does. Rows before the window don't count."""
    rejected = {f"rejected, {why}": rows for why, rows in _sort_reasons(summary.reject_reasons)}
    counts = {**rejected, "conflicting": summary.conflicting}
    found = summary.conflict
    return _format_dropped(summary, counts, found and f"for example, {found}")


def _format_dropped(
    summary: snapshot.BuildSummary | snapshot.FleetSummary,
    counts: Mapping[str, int],
    example: str | None,
) -> list[str]:
    counts = {**counts, **dict(sorted(summary.skipped.items()))}
    dropped = sum(counts.values())
    if not dropped:
        return []
    reasons = ", ".join(f"{count:,} {why}" for why, count in counts.items() if count)
    line = f"{dropped:,} of {text.format_count(summary.read, summary.unit)} not kept: {reasons}"
    return ["; ".join(filter(None, [line, example, summary.remedy]))]


def _align(fields: Iterable[tuple[str, str]]) -> list[str]:
    """Return indented lines with aligned values."""
    pairs = list(fields)
    width = max(len(name) for name, _ in pairs) + 2
    return [f"  {name:<{width}}{value}" for name, value in pairs]


_MAX_NAMED = 3


def _list_converted(summary: snapshot.BuildSummary) -> _Fields:
    if summary.converted:
        first = dict([*summary.converted.items()][:1])
        yield "ids", f"{len(summary.converted):,} converted, such as {_list_names(first)}"


def _list_names(names: Mapping[str, str]) -> str:
    """Return the first ids, each with the server's name in its source."""
    listed = [
        server_id if name == server_id else f"{server_id} ({wire.quote_value(name)})"
        for server_id, name in names.items()
    ]
    return text.name_some(listed, _MAX_NAMED)


def _list_rows(summary: snapshot.BuildSummary, seconds: float) -> _Fields:
    """Yield what happened to the sources' rows, and what the snapshot covers."""
    yield from _list_kept(summary, seconds)
    yield "rejected", f"{summary.rejected:,}"
    yield "skipped", _format_reasons(summary.skipped)
    yield "span", text.format_span(summary.first_observed_at, summary.last_observed_at)
    yield "as of", text.format_time(summary.as_of)
    yield from _list_completion(summary)


def _list_kept(summary: snapshot.BuildSummary | snapshot.FleetSummary, seconds: float) -> _Fields:
    # The rate is computed from the rounded seconds, so that the line is consistent.
    shown = f"{seconds:.1f}" if seconds >= 1 else f"{max(seconds, 0.001):.3f}"
    rate = f"{summary.read / float(shown):,.0f} per second"
    yield "read", f"{text.format_count(summary.read, summary.unit)} in {shown} s, {rate}"
    yield "kept", f"{summary.kept:,}"
    yield "repeated", f"{summary.repeated:,}"
    yield "conflicting", f"{summary.conflicting:,}"


def _list_completion(summary: snapshot.BuildSummary | snapshot.FleetSummary) -> _Fields:
    if summary.completed:
        yield "completed", text.format_completed(summary.completed)
    if summary.fallbacks:
        yield "fallbacks", text.format_fallbacks(summary.fallbacks)


def _format_reasons(counts: Mapping[str, int]) -> str:
    total = sum(counts.values())
    reasons = ", ".join(f"{count:,} {why}" for why, count in sorted(counts.items()))
    return f"{total:,} ({reasons})" if total else "0"


def _sort_reasons(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the reasons and their rows, the most frequent first. Engines count in any order."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
