"""A report as one HTML page, which needs no other file and no network."""

import hashlib
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from xml.etree.ElementTree import Element, tostring
from zoneinfo import ZoneInfo

from srvstat.contract import wire
from srvstat.documents import analysis
from srvstat.documents.document import (
    LEAST_COVERAGE,
    ChangePart,
    GapPart,
    WindowPart,
    is_silent,
    remove_color_codes,
)
from srvstat.render import figures, html, pictures, text
from srvstat.render.svg import Size
from srvstat.render.tables.integrity import MEANING, RULES, describe_evidence
from srvstat.render.timeline import draw_timeline
from srvstat.render.web import CHART_SCRIPTS, read_asset

_LEAST_CHANGE = 0.01
"""An average that changes by a smaller share of it hardly changed."""
_CHANGES = ("rose", "fell", "hardly changed", "did not change")


def summarize(report: analysis.Report, labels: html.Labels) -> list[html.Children]:
    """Return one to five statements, each of one or two sentences.

    No sentence compares servers or windows, or names a busiest hour or a longest gap, of which less
    than 80 % was observed.
    """
    if not any(map(_is_observed, report.stats.servers)):
        return [["There are no observations in this window."]]
    summary = _Summary(report, labels)
    statements = [
        [summary.describe_averages(), summary.describe_peak()],
        [summary.describe_changes()] if report.window.from_ is not None else [],
        [summary.describe_busiest()],
        [*summary.iter_coverage(), summary.describe_gap()],
        [summary.describe_integrity()],
    ]
    return [_join_sentences(sentences) for sentences in statements if any(sentences)]


def _is_observed(server: analysis.ServerStatistics) -> bool:
    return server.average_players is not None


def _join_sentences(sentences: Iterable[html.Children]) -> html.Children:
    joined: list[html.Child] = []
    for one in filter(None, sentences):
        joined += [" ", *one] if joined else one
    return joined


