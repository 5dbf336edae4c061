"""Render a report as a single HTML page that needs no other files and no network."""

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from xml.etree.ElementTree import Element, tostring
from zoneinfo import ZoneInfo

from srvstat.contract import wire
from srvstat.contract.time import format_instant
from srvstat.contract.windows import DAY_MS
from srvstat.documents import analysis
from srvstat.documents.document import LEAST_COVERAGE, WindowPart, is_silent, remove_color_codes
from srvstat.render import figures, html, pictures, text
from srvstat.render.svg import Scale, Size, format_number
from srvstat.render.tables.integrity import MEANING, RULES, describe_evidence
from srvstat.render.timeline import (
    STEPS,
    Point,
    choose_step,
    draw_timeline,
    find_scale,
    get_window,
    merge_steps,
)
from srvstat.render.web import CHART_SCRIPTS, read_asset

_STYLES = ("palette.css", "pictures.css", "chart.css", "servers.css", "report.css")
_SCRIPTS = (*CHART_SCRIPTS, "report.js")


def render_report(report: analysis.Report) -> bytes:
    """Render a report as a page. Equal reports give equal bytes."""
    labels = html.Labels.choose(report.stats.servers, report.time_zone)
    style = "\n".join(map(read_asset, _STYLES))
    is_observed = any(map(_is_observed, report.stats.servers))
    scripts = [read_asset(name) for name in _SCRIPTS] if is_observed else []
    page = html.build("html", _build_head(report, style, scripts), lang="en")
    page.append(_build_body(report, labels, scripts))
    return f"<!DOCTYPE html>\n{tostring(page, encoding='unicode', method='html')}\n".encode()


def _is_observed(server: analysis.ServerStatistics) -> bool:
    return server.average_players is not None


def _build_head(report: analysis.Report, style: str, scripts: list[str]) -> Element:
    policy = (
        f"default-src 'none'; style-src {_hash_source(style)};"
        f" script-src {' '.join(map(_hash_source, scripts))};"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )
    return html.build(
        "head",
        html.build("meta", charset="utf-8"),
        html.build("meta", http_equiv="Content-Security-Policy", content=policy),
        html.build("meta", name="referrer", content="no-referrer"),
        html.build("meta", name="viewport", content="width=device-width, initial-scale=1"),
        html.build("meta", name="color-scheme", content="light dark"),
        html.build("meta", name="generator", content=report.program),
        html.build("title", report.title),
        # Without an icon, a browser requests one from the host of the page.
        html.build("link", rel="icon", href="data:,"),
        html.build_raw("style", style),
    )


def _hash_source(source: str) -> str:
    """Return the policy source that allows an inline text."""
    digest = hashlib.sha256(source.encode()).digest()
    return f"'sha256-{b64encode(digest).decode()}'"


def _build_body(report: analysis.Report, labels: html.Labels, scripts: list[str]) -> Element:
    """Build the finding and a row per server, then the pictures if anything was observed."""
    definitions = html.build_fields(_DEFINITIONS | (_HELD_DEFINITIONS if report.hold else {}))
    body = html.build(
        "body",
        html.build("a", "Skip to the report", href="#content", class_="skip"),
        html.build(
            "header",
            html.build("h1", html.build("bdi", report.title)),
            html.build("p", *_describe_finding(report, labels), class_="finding"),
        ),
    )
    players = [build_servers(report.stats.servers, report.timeline)]
    sections: list[Element] = []
    if scripts:
        # Turned into an interactive chart by a script.
        draw = partial(draw_timeline, report.timeline, zone=labels.zone)
        players.append(html.build("div", _build_drawing(draw, 320, 260), data_chart=""))
        sections = [
            html.build_section(name, title, *list_parts(report, labels))
            for name, title, list_parts in _SECTIONS
        ]
    source = html.build_section("origin", "Source", *_list_origin(report, labels))
    source.append(html.build_details("What the words mean", definitions))
    first = html.build("section", *players, id="players", aria_label="Players")
    body.append(html.build("main", first, *sections, source, id="content", tabindex="-1"))
    if scripts:
        data = _encode_data(report.timeline)
        body.append(html.build_raw("script", data, type="application/json", id="timeline"))
    body.extend(html.build_raw("script", script) for script in scripts)
    return body


