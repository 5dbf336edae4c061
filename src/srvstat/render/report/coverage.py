"""The section on coverage: how much was observed, and the times without observations."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from srvstat.documents.analysis import Report, ServerTimeline
from srvstat.render.report.comparison import build_coverage, build_whole
from srvstat.render.report.elements import (
    Children,
    build,
    build_details,
    build_section,
    build_table,
)
from srvstat.render.report.labels import Labels
from srvstat.render.text import format_count, format_span_length

_MAX_GAPS = 20
"""The most gaps listed for a server."""


def build_coverage_section(report: Report, labels: Labels) -> Element:
    """Build the section on coverage."""
    note = (
        "An observation lasts until the next one, at most three usual intervals; the coverage is"
        " the share of the window in which observations last. A gap is a longer time without"
        " observations: from one to the next, or to an edge of the window. It says nothing about"
        " whether the server was up. The integrity rule also counts shorter gaps, of more than 1.5"
        " usual intervals."
    )
    headers = ("Server", "Observations", "Coverage", "Gaps", "In gaps")
    rows = [
        (
            labels.build_name(at),
            build_whole(figures.sample_count),
            build_coverage(figures.coverage),
            f"{len(timeline.gaps):,}",
            _format_gap_length(timeline),
        )
        for at, (figures, timeline) in enumerate(
            zip(report.stats.servers, report.timeline.servers, strict=True)
        )
    ]
    section = build_section(
        "coverage",
        "Coverage",
        build_table("Observations of the servers", headers, rows),
        build("p", note, class_="note"),
    )
    if any(server.gaps for server in report.timeline.servers):
        section.append(_build_gaps(report, labels))
    return section


def _format_gap_length(server: ServerTimeline) -> str:
    length = sum(gap.to - gap.from_ for gap in server.gaps)
    return format_span_length(length) if length else "none"


def _build_gaps(report: Report, labels: Labels) -> Element:
    headers = ("Server", "From", "To", "Length")
    rows = [
        row for at, one in enumerate(report.timeline.servers) for row in _list_gaps(one, at, labels)
    ]
    table = build_table("The longest gaps of each server", headers, rows, "words")
    return build_details("List of gaps", table, class_="printed")


def _list_gaps(server: ServerTimeline, at: int, labels: Labels) -> Iterator[Children]:
    """Yield the longest gaps of a server in the order of time."""
    longest = sorted(server.gaps, key=lambda gap: gap.from_ - gap.to)[:_MAX_GAPS]
    for gap in sorted(longest, key=lambda gap: gap.from_):
        times = labels.build_time(gap.from_), labels.build_time(gap.to)
        yield labels.build_name(at), *times, format_span_length(gap.to - gap.from_)
    if len(longest) < len(server.gaps):
        rest = format_count(len(server.gaps) - len(longest), "shorter gap")
        yield labels.build_name(at), f"and {rest}; report --json lists all", "", ""
