"""The page of a report: its head, its order of sections, and the data for its scripts."""

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterator
from xml.etree.ElementTree import Element, tostring

from srvstat.contract import wire
from srvstat.documents.analysis import Report, Timeline
from srvstat.render.report.elements import (
    Child,
    Labels,
    append,
    build,
    build_fields,
    build_list,
    build_raw,
    build_section,
    join_words,
)
from srvstat.render.report.sections import (
    DEFINITIONS,
    build_comparison,
    build_coverage_section,
    build_distribution,
    build_growth_section,
    build_hours,
    build_integrity,
    build_origin,
    build_players,
)
from srvstat.render.report.summary import summarize
from srvstat.render.text import escape_text, format_span_length
from srvstat.render.web import CHART_SCRIPTS, read_asset

_STYLES = ("palette.css", "pictures.css", "chart.css", "report.css")
_SCRIPTS = (*CHART_SCRIPTS, "report.js")


def render_report(report: Report) -> bytes:
    """Return the page of a report. Equal reports give equal bytes."""
    labels = Labels.choose(report.stats.servers, report.time_zone)
    style = "\n".join(map(read_asset, _STYLES))
    scripts = [read_asset(name) for name in _SCRIPTS]
    page = build("html", _build_head(report, style, scripts), lang="en")
    page.append(_build_body(report, labels, scripts))
    return f"<!DOCTYPE html>\n{tostring(page, encoding='unicode', method='html')}\n".encode()


def _build_head(report: Report, style: str, scripts: list[str]) -> Element:
    policy = (
        f"default-src 'none'; style-src {_hash_source(style)};"
        f" script-src {' '.join(map(_hash_source, scripts))};"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )
    return build(
        "head",
        build("meta", charset="utf-8"),
        build("meta", http_equiv="Content-Security-Policy", content=policy),
        build("meta", name="referrer", content="no-referrer"),
        build("meta", name="viewport", content="width=device-width, initial-scale=1"),
        build("meta", name="color-scheme", content="light dark"),
        build("meta", name="generator", content=report.program),
        build("title", report.title),
        # Without an icon, a browser asks the host of the page for one.
        build("link", rel="icon", href="data:,"),
        build_raw("style", style),
    )


def _hash_source(text: str) -> str:
    """Return the source of a policy that allows an inline text."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{b64encode(digest).decode()}'"


def _build_body(report: Report, labels: Labels, scripts: list[str]) -> Element:
    sections = list(_build_sections(report, labels))
    links = [[build("a", one[0].text or "", href=f"#{one.get('id')}")] for one in sections]
    body = build(
        "body",
        build("a", "Skip to the report", href="#content", class_="skip"),
        build("header", *_build_headline(report, labels)),
        build("nav", build_list(links), aria_label="Sections"),
        build("main", *sections, id="content", tabindex="-1"),
        build_raw("script", _encode_data(report.timeline), type="application/json", id="timeline"),
    )
    append(body, (build_raw("script", script) for script in scripts))
    return body


def _build_headline(report: Report, labels: Labels) -> Iterator[Element]:
    yield build("h1", build("bdi", report.title))
    if not all(name in escape_text(report.title) for name in labels.names):
        yield build("p", *join_words([[one] for one in labels.build_names()]), class_="servers")
    yield build("p", *_describe_window(report, labels), class_="window")


def _describe_window(report: Report, labels: Labels) -> Iterator[Child]:
    """Yield the window in words; one without a beginning begins with the first observation."""
    window = report.timeline.window
    start = window.to if window.from_ is None else window.from_
    if report.window.from_ is None:
        yield "All observations, "
    yield f"{format_span_length(window.to - start)}: from "
    yield labels.build_time(start)
    yield " to "
    yield labels.build_time(window.to)
    yield f" ({report.time_zone})"


def _build_sections(report: Report, labels: Labels) -> Iterator[Element]:
    yield build_section("summary", "Summary", build_list(summarize(report, labels)))
    yield build_comparison(report.stats, labels)
    if any(server.sample_count for server in report.stats.servers):
        yield build_players(report, labels)
        yield build_hours(report.peak_hours, report.stats, labels)
        yield build_distribution(report.distribution, labels)
        yield build_growth_section(report.growth, report.stats, labels)
    yield build_integrity(report.integrity, labels)
    yield build_coverage_section(report, labels)
    yield build_origin(report, labels)
    yield build_section("definitions", "Definitions", build_fields(DEFINITIONS))


_UNSAFE = re.compile(r"[^ -~]|[<>&]")
"""Characters that could end a script element or, with `-o -`, control a terminal."""


def _encode_data(timeline: Timeline) -> str:
    """Return the timeline as ASCII JSON that can't end the script element around it.

    It has totals in place of averages, which have up to 17 digits; report.js divides them again.
    """
    document = timeline.model_dump()
    for server in document["servers"]:
        averages = zip(server.pop("averages"), server["sampleCounts"], strict=True)
        # A total is an integer, so a rounded average is enough to find it.
        server["totals"] = [None if one is None else round(one * count) for one, count in averages]
    return _UNSAFE.sub(_escape, wire.encode(document).decode())


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