class _Summary:
    """The statements about a report with observations. Servers are numbers in their order."""

    def __init__(self, report: analysis.Report, labels: html.Labels) -> None:
        self.report = report
        self.labels = labels
        self.servers = servers = report.stats.servers
        self.is_single = len(servers) == 1
        self.observed = [at for at, one in enumerate(servers) if _is_observed(one)]
        # Only these can be compared.
        coverages = (one.coverage or 0 for one in servers)
        self.covered = [at for at, share in enumerate(coverages) if share >= LEAST_COVERAGE]

    def name(self, places: Iterable[int]) -> list[html.Child]:
        """Return the names of servers in a sentence."""
        return html.join_words([self.labels.build_name(at) for at in places])

    def describe_averages(self) -> html.Children:
        """State the average of each server; rank those of which enough was observed."""
        ranked = [at for at in self.covered if at in self.observed]
        if len(ranked) < 2:  # noqa: PLR2004 - one has no rank
            ranked = []
        unranked: list[html.Children] = [
            [
                self.emphasize(at),
                " have " if self.servers[at].servers else " has ",
                html.build_average(self.servers[at].average_players),
            ]
            for at in self.observed
            if at not in ranked
        ]
        rest = [*html.join_words(unranked), " players on average."] if unranked else []
        return _join_sentences([[*self.rank(ranked)] if ranked else [], rest])

    def rank(self, ranked: Sequence[int]) -> Iterator[html.Child]:
        averages = {at: self.servers[at].average_players or 0 for at in ranked}
        greatest = max(averages.values())
        leaders = [at for at in ranked if averages[at] == greatest]
        others = sorted((at for at in ranked if at not in leaders), key=lambda at: -averages[at])
        yield from html.join_words([self.emphasize(at) for at in leaders])
        average = html.build_average(greatest)
        if not others:
            yield from (" each have ", average, " players on average.")
            return
        yield " have the most players, each " if len(leaders) > 1 else " has the most players, "
        followers: list[html.Children] = [
            [self.labels.build_name(at), " (", html.build_average(averages[at]), ")"]
            for at in others
        ]
        yield from (average, " on average, followed by ", *html.join_words(followers), ".")

    def emphasize(self, at: int) -> html.Child:
        return html.build("strong", self.labels.build_name(at))

    def describe_peak(self) -> html.Children:
        compared = self.observed if self.is_single else self.covered
        peaks = {at: peak for at in compared if (peak := self.servers[at].peak_players) is not None}
        if not self.is_single and len(compared) < 2:  # noqa: PLR2004 - one is not the highest
            return []
        peak = max(peaks.values())
        holders = [at for at, one in peaks.items() if one == peak]
        count = [html.build_whole(peak), " player" if peak == 1 else " players"]
        if len(holders) > 1:
            return ["The highest count is ", *count, ", on ", *self.name(holders), "."]
        times = self.iter_peak_times(self.servers[holders[0]])
        if self.is_single:
            return ["The highest count is ", *count, ", on ", *times, "."]
        return [*self.name(holders), " has the highest count, ", *count, " on ", *times, "."]

    def iter_peak_times(self, server: analysis.ServerStatistics) -> Iterator[html.Child]:
        first, last = server.peak_first_at, server.peak_last_at
        if first is not None:
            yield self.labels.build_time(first)
        if last is not None and last != first:
            yield from (" (last on ", self.labels.build_time(last), ")")

    def describe_changes(self) -> html.Children:
        window = self.report.stats.window
        changes: dict[str, list[html.Children]] = {verb: [] for verb in _CHANGES}
        reasons: dict[str, list[int]] = {}
        for at in self.observed:
            server = self.servers[at]
            if server.change is None:
                coverages = server.coverage, server.previous_coverage
                reason = figures.explain_missing_change(window, *coverages)
                reasons.setdefault(reason, []).append(at)
            else:
                verb, shown = _describe_change(server, server.change)
                changes[verb].append(shown if self.is_single else [*self.name([at]), " ", *shown])
        on = " " if self.is_single else " on "
        verbs = [[verb, on, *html.join_words(places)] for verb, places in changes.items() if places]
        before = f"Compared with the {figures.format_window_length(window)} before, the average "
        sentences: list[html.Children] = []
        if verbs:
            sentences.append([before, *html.join_words(verbs, ", and "), "."])
        for reason, places in reasons.items():
            place = ["of the average"] if self.is_single else ["on ", *self.name(places)]
            sentences.append(["The change ", *place, f" is unknown: {reason}."])
        return _join_sentences(sentences)

    def describe_busiest(self) -> html.Children:
        places: dict[str, list[int]] = {}
        for at in self.covered:
            hour = pictures.find_busiest(self.report.peak_hours.servers[at])
            if hour is not None:
                places.setdefault(text.format_hour(hour.weekday, hour.hour), []).append(at)
        if not places:
            return []
        hours = [
            [hour] if self.is_single else [hour, " on ", *self.name(found)]
            for hour, found in places.items()
        ]
        zone = f" ({self.report.time_zone})."
        return ["The busiest hour of the week is ", *html.join_words(hours, ", and "), zone]

    def iter_coverage(self) -> Iterator[html.Children]:
        shares = [share for at in self.observed if (share := self.servers[at].coverage) is not None]
        if shares:
            ends = [html.build_figure(one, text.format_share) for one in (min(shares), max(shares))]
            covered: html.Children = [ends[0]]
            end = "."
            if ends[0].text != ends[1].text:
                covered, end = [ends[0], " to ", ends[1]], ", depending on the server."
            yield ["Observations cover ", *covered, " of the window", end]
        missing = [at for at in range(len(self.servers)) if at not in self.observed]
        if missing:
            yield ["There are no observations of ", *self.name(missing), "."]
        if self.report.window.to > self.report.as_of:
            yield ["The snapshot ends on ", self.labels.build_time(self.report.as_of), "."]

    def describe_gap(self) -> html.Children:
        """Name the longest gap between observations of servers of which enough was observed."""
        if not self.covered or self.report.hold:
            return []
        is_complete = self.covered == self.observed
        gaps = [(gap, at) for at in self.covered for gap in self.iter_inner_gaps(at)]
        if not gaps:
            few = "no time without one is longer than three usual intervals."
            return [f"Between the first and the last observation, {few}"] if is_complete else []
        longest = max((gap for gap, _ in gaps), key=lambda gap: gap.to - gap.from_)
        places = [at for gap, at in gaps if gap == longest]
        place: html.Children = [", on ", *self.name(places)]
        if is_complete and len(places) == len(self.covered):
            place = [] if self.is_single else [", on all servers observed"]
        length = text.format_span_length(longest.to - longest.from_)
        among = "The" if is_complete else "On servers observed for 80% or more, the"
        start = self.labels.build_time(longest.from_)
        return [f"{among} longest time without observations is {length} from ", start, *place, "."]

    def iter_inner_gaps(self, at: int) -> Iterator[GapPart]:
        """Yield the gaps between observations of a server, not those at the ends of its data."""
        last = self.servers[at].last_observed_at
        window = self.report.timeline.window
        for gap in self.report.timeline.servers[at].gaps:
            is_cut = gap.from_ == window.from_ or gap.to == window.to < self.report.as_of
            if not is_cut and gap.from_ != last:
                yield gap

    def describe_integrity(self) -> html.Children:
        servers = self.report.integrity.servers
        counts = Counter(rule.result for server in servers for rule in server.rules)
        suspects, passed, left = counts["suspect"], counts["pass"], counts["notEvaluated"]
        if not suspects and not passed:
            return ["No integrity rule could be evaluated."]
        if not suspects:
            rest = f", and {left:,} could not be evaluated" if left else ""
            return [f"No integrity result is suspect: {passed:,} pass{rest}."]
        found: list[list[html.Child]] = []
        for at, server in enumerate(servers):
            suspect = [rule.rule for rule in server.rules if rule.result == "suspect"]
            if suspect:
                names = html.join_words([RULES[rule].name.lower() for rule in suspect])
                found.append(names if self.is_single else [*names, " on ", *self.name([at])])
        verb = "is" if suspects == 1 else "are"
        return [
            f"{text.format_count(suspects, 'integrity result')} {verb} suspect: ",
            *html.join_words(found, "; "),
            ". Such results can have innocent causes, and prove nothing.",
        ]