_LEAST_CHANGE = 0.01
"""A smaller relative change of an average counts as unchanged."""


def _describe_finding(report: analysis.Report, labels: html.Labels) -> list[html.Child]:
    """State the finding, and how many integrity results are suspect."""
    rules = chain.from_iterable(one.rules for one in report.integrity.servers)
    suspects = sum(rule.result == "suspect" for rule in rules)
    words = describe_finding(report.stats, labels)
    if suspects:
        counted = text.format_count(suspects, "integrity result")
        verb = "is" if suspects == 1 else "are"
        words += [" ", html.build("a", f"{counted} {verb} suspect", href="#integrity"), "."]
    return words


def describe_finding(stats: analysis.Stats, labels: html.Labels) -> list[html.Child]:
    """Summarize the leader, the change and the coverage in one sentence.

    Notes on silent servers follow. Servers and windows with less than 80 % coverage are not
    compared.
    """
    servers = stats.servers
    observed = [at for at, one in enumerate(servers) if _is_observed(one)]
    if not observed:
        return ["There are no observations in this window."]
    words = [*_describe_leader(stats, labels, observed)]
    shares = sorted(share for at in observed if (share := servers[at].coverage) is not None)
    ends = [html.build_figure(share, text.format_share) for share in (*shares[:1], *shares[-1:])]
    if ends:
        words += ["; ", ends[0]]
        words += [" to ", ends[1]] if ends[0].text != ends[1].text else []
        words.append(" observed")
    missing = [labels.build_name(at) for at in range(len(servers)) if at not in observed]
    if missing:
        words += [". There are no observations of ", *html.join_words(missing)]
    for at in observed:
        last = servers[at].last_observed_at
        if is_silent(last, stats.as_of, hold=stats.hold):
            seen = figures.format_last_seen(last, stats.as_of, labels.zone)
            words += [". ", labels.build_name(at), f" was {seen}"]
    return [*words, "."]


def _describe_leader(
    stats: analysis.Stats, labels: html.Labels, observed: Sequence[int]
) -> Iterator[html.Child]:
    """Yield the server with the highest average, and how it changed."""
    servers, is_single = stats.servers, len(observed) == 1
    covered = [at for at in observed if (servers[at].coverage or 0) >= LEAST_COVERAGE]
    compared = observed if is_single else covered
    if len(compared) < min(len(observed), 2):
        yield "No server leads: fewer than two were observed for 80% of the window"
        return
    highest = max(servers[at].average_players or 0 for at in compared)
    leaders = [at for at in compared if servers[at].average_players == highest]
    first = servers[leaders[0]]
    verbs = ("has", "have") if is_single else ("leads with", "lead with")
    yield from html.join_words([html.build("strong", labels.build_name(at)) for at in leaders])
    yield f" {verbs[len(leaders) > 1 or first.servers is not None]} "
    yield html.build_median(highest)
    yield " players on average"
    if len(leaders) == 1 and stats.window.from_ is not None:
        yield from _describe_change(first, stats.window)
    if len(compared) < len(observed):
        yield "; servers observed for less than 80% are not compared"


def _describe_change(server: analysis.ServerStatistics, window: WindowPart) -> html.Children:
    change, average = server.change, server.average_players or 0
    if change is None:
        return [f"; {figures.explain_missing_change(window, server)}"]
    length = figures.format_window_length(window)
    if abs(change.players) <= _LEAST_CHANGE * (average - change.players):
        return [f", as in the {length} before"]
    *_, shown = figures.format_change(change, average)
    value = change.percentage if shown.endswith("%") else change.players
    words = shown.replace("+", "up ").replace("-", "down ")
    return [", ", html.build_number(value, words), f" on the {length} before"]


_SPARKLINE_STEPS = 80
_SPARKLINE = Size(160, 24)


COLUMNS = ("average", "change", "lowest", "peak")
"""The columns of a server's row."""


