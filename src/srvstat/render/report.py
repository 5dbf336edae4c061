"""A report as one HTML page, which needs no other file and no network."""

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from decimal import Decimal
from xml.etree.ElementTree import Element, tostring
from zoneinfo import ZoneInfo

from srvstat.contract import wire
from srvstat.documents import analysis
from srvstat.documents.document import LEAST_COVERAGE, WindowPart, is_silent, remove_color_codes
from srvstat.documents.integrity import Integrity, ServerIntegrity
from srvstat.render.figures import (
    choose_class,
    describe_shortage,
    explain_missing_change,
    format_brief_average,
    format_change,
    format_first_last,
    format_last_seen,
    format_trend,
)
from srvstat.render.html import (
    Child,
    Children,
    Labels,
    append,
    build,
    build_average,
    build_details,
    build_drawing,
    build_fields,
    build_figure,
    build_list,
    build_median,
    build_number,
    build_raw,
    build_section,
    build_table,
    build_time,
    build_whole,
    join_words,
)
from srvstat.render.pictures import (
    draw_distribution,
    draw_growth,
    draw_heat_map,
    find_busiest,
)
from srvstat.render.report_summary import summarize
from srvstat.render.svg import Size
from srvstat.render.tables.integrity import MEANING, RULES, describe_evidence
from srvstat.render.text import (
    NOTHING,
    WEEKDAYS,
    escape_text,
    format_count,
    format_hour,
    format_interval,
    format_local_date,
    format_local_month,
    format_share,
    format_span_length,
    format_window,
)
from srvstat.render.timeline import draw_timeline
from srvstat.render.web import CHART_SCRIPTS, read_asset

_STYLES = ("palette.css", "pictures.css", "chart.css", "report.css")
_SCRIPTS = (*CHART_SCRIPTS, "report.js")


def render_report(report: analysis.Report) -> bytes:
    """Return the page of a report. Equal reports give equal bytes."""
    labels = Labels.choose(report.stats.servers, report.time_zone)
    style = "\n".join(map(read_asset, _STYLES))
    scripts = [read_asset(name) for name in _SCRIPTS]
    page = build("html", _build_head(report, style, scripts), lang="en")
    page.append(_build_body(report, labels, scripts))
    return f"<!DOCTYPE html>\n{tostring(page, encoding='unicode', method='html')}\n".encode()


def _build_head(report: analysis.Report, style: str, scripts: list[str]) -> Element:
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


def _build_body(report: analysis.Report, labels: Labels, scripts: list[str]) -> Element:
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


def _build_headline(report: analysis.Report, labels: Labels) -> Iterator[Element]:
    yield build("h1", build("bdi", report.title))
    if not all(name in escape_text(report.title) for name in labels.names):
        yield build("p", *join_words([[one] for one in labels.build_names()]), class_="servers")
    yield build("p", *_describe_window(report, labels), class_="window")


def _describe_window(report: analysis.Report, labels: Labels) -> Iterator[Child]:
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


def _build_sections(report: analysis.Report, labels: Labels) -> Iterator[Element]:
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


def _encode_data(timeline: analysis.Timeline) -> str:
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


FIRST_LAST = "First → last"
"""The heading of the first and the last count of a window."""


def build_comparison(stats: analysis.Stats, labels: Labels) -> Element:
    """Build the section with the figures of all servers."""
    names = [_build_server(server, number) for number, server in enumerate(stats.servers, 1)]
    notes = []
    if stats.window.to != stats.as_of:
        record = "Current counts are those of the server records, as of "
        notes = [build("p", record, labels.build_time(stats.as_of), ".", class_="note")]
    return build_section(
        "comparison",
        "Comparison",
        build_table("Figures of the servers", ("Figure", *names), _list_rows(stats, labels)),
        *notes,
    )


def _build_server(server: analysis.ServerStatistics, number: int) -> Element:
    shown = remove_color_codes(server.hostname)
    hostname = build("bdi", shown if shown.strip() else server.server_id)
    identifiers = build("span", f"{server.server_id} {server.cfx_id}", class_="note")
    # A piece of the line that the server has in pictures.
    line = build("g", build("path", class_="line", d="M0 5H28"), class_=f"series series-{number}")
    key = build("svg", line, class_="key", viewBox="0 0 28 10", aria_hidden="true")
    return build("span", key, hostname, " ", identifiers, class_="server")