def _describe_change(
    server: analysis.ServerStatistics, change: ChangePart
) -> tuple[str, html.Children]:
    """Return a verb of _CHANGES and the figures of a server."""
    now = server.average_players or 0
    before = 0 if server.previous is None else server.previous.average_players or 0
    if now == before:
        return "did not change", ["(", html.build_average(now), ")"]
    averages = html.build_average(before), html.build_average(now)
    shown: list[html.Child] = ["(from ", averages[0], " to ", averages[1]]
    for shown_change in figures.format_change(change, now)[1:]:
        shown += [", ", html.build_number(change.percentage, shown_change)]
    shown.append(")")
    is_small = abs(now - before) < _LEAST_CHANGE * before
    if is_small or text.format_average(now) == text.format_average(before):
        return "hardly changed", shown
    return "rose" if now > before else "fell", shown


_STYLES = ("palette.css", "pictures.css", "chart.css", "report.css")
_SCRIPTS = (*CHART_SCRIPTS, "report.js")


def render_report(report: analysis.Report) -> bytes:
    """Return the page of a report. Equal reports give equal bytes."""
    labels = html.Labels.choose(report.stats.servers, report.time_zone)
    style = "\n".join(map(read_asset, _STYLES))
    scripts = [read_asset(name) for name in _SCRIPTS]
    page = html.build("html", _build_head(report, style, scripts), lang="en")
    page.append(_build_body(report, labels, scripts))
    return f"<!DOCTYPE html>\n{tostring(page, encoding='unicode', method='html')}\n".encode()


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
        # Without an icon, a browser asks the host of the page for one.
        html.build("link", rel="icon", href="data:,"),
        html.build_raw("style", style),
    )


def _hash_source(source: str) -> str:
    """Return the source of a policy that allows an inline text."""
    digest = hashlib.sha256(source.encode()).digest()
    return f"'sha256-{b64encode(digest).decode()}'"