def build_servers(
    servers: Sequence[analysis.ServerStatistics],
    timeline: analysis.Timeline,
    columns: Sequence[str] = COLUMNS,
    link: Callable[[str], str] | None = None,
) -> Element:
    """Build a row for each server, with its statistics and a line of its averages.

    The rows are the legend of the interactive chart, unless `link` turns the names into links; it
    returns the address for an id. The timeline must have the same servers and window as the
    statistics.
    """
    start, end = get_window(timeline)
    # Marks shorter than a day would only repeat the daily cycle.
    step = choose_step(timeline, _SPARKLINE_STEPS)
    if end - start >= 7 * DAY_MS and STEPS[step].shortest < DAY_MS:
        step = "day"
    rows = []
    for number, (server, line) in enumerate(zip(servers, timeline.servers, strict=True), start=1):
        shown = remove_color_codes(server.hostname)
        name = shown if shown.strip() else text.format_id(server.server_id)
        header = html.build("bdi", name, title=name)
        if link:
            address = link(server.server_id or "")
            server_id = html.build("code", text.format_id(server.server_id))
            header = html.build("span", html.build("a", header, href=address), " ", server_id)
        else:
            header = html.build("span", _build_key(number), header, class_="server")
        if _is_observed(server):
            points = find_scale(merge_steps(timeline, line, step))
            shown_figures = _list_figures(server, timeline)
            cells = [html.build("td", shown_figures[one], data_figure=one) for one in columns]
            cells.append(_build_sparkline(points, (start, end), step, 1 if link else number))
        else:
            span = str(len(columns) + 1)
            cells = [html.build("td", "no observations", colspan=span, class_="none")]
        row = {"data_server": text.format_id(server.server_id)}
        rows.append(html.build("tr", html.build("th", header, scope="row"), *cells, **row))
    names = [(one.capitalize(), one) for one in columns]
    headers = [
        html.build("th", name, scope="col", data_figure=figure)
        for name, figure in (("Server", "server"), *names, (f"Each {step}", "line"))
    ]
    window, zone = timeline.window, ZoneInfo(timeline.time_zone)
    caption = html.build("caption", figures.format_title_window(window, zone))
    if window.to > timeline.as_of:
        end_time = html.build_time(timeline.as_of, zone)
        caption.append(html.build("span", "; the snapshot ends ", end_time))
    head = html.build("thead", html.build("tr", *headers))
    return html.build("table", caption, head, html.build("tbody", *rows), class_="servers")


def _build_key(number: int) -> Element:
    """Build a sample of a server's line in pictures."""
    line = html.build("g", html.build("path", class_="line", d="M0 5H20"))
    line.set("class", f"series series-{number}")
    return html.build("svg", line, class_="key", viewBox="0 0 20 10", aria_hidden="true")


def _list_figures(
    server: analysis.ServerStatistics, timeline: analysis.Timeline
) -> dict[str, html.Child]:
    last, zone = server.last_observed_at, ZoneInfo(timeline.time_zone)
    return {
        "current": html.build_whole(server.current_players),
        "average": html.build_average(server.average_players),
        "change": _build_change(server, timeline.window),
        "median": html.build_median(server.median_players),
        "lowest": html.build_whole(server.lowest_players),
        "peak": html.build_whole(server.peak_players),
        "observations": html.build_whole(server.sample_count),
        "last seen": text.NOTHING
        if last is None
        else html.build(
            "time", text.format_day(last, timeline.as_of, zone), datetime=format_instant(last)
        ),
    }


def _build_sparkline(
    points: Sequence[Point], window: tuple[int, int], step: str, number: int
) -> Element:
    """Build a cell with the averages of whole steps, scaled from the lowest to the highest."""
    lowest, highest = (choose(one.average for one in points) for choose in (min, max))
    across = Scale(*window, 0, _SPARKLINE.width)
    # A constant line is drawn in the middle.
    rim = 0 if lowest < highest else 1
    up = Scale(lowest - rim, highest + rim, _SPARKLINE.height - 2, 2)
    path, end = "", None
    for point in points:
        place = (
            f"{format_number(across.place(point.middle))} {format_number(up.place(point.average))}"
        )
        path += f"L{place}" if point.start == end else f"M{place}h0"
        end = point.end
    line = html.build("path", class_="line", d=path, vector_effect="non-scaling-stroke")
    size = f"0 0 {_SPARKLINE.width} {_SPARKLINE.height}"
    picture = html.build("svg", html.build("g", line, class_=f"series series-{number}"))
    picture.attrib |= {"viewBox": size, "preserveAspectRatio": "none", "aria-hidden": "true"}
    ends = f"{text.format_median(lowest)} to {text.format_median(highest)}"
    title = f"averages of {figures.describe_step(step)}, from {ends}"
    return html.build("td", picture, class_="sparkline", title=title)