def _list_rows(stats: analysis.Stats, labels: Labels) -> Iterator[Children]:
    servers = stats.servers
    yield ["Players"]
    zone = ZoneInfo(stats.time_zone)
    yield [
        "Current",
        *(
            format_last_seen(one.last_observed_at, stats.as_of, zone)
            if is_silent(one.last_observed_at, stats.as_of)
            else build_whole(one.current_players)
            for one in servers
        ),
    ]
    yield ["Average", *(build_average(one.average_players) for one in servers)]
    yield ["Change", *(build_change(one, stats.window) for one in servers)]
    yield ["Median", *(build_median(one.median_players) for one in servers)]
    yield ["Peak", *(_build_peak(one, labels) for one in servers)]
    yield ["Lowest", *(build_whole(one.lowest_players) for one in servers)]
    yield [FIRST_LAST, *map(build_first_last, servers)]
    quantiles = [[one.quantiles[at] for one in servers] for at in range(len(servers[0].quantiles))]
    if quantiles:
        yield ["Quantiles"]
    for values in quantiles:
        percent = (Decimal(wire.format_number(values[0].quantile)) * 100).normalize()
        yield [f"{percent:f}%", *(build_median(one.players) for one in values)]
    yield ["Observations"]
    yield ["Count", *(build_whole(one.sample_count) for one in servers)]
    yield [
        "Usual interval",
        *(build_figure(one.usual_interval_seconds, format_interval) for one in servers),
    ]
    yield ["Coverage", *(build_figure(one.coverage, format_share) for one in servers)]


def build_change(server: analysis.ServerStatistics, window: WindowPart) -> Element:
    """Build the change of an average, in players and in percent, or the reason why there is none.

    It has a color.
    """
    change = server.change
    if change is None:
        reason = explain_missing_change(window, server.coverage, server.previous_coverage)
        return build("span", build_number(None, ""), " ", build("span", reason, class_="note"))
    players, *percent = format_change(change, server.average_players)
    parts: list[Child] = [build_number(change.players, players)]
    parts += [child for text in percent for child in (" ", build_number(change.percentage, text))]
    return build("span", *parts, class_=choose_class(change, server.average_players) or "same")


def build_first_last(server: analysis.ServerStatistics) -> Element:
    """Build the first and the last count of a window, without a color."""
    rise = server.growth.players
    return build_number(rise, format_first_last(server.first_players, rise))


def _build_peak(server: analysis.ServerStatistics, labels: Labels) -> Element:
    """Build the peak with the times at which it was first and last observed."""
    first, last = server.peak_first_at, server.peak_last_at
    times: list[Child] = []
    if first is not None:
        times = [" ", build("span", labels.build_time(first), class_="note")]
    if last is not None and last != first:
        times += [" ", build("span", "last ", labels.build_time(last), class_="note")]
    return build("span", build_whole(server.peak_players), *times)


_HEADERS = {"day": "Day", "week": "Week from", "month": "Month"}


def build_growth_section(
    document: analysis.GrowthDocument, stats: analysis.Stats, labels: Labels
) -> Element:
    """Build the section on growth in the window, against the previous window."""
    caption = (
        f"Average players by {document.step}, and the change against the {document.step} before"
    )
    height = 120 + 80 * len(document.servers)
    drawing = build_drawing(
        lambda size: draw_growth(document, size), Size(900, height), Size(360, height)
    )
    return build_section(
        "growth",
        "Growth",
        build("figure", drawing),
        _compare_windows(document, stats, labels),
        *(build("p", *note, class_="note") for note in _list_notes(document, labels)),
        build_details(
            f"Averages and changes by {document.step}",
            _build_steps(caption, document, labels, _build_average_and_change),
        ),
    )


def _compare_windows(
    document: analysis.GrowthDocument, stats: analysis.Stats, labels: Labels
) -> Element:
    headers = ["Server", "Average", "Change", "Trend", FIRST_LAST]
    if document.previous_window is not None:
        headers.insert(2, "Average before")
    rows = [
        (labels.build_name(at), *_list_cells(server, figures, stats))
        for at, (server, figures) in enumerate(zip(document.servers, stats.servers, strict=True))
    ]
    return build_table("Averages and growth of the servers", headers, rows)