def _build_body(report: analysis.Report, labels: html.Labels, scripts: list[str]) -> Element:
    sections = list(_build_sections(report, labels))
    links = [[html.build("a", one[0].text or "", href=f"#{one.get('id')}")] for one in sections]
    data = _encode_data(report.timeline)
    return html.build(
        "body",
        html.build("a", "Skip to the report", href="#content", class_="skip"),
        html.build("header", *_build_headline(report, labels)),
        html.build("nav", html.build_list(links), aria_label="Sections"),
        html.build("main", *sections, id="content", tabindex="-1"),
        html.build_raw("script", data, type="application/json", id="timeline"),
        *(html.build_raw("script", script) for script in scripts),
    )


def _build_headline(report: analysis.Report, labels: html.Labels) -> Iterator[Element]:
    yield html.build("h1", html.build("bdi", report.title))
    if not all(name in text.escape_text(report.title) for name in labels.names):
        yield html.build("p", *html.join_words(labels.build_names()), class_="servers")
    # A window without a beginning begins with the first observation.
    window = report.timeline.window
    start = window.to if window.from_ is None else window.from_
    words = "All observations, " if report.window.from_ is None else ""
    words += f"{text.format_span_length(window.to - start)}: from "
    times = labels.build_time(start), " to ", labels.build_time(window.to)
    yield html.build("p", words, *times, f" ({report.time_zone})", class_="window")


def _build_sections(report: analysis.Report, labels: html.Labels) -> Iterator[Element]:
    """Yield the sections. Without any observation, there are no pictures."""
    definitions = _DEFINITIONS | (_HELD_DEFINITIONS if report.hold else {})
    is_observed = any(map(_is_observed, report.stats.servers))
    yield html.build_section("summary", "Summary", html.build_list(summarize(report, labels)))
    for name, title, has_pictures, list_parts in _SECTIONS:
        if is_observed or not has_pictures:
            yield html.build_section(name, title, *list_parts(report, labels))
    yield html.build_section("definitions", "Definitions", html.build_fields(definitions))


_UNSAFE = re.compile(r"[^ -~]|[<>&]")
"""Characters that could end a script element or, with `-o -`, control a terminal."""


def _encode_data(timeline: analysis.Timeline) -> str:
    """Return the timeline as ASCII JSON that can't end the script element around it.

    It has totals in place of averages, which have up to 17 digits; report.js divides them again.
    """
    document = timeline.model_dump()
    for server in document["servers"]:
        if timeline.hold:
            continue
        averages = zip(server.pop("averages"), server["sampleCounts"], strict=True)
        # A total is an integer, so a rounded average is enough to find it.
        server["totals"] = [None if one is None else round(one * count) for one, count in averages]
    return _UNSAFE.sub(_escape, wire.encode(document).decode())


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


_FIRST_LAST = "First → last"
"""The heading of the first and the last count of a window."""


def _list_comparison(report: analysis.Report, labels: html.Labels) -> Iterator[Element]:
    stats = report.stats
    names = [_build_server(server, number) for number, server in enumerate(stats.servers, 1)]
    yield html.build_table("Figures of the servers", ("Figure", *names), _list_rows(stats, labels))
    if stats.window.to != stats.as_of:
        record = "Current counts are those of the server records, as of "
        yield html.build_note(record, labels.build_time(stats.as_of), ".")


def _build_server(server: analysis.ServerStatistics, number: int) -> Element:
    shown = remove_color_codes(server.hostname)
    hostname = html.build("bdi", shown if shown.strip() else text.format_id(server.server_id))
    identifiers = html.build_remark(f"{text.format_id(server.server_id)} {server.cfx_id}".strip())
    # A piece of the line that the server has in pictures.
    path = html.build("path", class_="line", d="M0 5H28")
    line = html.build("g", path, class_=f"series series-{number}")
    key = html.build("svg", line, class_="key", viewBox="0 0 28 10", aria_hidden="true")
    return html.build("span", key, hostname, " ", identifiers, class_="server")