_UNSAFE = re.compile(r"[^ -~]|[<>&]")
"""Characters that could end a script element or, with `-o -`, control a terminal."""


def _encode_data(timeline: analysis.Timeline) -> str:
    """Encode the timeline as ASCII JSON that can't end the surrounding script element.

    Averages have up to 17 digits, so totals replace them; report.js divides them again.
    """
    document = timeline.model_dump()
    for server in document["servers"]:
        if timeline.hold:
            continue
        averages = zip(server.pop("averages"), server["sampleCounts"], strict=True)
        # A total is an integer, so rounding recovers it from the average.
        server["totals"] = [None if one is None else round(one * count) for one, count in averages]
    return _UNSAFE.sub(_escape, wire.encode(document).decode())


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


_FIRST_LAST = "First → last"
"""The heading of the first and last count of a window."""


def _build_current(server: analysis.ServerStatistics, stats: analysis.Stats) -> html.Child:
    last = server.last_observed_at
    if is_silent(last, stats.as_of, hold=stats.hold):
        return figures.format_last_seen(last, stats.as_of, ZoneInfo(stats.time_zone))
    return html.build_whole(server.current_players)


def _build_change(server: analysis.ServerStatistics, window: WindowPart) -> Element:
    """Build the change of an average in color, in players and in percent.

    If there is no change, a tooltip explains why.
    """
    change = server.change
    if change is None:
        reason = figures.explain_missing_change(window, server)
        return html.build("span", html.build_number(None, ""), title=reason)
    players, *percent = figures.format_change(change, server.average_players)
    parts: list[html.Child] = [html.build_number(change.players, players)]
    for shown in percent:
        parts += [" ", html.build_number(change.percentage, shown)]
    css = figures.choose_class(change, server.average_players) or "same"
    return html.build("span", *parts, class_=css)


def _build_first_last(server: analysis.ServerStatistics) -> Element:
    """Build the first and last count of a window, without color."""
    rise = server.growth.players
    return html.build_number(rise, figures.format_first_last(server.first_players, rise))


def _build_peak(server: analysis.ServerStatistics, labels: html.Labels) -> Element:
    """Build the peak with the times at which it was first and last observed."""
    first, last = server.peak_first_at, server.peak_last_at
    times: list[html.Child] = []
    if first is not None:
        times = [" ", html.build_remark(labels.build_time(first))]
    if last is not None and last != first:
        times += [" ", html.build_remark("last ", labels.build_time(last))]
    return html.build("span", html.build_whole(server.peak_players), *times)


def _build_drawing(draw: Callable[..., Element], height: int, narrow_height: int = 0) -> Element:
    """Build one picture for wide pages and one for narrow pages."""
    wide = draw(size=Size(900, height))
    narrow = draw(size=Size(360, narrow_height or height))
    sizes = html.build("div", wide, class_="wide"), html.build("div", narrow, class_="narrow")
    return html.build("div", *sizes, class_="drawing")


def _list_hours(report: analysis.Report, labels: html.Labels) -> Iterator[Element]:
    document = report.peak_hours
    few = figures.name_few(document)
    yield html.build_note(
        f"Averages on the clock of {document.time_zone}. Each map has its own scale."
    )
    servers = zip(document.servers, labels.names, report.stats.servers, strict=True)
    maps = (_build_map(server, name, few, one.coverage or 0) for server, name, one in servers)
    yield html.build("div", *maps, class_="maps")