def _list_cells(
    server: analysis.ServerGrowth, figures: analysis.ServerStatistics, stats: analysis.Stats
) -> Iterator[Child]:
    yield build_average(server.average_players)
    if stats.previous_window is not None:
        previous = figures.previous
        yield build_average(None if previous is None else previous.average_players)
    yield build_change(figures, stats.window)
    trend = format_trend(server.players_per_week, server.average_players, server.coverage)
    yield build_number(None if trend == NOTHING else server.players_per_week, trend)
    yield build_first_last(figures)


def _build_average(step: analysis.GrowthStepPart, part: str) -> Element:
    average = build_average(step.average_players)
    if not step.is_partial or step.average_players is None:
        return average
    # The figure is at the end, below the others of its column.
    return build("span", build("span", part, class_="note"), " ", average, class_="partial")


def _build_average_and_change(step: analysis.GrowthStepPart, part: str) -> Element:
    average = _build_average(step, part)
    change = step.change
    if change is None:
        return average
    text = format_change(change, step.average_players)[0]
    css = f"note {choose_class(change, step.average_players)}".strip()
    return build(
        "span", average, " ", build("span", build_number(change.players, text), class_=css)
    )


def _build_steps(
    caption: str,
    document: analysis.GrowthDocument,
    labels: Labels,
    build_cell: Callable[[analysis.GrowthStepPart, str], Element],
) -> Element:
    """Build a table with a row for each step, and a column for each server."""
    names = labels.build_names()
    part = f"part of a {document.step}"
    # The first step may begin where the window does, within a day or month.
    format_start = format_local_month if document.step == "month" else format_local_date
    rows = (
        (
            build_time(steps[0].from_, format_start(steps[0].from_, labels.zone)),
            *(build_cell(step, part) for step in steps),
        )
        for steps in zip(*(server.steps for server in document.servers), strict=True)
    )
    return build_table(caption, (_HEADERS[document.step], *names), rows, "figures small")


def _list_notes(document: analysis.GrowthDocument, labels: Labels) -> Iterator[Children]:
    yield [
        (
            "The trend is the median change of the average, in players a week, between any two"
            f" whole days ({document.time_zone})."
        )
    ]
    previous = document.previous_window
    if previous is None or previous.from_ is None:
        yield ["There is no window of equal length before to compare with."]
        return
    times = labels.build_time(previous.from_), " to ", labels.build_time(previous.to)
    yield ["The window before is from ", *times, f" ({document.time_zone})."]


_MAP = Size(400, 220)
"""Wide pages have two maps in a row, so that one size is enough."""


def build_players(report: analysis.Report, labels: Labels) -> Element:
    """Build the section on the players over time, which a script makes interactive."""
    timeline, step = report.timeline, report.growth.step
    averages = _build_steps(f"Average players by {step}", report.growth, labels, _build_average)
    picture = build_drawing(
        lambda size: draw_timeline(timeline, size, labels.zone), Size(900, 320), Size(360, 280)
    )
    note = (
        f"Each point is the average of a step on the clock of {report.time_zone}. A step of which"
        " less than 90% was observed is pale; lines to and from it are dashed, and the axis"
        " disregards it. A line breaks at a gap, unless the gap is within whole steps."
    )
    return build_section(
        "players",
        "Players over time",
        build("figure", build("div", picture, data_chart=""), build("figcaption", note)),
        build_details(f"Averages by {step}", averages),
    )


def build_hours(document: analysis.PeakHours, stats: analysis.Stats, labels: Labels) -> Element:
    """Build the section on the hours of the week."""
    note = (
        "The average number of players in each hour of the week, on the clock of"
        f" {document.time_zone}. An hour with fewer than 4 observations is empty. Each map has"
        " its own scale."
    )
    maps = [
        _build_map(server, name, figures.coverage or 0)
        for server, name, figures in zip(document.servers, labels.names, stats.servers, strict=True)
    ]
    return build_section(
        "hours",
        "Hours of the week",
        build("p", note, class_="note"),
        build("div", *maps, class_="maps"),
    )