def _list_rows(stats: analysis.Stats, labels: html.Labels) -> Iterator[html.Children]:
    servers = stats.servers
    yield ["Players"]
    yield ["Current", *(_build_current(one, stats) for one in servers)]
    yield ["Average", *(html.build_average(one.average_players) for one in servers)]
    yield ["Change", *(_build_change(one, stats.window) for one in servers)]
    yield ["Median", *(html.build_median(one.median_players) for one in servers)]
    yield ["Peak", *(_build_peak(one, labels) for one in servers)]
    yield ["Lowest", *(html.build_whole(one.lowest_players) for one in servers)]
    yield [_FIRST_LAST, *map(_build_first_last, servers)]
    quantiles = list(zip(*(one.quantiles for one in servers), strict=True))
    if quantiles:
        yield ["Quantiles"]
    for values in quantiles:
        percent = text.format_quantile(values[0].quantile)
        yield [f"{percent}%", *(html.build_median(one.players) for one in values)]
    yield ["Observations"]
    yield ["Count", *(html.build_whole(one.sample_count) for one in servers)]
    intervals = (one.usual_interval_seconds for one in servers)
    yield ["Usual interval", *(html.build_figure(one, text.format_interval) for one in intervals)]
    yield ["Coverage", *(html.build_figure(one.coverage, text.format_share) for one in servers)]


def _build_current(server: analysis.ServerStatistics, stats: analysis.Stats) -> html.Child:
    last = server.last_observed_at
    if is_silent(last, stats.as_of, hold=stats.hold):
        return figures.format_last_seen(last, stats.as_of, ZoneInfo(stats.time_zone))
    return html.build_whole(server.current_players)


def _build_change(server: analysis.ServerStatistics, window: WindowPart) -> Element:
    """Build the change of an average, in players and in percent, or the reason why there is none.

    It has a color.
    """
    change = server.change
    if change is None:
        reason = figures.explain_missing_change(window, server.coverage, server.previous_coverage)
        return html.build("span", html.build_number(None, ""), " ", html.build_remark(reason))
    players, *percent = figures.format_change(change, server.average_players)
    parts: list[html.Child] = [html.build_number(change.players, players)]
    for shown in percent:
        parts += [" ", html.build_number(change.percentage, shown)]
    css = figures.choose_class(change, server.average_players) or "same"
    return html.build("span", *parts, class_=css)


def _build_first_last(server: analysis.ServerStatistics) -> Element:
    """Build the first and the last count of a window, without a color."""
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
    """Build a picture for wide pages, and one for narrow pages."""
    wide = draw(size=Size(900, height))
    narrow = draw(size=Size(360, narrow_height or height))
    sizes = html.build("div", wide, class_="wide"), html.build("div", narrow, class_="narrow")
    return html.build("div", *sizes, class_="drawing")


def _list_players(report: analysis.Report, labels: html.Labels) -> Iterator[Element]:
    """Yield the players over time, which a script makes interactive."""
    draw = partial(draw_timeline, report.timeline, zone=labels.zone)
    note = (
        f"Each point is the average of a step on the clock of {report.time_zone}. A step of which"
        " less than 90% was observed is pale; lines to and from it are dashed, and the axis"
        " disregards it. A line breaks at a gap, unless the gap is within whole steps."
    )
    chart = html.build("div", _build_drawing(draw, 320, 280), data_chart="")
    yield html.build("figure", chart, html.build("figcaption", note))
    step = report.growth.step
    table = _build_steps(f"Average players by {step}", report.growth, labels, has_changes=False)
    yield html.build_details(f"Averages by {step}", table)


def _list_hours(report: analysis.Report, labels: html.Labels) -> Iterator[Element]:
    document = report.peak_hours
    yield html.build_note(
        "The average number of players in each hour of the week, on the clock of"
        f" {document.time_zone}. An hour {figures.name_few(document)} is empty. Each map has"
        " its own scale."
    )
    servers = zip(document.servers, labels.names, report.stats.servers, strict=True)
    few = figures.name_few(document)
    maps = (_build_map(server, name, few, one.coverage or 0) for server, name, one in servers)
    yield html.build("div", *maps, class_="maps")