def _build_map(server: analysis.ServerPeakHours, title: str, few: str, coverage: float) -> Element:
    heading = html.build("h3", html.build("bdi", title))
    if server.busiest is None:
        shortage = f"{figures.describe_shortage(server)}; use a longer window."
        return html.build("div", heading, html.build("p", shortage), class_="map")
    is_well_observed = coverage >= LEAST_COVERAGE
    # Wide pages show two maps side by side, so a single size is enough.
    size = Size(400, 220)
    drawing = pictures.draw_heat_map(server, size, few=few, is_well_observed=is_well_observed)
    picture = html.build("figure", html.build("div", drawing, class_="drawing"))
    if not is_well_observed:
        share = f"Only {text.format_share(coverage)} of the window was observed"
        picture.append(html.build("figcaption", f"{share}, so no hour is named the busiest."))
    averages = [html.build_median(cell.average_players) for cell in server.cells]
    rows: Iterator[html.Children] = ([f"{hour:02}:00", *averages[hour::24]] for hour in range(24))
    headers = ("Hour", *(day[:3] for day in text.WEEKDAYS))
    caption = f"Average players of {title} by hour and weekday"
    table = html.build_table(caption, headers, rows, "numbers small")
    details = html.build_details("Numbers of this map", table)
    return html.build("div", heading, picture, details, class_="map")


def _list_distribution(report: analysis.Report, labels: html.Labels) -> Iterator[Element]:
    """Yield the distribution of each server's players."""
    document, servers = report.distribution, report.stats.servers
    draw = partial(pictures.draw_distribution, document)
    drawing = _build_drawing(draw, 150 + 55 * len(document.servers))
    yield html.build("figure", drawing)
    quantiles = [f"{text.format_quantile(one.quantile)}%" for one in servers[0].quantiles]
    half = len(quantiles) // 2
    headers = ("Server", "Lowest", *quantiles[:half], "Median", *quantiles[half:], "Peak")
    rows: list[html.Children] = []
    for at, server in enumerate(servers):
        middle = [html.build_median(one.players) for one in server.quantiles]
        middle.insert(half, html.build_median(server.median_players))
        ends = html.build_whole(server.lowest_players), _build_peak(server, labels)
        rows.append((labels.build_name(at), ends[0], *middle, ends[1]))
    yield html.build_table("Quantiles of the players", headers, rows)
    bins = enumerate(zip(*(one.counts for one in document.servers), strict=True))
    first, width = document.first_players, document.bin_players
    counts: Iterator[html.Children] = (
        [pictures.format_bin(first + at * width, width), *map(html.build_whole, counts)]
        for at, counts in bins
    )
    names: html.Children = ["Players", *labels.build_names()]
    table = html.build_table("Observations by number of players", names, counts, "numbers small")
    yield html.build_details("Numbers of the distribution", table)


_HEADERS = {"day": "Day", "week": "Week from", "month": "Month"}


def _list_growth(report: analysis.Report, labels: html.Labels) -> Iterator[Element]:
    """Yield the growth in the window, and the change from the previous window."""
    growth, stats = report.growth, report.stats
    draw = partial(pictures.draw_growth, growth)
    yield html.build("figure", _build_drawing(draw, 120 + 80 * len(growth.servers)))
    headers = ("Server", "Average", "Before", "Change", "Trend", _FIRST_LAST, "Current")
    rows: list[html.Children] = []
    for at, (server, one) in enumerate(zip(growth.servers, stats.servers, strict=True)):
        before = None if one.previous is None else one.previous.average_players
        slope = server.players_per_week
        shown = figures.format_trend(slope, server.average_players, server.coverage)
        cells = (
            html.build_average(server.average_players),
            html.build_average(before),
            _build_change(one, stats.window),
            html.build_number(None if shown == text.NOTHING else slope, shown),
            _build_first_last(one),
            _build_current(one, stats),
        )
        rows.append((labels.build_name(at), *cells))
    yield html.build_table("Averages and growth of the servers", headers, rows)
    yield from list_missing_changes(stats, labels)
    previous = growth.previous_window
    if previous is not None and previous.from_ is not None:
        times = labels.build_time(previous.from_), " to ", labels.build_time(previous.to)
        yield html.build_note("Before: from ", *times, f" ({growth.time_zone}).")
    if stats.window.to != stats.as_of:
        yield html.build_note("Current: as of ", labels.build_time(stats.as_of), ".")
    step = growth.step
    caption = f"Average players by {step}, and the change against the {step} before"
    yield html.build_details(
        f"Averages and changes by {step}", _build_steps(caption, growth, labels)
    )


def list_missing_changes(stats: analysis.Stats, labels: html.Labels) -> Iterator[Element]:
    """Yield the reasons why servers have no change."""
    reasons: dict[str, list[Element]] = {}
    for at, one in enumerate(stats.servers):
        if one.change is None:
            reason = figures.explain_missing_change(stats.window, one)
            reasons.setdefault(reason, []).append(labels.build_name(at))
    for reason, names in reasons.items():
        of = [" of ", *html.join_words(names)] if len(names) < len(stats.servers) else []
        yield html.build_note("No change", *of, f": {reason}.")


