"""Summarize a report in sentences. They state figures, never causes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from srvstat.documents.analysis import Report, ServerStatistics
from srvstat.documents.document import LEAST_COVERAGE, ChangePart, GapPart
from srvstat.render import figures, html
from srvstat.render.pictures import find_busiest
from srvstat.render.tables.integrity import RULES
from srvstat.render.text import (
    format_average,
    format_count,
    format_hour,
    format_share,
    format_span_length,
)

_LEAST_CHANGE = 0.01
"""An average that changes by a smaller share of it hardly changed."""
_CHANGES = ("rose", "fell", "hardly changed", "did not change")


def summarize(report: Report, labels: html.Labels) -> list[html.Children]:
    """Return one to five statements, each of one or two sentences.

    No sentence compares servers or windows, or names a busiest hour or a longest gap, of which less
    than 80 % was observed.
    """
    if not any(server.sample_count for server in report.stats.servers):
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


def _join_sentences(sentences: Iterable[html.Children]) -> html.Children:
    joined: list[html.Child] = []
    for one in filter(None, sentences):
        joined += [" ", *one] if joined else one
    return joined


class _Summary:
    """The statements about a report with observations. Servers are numbers in their order."""

    def __init__(self, report: Report, labels: html.Labels) -> None:
        self.report = report
        self.labels = labels
        self.servers = servers = report.stats.servers
        self.is_single = len(servers) == 1
        self.observed = [at for at, one in enumerate(servers) if one.sample_count]
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
            [self.emphasize(at), " has ", html.build_average(self.servers[at].average_players)]
            for at in self.observed
            if at not in ranked
        ]
        sentences: list[html.Children] = [[*self.rank(ranked)] if ranked else []]
        if unranked:
            sentences.append([*html.join_words(unranked), " players on average."])
        return _join_sentences(sentences)

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

    def iter_peak_times(self, server: ServerStatistics) -> Iterator[html.Child]:
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
                reason = figures.explain_missing_change(
                    window, server.coverage, server.previous_coverage
                )
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
            hour = find_busiest(self.report.peak_hours.servers[at])
            if hour is not None:
                places.setdefault(format_hour(hour.weekday, hour.hour), []).append(at)
        if not places:
            return []
        hours = [
            [hour] if self.is_single else [hour, " on ", *self.name(found)]
            for hour, found in places.items()
        ]
        zone = f" ({self.report.time_zone})."
        return ["The busiest hour of the week is ", *html.join_words(hours, ", and "), zone]

    def iter_coverage(self) -> Iterator[html.Children]:
        coverages = [self.servers[at].coverage for at in self.observed]
        shares = [share for share in coverages if share is not None]
        if shares:
            ends = [html.build_figure(one, format_share) for one in (min(shares), max(shares))]
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
        if not self.covered:
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
        length = format_span_length(longest.to - longest.from_)
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
            f"{format_count(suspects, 'integrity result')} {verb} suspect: ",
            *html.join_words(found, "; "),
            ". Such results can have innocent causes, and prove nothing.",
        ]


def _describe_change(server: ServerStatistics, change: ChangePart) -> tuple[str, html.Children]:
    """Return a verb of _CHANGES and the figures of a server."""
    now = server.average_players or 0
    before = 0 if server.previous is None else server.previous.average_players or 0
    if now == before:
        return "did not change", ["(", html.build_average(now), ")"]
    averages = html.build_average(before), html.build_average(now)
    shown: list[html.Child] = ["(from ", averages[0], " to ", averages[1]]
    for text in figures.format_change(change, now)[1:]:
        shown += [", ", html.build_number(change.percentage, text)]
    shown.append(")")
    is_small = abs(now - before) < _LEAST_CHANGE * before
    if is_small or format_average(now) == format_average(before):
        return "hardly changed", shown
    return "rose" if now > before else "fell", shown