def _build_map(server: analysis.ServerPeakHours, title: str, few: str, coverage: float) -> Element:
    heading = html.build("h3", html.build("bdi", title))
    if server.busiest is None or server.quietest is None:
        shortage = f"{figures.describe_shortage(server)}; use a longer window."
        return html.build("div", heading, html.build("p", shortage), class_="map")
    is_well_observed = coverage >= LEAST_COVERAGE
    extremes: list[html.Child] = []
    if not is_well_observed:
        share = f"{text.format_share(coverage)} of the window was observed"
        extremes = [f"Only {share}, so no hour is named the busiest."]
    elif pictures.find_busiest(server) is not None:
        for name, hour in (("Busiest", server.busiest), (" Quietest", server.quietest)):
            words = f"{name}: {text.format_hour(hour.weekday, hour.hour)}, average "
            extremes += [words, html.build_average(server.get_cell(hour).average_players), "."]
    elif len({cell.average_players for cell in server.cells} - {None}) > 1:
        extremes = ["Too few hours have an average to name the busiest."]
    else:
        extremes = ["No hour is busier than another."]
    # Wide pages have two maps in a row, so that one size is enough.
    size = Size(400, 220)
    drawing = pictures.draw_heat_map(server, size, few=few, is_well_observed=is_well_observed)
    picture = html.build("div", drawing, class_="drawing")
    averages = [html.build_median(cell.average_players) for cell in server.cells]
    rows: Iterator[html.Children] = ([f"{hour:02}:00", *averages[hour::24]] for hour in range(24))
    headers = ("Hour", *(day[:3] for day in text.WEEKDAYS))
    caption = f"Average players of {title} by hour and weekday"
    table = html.build_table(caption, headers, rows, "figures small")
    figure = html.build("figure", picture, html.build("figcaption", *extremes))
    details = html.build_details("Figures of this map", table)
    return html.build("div", heading, figure, details, class_="map")


def _list_distribution(report: analysis.Report, labels: html.Labels) -> Iterator[Element]:
    """Yield how often servers had how many players."""
    document = report.distribution
    note = (
        "How often each number of players was observed, with the median and the middle half of the"
        " observations, from the lower to the upper quartile."
    )
    draw = partial(pictures.draw_distribution, document)
    drawing = _build_drawing(draw, 150 + 55 * len(document.servers))
    yield html.build("figure", drawing, html.build("figcaption", note))
    bins = enumerate(zip(*(one.counts for one in document.servers), strict=True))
    first, width = document.first_players, document.bin_players
    rows: Iterator[html.Children] = (
        [pictures.format_bin(first + at * width, width), *map(html.build_whole, counts)]
        for at, counts in bins
    )
    headers: html.Children = ["Players", *labels.build_names()]
    table = html.build_table("Observations by number of players", headers, rows, "figures small")
    yield html.build_details("Figures of the distribution", table)


_HEADERS = {"day": "Day", "week": "Week from", "month": "Month"}


def _list_growth(report: analysis.Report, labels: html.Labels) -> Iterator[Element]:
    """Yield the growth in the window, and the change against the previous window."""
    growth, stats = report.growth, report.stats
    draw = partial(pictures.draw_growth, growth)
    yield html.build("figure", _build_drawing(draw, 120 + 80 * len(growth.servers)))
    headers = ["Server", "Average", "Change", "Trend", _FIRST_LAST]
    if growth.previous_window is not None:
        headers.insert(2, "Average before")
    rows: list[html.Children] = []
    for at, (server, one) in enumerate(zip(growth.servers, stats.servers, strict=True)):
        averages = [html.build_average(server.average_players)]
        if growth.previous_window is not None:
            before = None if one.previous is None else one.previous.average_players
            averages.append(html.build_average(before))
        slope = server.players_per_week
        shown = figures.format_trend(slope, server.average_players, server.coverage)
        trend = html.build_number(None if shown == text.NOTHING else slope, shown)
        change = _build_change(one, stats.window)
        rows.append((labels.build_name(at), *averages, change, trend, _build_first_last(one)))
    yield html.build_table("Averages and growth of the servers", headers, rows)
    yield html.build_note(
        "The trend is the median change of the average, in players a week, between any two"
        f" whole days ({growth.time_zone})."
    )
    previous = growth.previous_window
    if previous is None or previous.from_ is None:
        yield html.build_note("There is no window of equal length before to compare with.")
    else:
        times = labels.build_time(previous.from_), " to ", labels.build_time(previous.to)
        yield html.build_note("The window before is from ", *times, f" ({growth.time_zone}).")
    step = growth.step
    caption = f"Average players by {step}, and the change against the {step} before"
    table = _build_steps(caption, growth, labels, has_changes=True)
    yield html.build_details(f"Averages and changes by {step}", table)


