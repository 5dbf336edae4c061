"""What a build reports, as plain lines."""

from srvstat.documents.views import BuildSummary
from srvstat.render.text import format_count, instant_text


def build_summary(output: str, summary: BuildSummary, seconds: float) -> list[str]:
    """Return the lines that say what became of the sources of a build."""
    # The rate is that of the seconds shown, so that the line does not contradict itself.
    shown = f"{seconds:.1f}" if seconds >= 1 else f"{max(seconds, 0.001):.3f}"
    rate = f"{summary.read / float(shown):,.0f} a second"
    withheld = f" ({summary.withheld:,} not publishable, skipped)" if summary.withheld else ""
    lines = [
        f"built {output}",
        f"  servers      {summary.servers:,}{withheld}",
        f"  read         {format_count(summary.read, 'row')} in {shown} s, {rate}",
        f"  kept         {summary.kept:,}",
        f"  repeated     {summary.repeated:,}",
        f"  conflicting  {summary.conflicting:,}",
        f"  rejected     {summary.rejected:,}",
        f"  skipped      {_skipped_lines(summary)}",
        f"  span         {_span(summary)}",
        f"  as of        {instant_text(summary.as_of)}",
    ]
    if summary.fallbacks:
        what = format_count(summary.fallbacks, "server")
        lines.append(f"  fallbacks    {what} without players.current: the last observation, or 0")
    if summary.first_reject:
        lines.append(f"  first of the rejects: {summary.first_reject}")
    return lines


def rows_not_kept(summary: BuildSummary) -> list[str]:
    """Return one line that says which rows were read and not kept; none where all were."""
    counts = {"rejected": summary.rejected, "conflicting": summary.conflicting}
    counts.update(sorted(summary.skipped.items()))
    not_kept = sum(counts.values())
    if not not_kept:
        return []
    reasons = ", ".join(f"{count:,} {why}" for why, count in counts.items() if count)
    first = f"; first of the rejects: {summary.first_reject}" if summary.first_reject else ""
    return [f"{not_kept:,} of {format_count(summary.read, 'row')} not kept: {reasons}{first}"]


def _skipped_lines(summary: BuildSummary) -> str:
    total = sum(summary.skipped.values())
    reasons = ", ".join(f"{count:,} {why}" for why, count in sorted(summary.skipped.items()))
    return f"{total:,} ({reasons})" if total else "0"


def _span(summary: BuildSummary) -> str:
    if summary.first_observed_at is None or summary.last_observed_at is None:
        return "no observation"
    first, last = summary.first_observed_at, summary.last_observed_at
    return f"{instant_text(first)} to {instant_text(last)}"