def _build_map(server: analysis.ServerPeakHours, name: str, coverage: float) -> Element:
    heading = build("h3", build("bdi", name))
    if server.busiest is None or server.quietest is None:
        few = f"{describe_shortage(server)}; use a longer window."
        return build("div", heading, build("p", few), class_="map")
    is_well_observed = coverage >= LEAST_COVERAGE
    extremes: Children = (
        *("Busiest: ", *_describe_hour(server.busiest, server), ". "),
        *("Quietest: ", *_describe_hour(server.quietest, server), "."),
    )
    if not is_well_observed:
        few = f"{format_share(coverage)} of the window was observed"
        extremes = [f"Only {few}, so no hour is named the busiest."]
    elif find_busiest(server) is None:
        known = {cell.average_players for cell in server.cells} - {None}
        extremes = ["No hour is busier than another."]
        if len(known) > 1:
            extremes = ["Too few hours have an average to name the busiest."]
    drawing = draw_heat_map(server, _MAP, is_well_observed=is_well_observed)
    picture = build("div", drawing, class_="drawing")
    headers = ("Hour", *(day[:3] for day in WEEKDAYS))
    rows: Iterator[Children] = (
        (f"{at:02}:00", *map(_build_brief_average, server.cells[at::24])) for at in range(24)
    )
    table = build_table(
        f"Average players of {name} by hour and weekday",
        headers,
        rows,
        "figures small",
    )
    figure = build("figure", picture, build("figcaption", *extremes))
    return build("div", heading, figure, build_details("Figures of this map", table), class_="map")


def _build_brief_average(cell: analysis.HourCellPart) -> Element:
    return build_number(cell.average_players, format_brief_average(cell.average_players))


def _describe_hour(hour: analysis.HourPart, server: analysis.ServerPeakHours) -> Children:
    average = build_average(server.get_cell(hour).average_players)
    return [format_hour(hour.weekday, hour.hour), ", average ", average]


def build_distribution(document: analysis.Distribution, labels: Labels) -> Element:
    """Build the section on how often servers had how many players."""
    note = (
        "How often each number of players was observed, with the median and the middle half of the"
        " observations, from the lower to the upper quartile."
    )
    height = 150 + 55 * len(document.servers)
    picture = build_drawing(
        lambda size: draw_distribution(document, size), Size(900, height), Size(360, height)
    )
    names = labels.build_names()
    table = build_table(
        "Observations by number of players",
        ("Players", *names),
        _list_bins(document),
        "figures small",
    )
    return build_section(
        "distribution",
        "Distribution",
        build("figure", picture, build("figcaption", note)),
        build_details("Figures of the distribution", table),
    )


def _list_bins(document: analysis.Distribution) -> Iterator[Children]:
    for at, counts in enumerate(zip(*(one.counts for one in document.servers), strict=True)):
        first = document.first_players + at * document.bin_players
        last = first + document.bin_players - 1
        name = f"{first:,}" if first == last else f"{first:,} to {last:,}"
        yield name, *map(build_whole, counts)


_MAX_GAPS = 20
"""The most gaps listed for a server."""