def _build_steps(caption: str, growth: analysis.GrowthDocument, labels: html.Labels) -> Element:
    """Build a table with a row for each step and a column for each server."""
    # The first step may begin at the start of the window, within a day or month.
    precision = "month" if growth.step == "month" else "day"
    part = f"part of a {growth.step}"
    rows: list[html.Children] = []
    for steps in zip(*(server.steps for server in growth.servers), strict=True):
        cells = (_build_step(step, part) for step in steps)
        rows.append((labels.build_time(steps[0].from_, precision), *cells))
    headers: html.Children = [_HEADERS[growth.step], *labels.build_names()]
    return html.build_table(caption, headers, rows, "numbers small")


def _build_step(step: analysis.GrowthStepPart, part: str) -> Element:
    """Build the average of a step, and its change, if any."""
    average = html.build_average(step.average_players)
    if step.is_partial and step.average_players is not None:
        # The number comes last, to be aligned with the others in its column.
        average = html.build("span", html.build_remark(part), " ", average, class_="partial")
    change = step.change
    if change is None:
        return average
    shown = figures.format_change(change, step.average_players)[0]
    css = f"note {figures.choose_class(change, step.average_players)}".strip()
    colored = html.build("span", html.build_number(change.players, shown), class_=css)
    return html.build("span", average, " ", colored)


def _list_integrity(report: analysis.Report, labels: html.Labels) -> Iterator[Element]:
    """Yield the evidence of suspect results and, on demand, all results.

    Rules that were not evaluated are listed with their reasons.
    """
    servers = report.integrity.servers
    results = [rule.result for server in servers for rule in server.rules]
    passed, missing = results.count("pass"), results.count("notEvaluated")
    rest = f", and {missing:,} could not be evaluated" if missing else ""
    yield html.build("p", f"{text.format_count(passed, 'result')} pass{rest}. {MEANING}")
    reasons: list[html.Children] = []
    for at, server in enumerate(servers):
        suspects = [rule for rule in server.rules if rule.result == "suspect"]
        if suspects:
            yield html.build("h3", "Suspect on ", labels.build_name(at))
        for rule in suspects:
            causes = html.build_remark("Benign explanations: ", " ".join(rule.innocent_causes))
            evidence = describe_evidence(rule, ZoneInfo(report.integrity.time_zone))
            found = html.build("span", evidence, " ", causes)
            yield html.build_fields({RULES[rule.rule].name: found})
        for rule in server.rules:
            if rule.reason is not None:
                name = f": {RULES[rule.rule].name.lower()}"
                reasons.append((html.build("span", labels.build_name(at), name), rule.reason))
    rows = []
    for rules in zip(*(server.rules for server in servers), strict=True):
        words = RULES[rules[0].rule]
        rows.append([html.build("span", words.name, " ", html.build_remark(words.meaning))])
        for result in (rule.result for rule in rules):
            shown = "not evaluated" if result == "notEvaluated" else result
            rows[-1].append(html.build("span", shown, class_=f"result {result}"))
    headers: html.Children = ["Rule", *labels.build_names()]
    tables = [html.build_table("Results of the integrity rules", headers, rows, "results")]
    if reasons:
        headers = ("Server and rule", "Reason")
        tables.append(html.build_table("Rules that were not evaluated", headers, reasons, "words"))
    yield html.build_details("All results", *tables)


_MAX_GAPS = 20
"""The maximum number of gaps listed for a server."""