def _build_steps(
    caption: str, growth: analysis.GrowthDocument, labels: html.Labels, *, has_changes: bool
) -> Element:
    """Build a table with a row for each step, and a column for each server."""
    # The first step may begin where the window does, within a day or month.
    precision = "month" if growth.step == "month" else "day"
    part = f"part of a {growth.step}"
    rows: list[html.Children] = []
    for steps in zip(*(server.steps for server in growth.servers), strict=True):
        cells = (_build_step(step, part, has_change=has_changes) for step in steps)
        rows.append((labels.build_time(steps[0].from_, precision), *cells))
    headers: html.Children = [_HEADERS[growth.step], *labels.build_names()]
    return html.build_table(caption, headers, rows, "figures small")


def _build_step(step: analysis.GrowthStepPart, part: str, *, has_change: bool) -> Element:
    """Build the average of a step, and its change if it has one."""
    average = html.build_average(step.average_players)
    if step.is_partial and step.average_players is not None:
        # The figure is at the end, below the others of its column.
        average = html.build("span", html.build_remark(part), " ", average, class_="partial")
    change = step.change
    if change is None or not has_change:
        return average
    shown = figures.format_change(change, step.average_players)[0]
    css = f"note {figures.choose_class(change, step.average_players)}".strip()
    colored = html.build("span", html.build_number(change.players, shown), class_=css)
    return html.build("span", average, " ", colored)


def _list_integrity(report: analysis.Report, labels: html.Labels) -> Iterator[Element]:
    servers = report.integrity.servers
    rows = []
    for rules in zip(*(server.rules for server in servers), strict=True):
        words = RULES[rules[0].rule]
        rows.append([html.build("span", words.name, " ", html.build_remark(words.meaning))])
        for result in (rule.result for rule in rules):
            shown = "not evaluated" if result == "notEvaluated" else result
            rows[-1].append(html.build("span", shown, class_=f"result {result}"))
    yield html.build_note(MEANING)
    headers: html.Children = ["Rule", *labels.build_names()]
    yield html.build_table("Results of the integrity rules", headers, rows, "results")
    reasons: list[html.Children] = []
    for at, server in enumerate(servers):
        suspects = [rule for rule in server.rules if rule.result == "suspect"]
        if suspects:
            yield html.build("h3", "Suspect on ", labels.build_name(at))
        for rule in suspects:
            causes = html.build_remark("Innocent causes: ", " ".join(rule.innocent_causes))
            evidence = describe_evidence(rule, ZoneInfo(report.integrity.time_zone))
            shown = html.build("span", evidence, " ", causes)
            yield html.build_fields({RULES[rule.rule].name: shown})
        for rule in server.rules:
            if rule.reason is not None:
                name = f": {RULES[rule.rule].name.lower()}"
                reasons.append((html.build("span", labels.build_name(at), name), rule.reason))
    if reasons:
        headers = ("Server and rule", "Reason")
        table = html.build_table("Rules that were not evaluated", headers, reasons, "words")
        yield html.build_details("Why rules were not evaluated", table, class_="printed")


_HELD_COVERAGE = (
    "Each count lasts until the next one, so that only the time before the first one is a gap. The"
    " coverage is the share of the window in which counts last."
)