def build_coverage_section(report: analysis.Report, labels: Labels) -> Element:
    """Build the section on coverage."""
    note = (
        "An observation lasts until the next one, at most three usual intervals; the coverage is"
        " the share of the window in which observations last. A gap is a longer time without"
        " observations: from one to the next, or to an edge of the window. It says nothing about"
        " whether the server was up. The integrity rule also counts shorter gaps, of more than 1.5"
        " usual intervals."
    )
    headers: tuple[str, ...] = ("Server", "Observations", "Coverage", "Gaps", "In gaps")
    lengths = [sum(gap.to - gap.from_ for gap in one.gaps) for one in report.timeline.servers]
    rows = [
        (
            labels.build_name(at),
            build_whole(figures.sample_count),
            build_figure(figures.coverage, format_share),
            f"{len(timeline.gaps):,}",
            format_span_length(length) if (length := lengths[at]) else "none",
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
    gaps = [
        row for at, one in enumerate(report.timeline.servers) for row in _list_gaps(one, at, labels)
    ]
    if gaps:
        headers = ("Server", "From", "To", "Length")
        table = build_table("The longest gaps of each server", headers, gaps, "words")
        section.append(build_details("List of gaps", table, class_="printed"))
    return section


def _list_gaps(server: analysis.ServerTimeline, at: int, labels: Labels) -> Iterator[Children]:
    """Yield the longest gaps of a server in the order of time."""
    longest = sorted(server.gaps, key=lambda gap: gap.from_ - gap.to)[:_MAX_GAPS]
    for gap in sorted(longest, key=lambda gap: gap.from_):
        times = labels.build_time(gap.from_), labels.build_time(gap.to)
        yield labels.build_name(at), *times, format_span_length(gap.to - gap.from_)
    if len(longest) < len(server.gaps):
        rest = format_count(len(server.gaps) - len(longest), "shorter gap")
        yield labels.build_name(at), f"and {rest}; report --json lists all", "", ""


_RESULTS = {"notEvaluated": "not evaluated"}


def build_integrity(integrity: Integrity, labels: Labels) -> Element:
    """Build the section on integrity."""
    rows = []
    for rules in zip(*(server.rules for server in integrity.servers), strict=True):
        words = RULES[rules[0].rule]
        rule = build("span", words.name, " ", build("span", words.meaning, class_="note"))
        results = (rule.result for rule in rules)
        shown = [build("span", _RESULTS.get(one, one), class_=f"result {one}") for one in results]
        rows.append((rule, *shown))
    section = build_section(
        "integrity",
        "Integrity",
        build("p", MEANING, class_="note"),
        build_table(
            "Results of the integrity rules", ("Rule", *labels.build_names()), rows, "results"
        ),
    )
    for at, server in enumerate(integrity.servers):
        append(section, _describe_suspects(server, labels.build_name(at), integrity.time_zone))
    reasons = list(_list_reasons(integrity, labels))
    if reasons:
        table = build_table(
            "Rules that were not evaluated", ("Server and rule", "Reason"), reasons, "words"
        )
        section.append(build_details("Why rules were not evaluated", table, class_="printed"))
    return section


def _describe_suspects(server: ServerIntegrity, name: Child, zone: str) -> Iterator[Element]:
    suspects = [rule for rule in server.rules if rule.result == "suspect"]
    if suspects:
        yield build("h3", "Suspect on ", name)
    for rule in suspects:
        causes = build("span", "Innocent causes: ", " ".join(rule.innocent_causes), class_="note")
        evidence = build("span", describe_evidence(rule, ZoneInfo(zone)), " ", causes)
        yield build_fields({RULES[rule.rule].name: evidence})


def _list_reasons(integrity: Integrity, labels: Labels) -> Iterator[Children]:
    for at, server in enumerate(integrity.servers):
        for rule in server.rules:
            if rule.reason is not None:
                rule_of = build("span", labels.build_name(at), f": {RULES[rule.rule].name.lower()}")
                yield rule_of, rule.reason


DEFINITIONS = {
    "Observation": "One player count of a server at an instant.",
    "Window": "The time that the report covers, without its first instant and with its last.",
    "Current": "The count in the server's record, or else its last observation.",
    "Average": "The sum of the counts divided by their number; all observations weigh the same.",
    "Median": "The 50% quantile.",
    "Quantile": "The count that a share of the observations does not exceed.",
    "Change": "The average of the window minus the average of the window of equal length before, in"
    " players and in percent. There is none if less than 80% of either window was observed.",
    FIRST_LAST: "The first and the last count of the window. They are two moments, mostly at"
    " different times of day.",
    "Trend": "The median slope between the averages of any two whole days (Theil and Sen). It is"
    " flat if it changes the average by less than 1% a week, and there is none if less than 80% of"
    " the window was observed.",
    "Whole, partial": "A step, such as a day, is whole if at least 90% of it was observed,"
    " otherwise partial. A partial step does not determine a scale or a trend.",
    "Usual interval": "The median distance between successive observations.",
    "Coverage": "The share of the window in which an observation lasts.",
    NOTHING: "No value, because there are too few observations.",
}
"""The meaning of words."""


def build_origin(report: analysis.Report, labels: Labels) -> Element:
    """Build the section on where the data and the page come from, and how to check them."""
    verify = build("code", "srvstat snapshot verify SNAPSHOT")
    root = build("code", report.root, class_="long")
    check = (
        " prints the root of an intact snapshot. The command above, run on this snapshot, writes"
        " this file again."
    )
    return build_section(
        "origin",
        "Source",
        build_fields(
            {
                "Snapshot as of": labels.build_time(report.as_of),
                "Root": build("span", root, " (SHA-256 of the snapshot's content)"),
                "Window": format_window(report.window.from_, report.window.to, labels.zone),
                "Time zone": report.time_zone,
                "Program": report.program,
                "Command": build("code", report.command),
                "To check": build("span", verify, check),
            }
        ),
    )