def _list_coverage(report: analysis.Report, labels: html.Labels) -> Iterator[Element]:
    servers = zip(report.stats.servers, report.timeline.servers, strict=True)
    rows: list[html.Children] = []
    gaps: list[html.Children] = []
    name = labels.build_name
    for at, (statistics, timeline) in enumerate(servers):
        length = sum(gap.to - gap.from_ for gap in timeline.gaps)
        cells = (
            " ".join(dict.fromkeys([text.format_id(statistics.server_id), statistics.cfx_id])),
            html.build_whole(statistics.sample_count),
            html.build_figure(statistics.usual_interval_seconds, text.format_interval),
            html.build_figure(statistics.coverage, text.format_share),
            f"{len(timeline.gaps):,}",
            text.format_span_length(length) if length else "none",
        )
        rows.append((name(at), *cells))
        longest = sorted(timeline.gaps, key=lambda gap: gap.from_ - gap.to)[:_MAX_GAPS]
        for gap in sorted(longest, key=lambda gap: gap.from_):
            times = labels.build_time(gap.from_), labels.build_time(gap.to)
            gaps.append((name(at), *times, text.format_span_length(gap.to - gap.from_)))
        if len(longest) < len(timeline.gaps):
            rest = text.format_count(len(timeline.gaps) - len(longest), "shorter gap")
            gaps.append((name(at), f"and {rest}; report --json lists all", "", ""))
    headers = ("Server", "Identifiers", "Observations", "Interval", "Coverage", "Gaps", "In gaps")
    yield html.build_table("Observations and gaps of the servers", headers, rows)
    if gaps:
        names = ("Server", "From", "To", "Length")
        table = html.build_table("The longest gaps of each server", names, gaps, "words")
        yield html.build_details("List of gaps", table)


def _list_origin(report: analysis.Report, labels: html.Labels) -> Iterator[Element]:
    """Yield where the data and the page come from, and how to check them."""
    verify = html.build("code", "srvstat snapshot verify SNAPSHOT")
    root = html.build("code", report.root, class_="long")
    check = (
        " prints the root of an intact snapshot. The command above, run on this snapshot, writes"
        " this file again."
    )
    window = report.window
    yield html.build_fields(
        {
            "Snapshot as of": labels.build_time(report.as_of),
            "Root": html.build("span", root, " (SHA-256 of the snapshot's content)"),
            "Window": text.format_window(window.from_, window.to, labels.zone),
            "Time zone": report.time_zone,
            "Program": report.program,
            "Command": html.build("code", report.command),
            "To check": html.build("span", verify, check),
        }
    )


_DEFINITIONS = {
    "Observation": "One player count of a server at one time.",
    "Window": "The time that the report covers; its start is excluded, its end is included.",
    "Current": "The count in the server's record, or else its last observation.",
    "Average": "The sum of the counts divided by their number; all observations weigh the same.",
    "Quantile": "The count that a share of the observations does not exceed; 50% is the median.",
    "Change": "The average of the window minus the average of the window of equal length before, in"
    " players and in percent. There is none if less than 80% of either window was observed.",
    _FIRST_LAST: "The first and the last count of the window. They are two moments, mostly at"
    " different times of day.",
    "Trend": "The median slope between the averages of any two whole days (Theil and Sen). It is"
    " flat if it changes the average by less than 1% a week, and there is none if less than 80% of"
    " the window was observed.",
    "Whole, partial": "A step, such as a day, is whole if at least 90% of it was observed,"
    " otherwise partial. A partial step does not determine a scale or a trend, and is pale.",
    "Interval": "The polling interval: the median time between successive observations.",
    "Coverage": "The share of the window in which an observation lasts: until the next one, at most"
    " three polling intervals.",
    "Gap": "A longer time without observations: from one to the next, or to an edge of the window."
    " It says nothing about whether the server was up. The integrity rule also counts shorter gaps,"
    " of more than 1.5 polling intervals.",
    text.NOTHING: "No value, because there are too few observations.",
}
"""The definitions of the terms used in a report."""

_HELD_DEFINITIONS = {
    "Average": "The mean of the counts, weighted by time: each lasts until the next one.",
    "Quantile": "The count that was not exceeded for a share of the time; 50% is the median.",
    "Interval": "The polling interval, which a collector of changes does not have.",
    "Coverage": "The share of the window in which counts last: each until the next one.",
    "Gap": "The time before the first count.",
}
"""The definitions for reports of snapshots built with `--hold`, where they differ."""


_SECTIONS = (
    ("hours", "Hours of the week", _list_hours),
    ("distribution", "Distribution", _list_distribution),
    ("growth", "Growth", _list_growth),
    ("integrity", "Integrity", _list_integrity),
    ("coverage", "Coverage", _list_coverage),
)
"""The sections of pictures and tables: name, title, and the function that yields their parts."""