_MAX_GAPS = 20
"""The most gaps listed for a server."""


def _list_coverage(report: analysis.Report, labels: html.Labels) -> Iterator[Element]:
    servers = zip(report.stats.servers, report.timeline.servers, strict=True)
    rows: list[html.Children] = []
    gaps: list[html.Children] = []
    name = labels.build_name
    for at, (statistics, timeline) in enumerate(servers):
        length = sum(gap.to - gap.from_ for gap in timeline.gaps)
        shown = text.format_span_length(length) if length else "none"
        count = html.build_whole(statistics.sample_count)
        coverage = html.build_figure(statistics.coverage, text.format_share)
        rows.append((name(at), count, coverage, f"{len(timeline.gaps):,}", shown))
        longest = sorted(timeline.gaps, key=lambda gap: gap.from_ - gap.to)[:_MAX_GAPS]
        for gap in sorted(longest, key=lambda gap: gap.from_):
            times = labels.build_time(gap.from_), labels.build_time(gap.to)
            gaps.append((name(at), *times, text.format_span_length(gap.to - gap.from_)))
        if len(longest) < len(timeline.gaps):
            rest = text.format_count(len(timeline.gaps) - len(longest), "shorter gap")
            gaps.append((name(at), f"and {rest}; report --json lists all", "", ""))
    headers: html.Children = ("Server", "Observations", "Coverage", "Gaps", "In gaps")
    yield html.build_table("Observations of the servers", headers, rows)
    yield html.build_note(
        _HELD_COVERAGE
        if report.hold
        else "An observation lasts until the next one, at most three usual intervals; the coverage"
        " is the share of the window in which observations last. A gap is a longer time without"
        " observations: from one to the next, or to an edge of the window. It says nothing about"
        " whether the server was up. The integrity rule also counts shorter gaps, of more than 1.5"
        " usual intervals."
    )
    if gaps:
        headers = ("Server", "From", "To", "Length")
        table = html.build_table("The longest gaps of each server", headers, gaps, "words")
        yield html.build_details("List of gaps", table, class_="printed")


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
    "Observation": "One player count of a server at an instant.",
    "Window": "The time that the report covers, without its first instant and with its last.",
    "Current": "The count in the server's record, or else its last observation.",
    "Average": "The sum of the counts divided by their number; all observations weigh the same.",
    "Median": "The 50% quantile.",
    "Quantile": "The count that a share of the observations does not exceed.",
    "Change": "The average of the window minus the average of the window of equal length before, in"
    " players and in percent. There is none if less than 80% of either window was observed.",
    _FIRST_LAST: "The first and the last count of the window. They are two moments, mostly at"
    " different times of day.",
    "Trend": "The median slope between the averages of any two whole days (Theil and Sen). It is"
    " flat if it changes the average by less than 1% a week, and there is none if less than 80% of"
    " the window was observed.",
    "Whole, partial": "A step, such as a day, is whole if at least 90% of it was observed,"
    " otherwise partial. A partial step does not determine a scale or a trend.",
    "Usual interval": "The median distance between successive observations.",
    "Coverage": "The share of the window in which an observation lasts.",
    text.NOTHING: "No value, because there are too few observations.",
}
"""The meaning of words."""

_HELD_DEFINITIONS = {
    "Average": "The mean of the counts, weighted by time: each lasts until the next one.",
    "Quantile": "The count that was not exceeded for a share of the time.",
    "Usual interval": "The distance between polls, which a collector of changes does not have.",
}
"""What words mean where counts are held."""


_SECTIONS = (
    ("comparison", "Comparison", False, _list_comparison),
    ("players", "Players over time", True, _list_players),
    ("hours", "Hours of the week", True, _list_hours),
    ("distribution", "Distribution", True, _list_distribution),
    ("growth", "Growth", True, _list_growth),
    ("integrity", "Integrity", False, _list_integrity),
    ("coverage", "Coverage", False, _list_coverage),
    ("origin", "Source", False, _list_origin),
)
"""The sections of figures: name, title, whether it has pictures, and what yields its parts."""
