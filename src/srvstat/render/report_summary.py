"""Summarize a report in sentences. They state figures, never causes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from srvstat.documents.analysis import HourPart, Report, ServerStatistics
from srvstat.documents.document import LEAST_COVERAGE, ChangePart, GapPart
from srvstat.render.figures import (
    explain_missing_change,
    format_average,
    format_change,
    format_window_length,
)
from srvstat.render.html import (
    Child,
    Children,
    Labels,
    build,
    build_average,
    build_figure,
    build_number,
    build_whole,
    join_words,
)
from srvstat.render.pictures import find_busiest
from srvstat.render.tables.integrity import RULES
from srvstat.render.text import format_count, format_hour, format_share, format_span_length

_LEAST_CHANGE = 0.01
"""An average that changes by a smaller share of it hardly changed."""
_CHANGES = ("rose", "fell", "hardly changed", "did not change")


def summarize(report: Report, labels: Labels) -> Iterator[Children]:
    """Yield one to five statements, each of one or two sentences.

    No sentence compares servers or windows, or names a busiest hour or a longest gap, of which less
    than 80 % was observed.
    """
    observed = [at for at, one in enumerate(report.stats.servers) if one.sample_count]
    if not observed:
        yield ["There are no observations in this window."]
        return
    covered = _list_covered(report)
    compared = covered if len(report.stats.servers) > 1 else observed
    yield [*_describe_size(report, labels, observed), *_describe_peak(report, labels, compared)]
    if report.window.from_ is not None:
        yield _compare_windows(report, labels, observed)
    busiest = {at: find_busiest(report.peak_hours.servers[at]) for at in covered}
    if any(busiest.values()):
        yield _describe_busiest(report, labels, busiest)
    sentences = [
        *_list_coverage(report, labels, observed),
        _describe_gap(report, labels, covered, is_complete=covered == observed),
    ]
    if any(sentences):
        yield _join_sentences(sentences)
    yield _describe_integrity(report, labels)


def _list_covered(report: Report) -> list[int]:
    """Return the servers of which enough was observed to compare them."""
    servers = report.stats.servers
    return [at for at, one in enumerate(servers) if (one.coverage or 0) >= LEAST_COVERAGE]


def _describe_size(report: Report, labels: Labels, observed: Sequence[int]) -> Children:
    """State the average of each server; rank those of which enough was observed."""
    servers = report.stats.servers
    averages = {at: servers[at].average_players or 0 for at in observed}
    ranked = [at for at in _list_covered(report) if at in averages]
    if len(ranked) < 2:  # noqa: PLR2004 - one has no rank
        ranked = []
    figures: list[Children] = [
        [_build_lead(labels, at), " has ", build_average(averages[at])]
        for at in observed
        if at not in ranked
    ]
    return _join_sentences(
        [
            [*_rank(averages, ranked, labels)] if ranked else [],
            [*join_words(figures), " players on average."] if figures else [],
        ]
    )


def _rank(averages: Mapping[int, float], ranked: Sequence[int], labels: Labels) -> Iterator[Child]:
    greatest = max(averages[at] for at in ranked)
    leaders = [at for at in ranked if averages[at] == greatest]
    others = sorted((at for at in ranked if at not in leaders), key=lambda at: -averages[at])
    yield from join_words([[_build_lead(labels, at)] for at in leaders])
    average = build_average(greatest)
    if not others:
        yield from (" each have ", average, " players on average.")
        return
    yield " have the most players, each " if len(leaders) > 1 else " has the most players, "
    followers: list[Children] = [
        [labels.build_name(at), " (", build_average(averages[at]), ")"] for at in others
    ]
    yield from (average, " on average, followed by ", *join_words(followers), ".")


def _build_lead(labels: Labels, at: int) -> Child:
    return build("strong", labels.build_name(at))


def _describe_peak(report: Report, labels: Labels, compared: Sequence[int]) -> Children:
    servers = report.stats.servers
    if len(compared) < min(2, len(servers)):
        return []
    peaks = {at: peak for at in compared if (peak := servers[at].peak_players) is not None}
    peak = max(peaks.values())
    holders = [at for at, one in peaks.items() if one == peak]
    names = join_words([[labels.build_name(at)] for at in holders])
    times = [[*_describe_times(servers[at], labels)] for at in holders]
    count = [build_whole(peak), " player" if peak == 1 else " players"]
    if len(servers) == 1:
        return [" The highest count is ", *count, ", on ", *times[0], "."]
    if len(holders) == 1:
        return [" ", *names, " has the highest count, ", *count, " on ", *times[0], "."]
    return [" The highest count is ", *count, ", on ", *names, "."]


def _describe_times(server: ServerStatistics, labels: Labels) -> Iterator[Child]:
    first, last = server.peak_first_at, server.peak_last_at
    if first is not None:
        yield labels.build_time(first)
    if last is not None and last != first:
        yield from (" (last on ", labels.build_time(last), ")")


def _compare_windows(report: Report, labels: Labels, observed: Sequence[int]) -> Children:
    servers, window = report.stats.servers, report.stats.window
    changes: dict[str, list[Children]] = {verb: [] for verb in _CHANGES}
    reasons: dict[str, list[Children]] = {}
    for at in observed:
        server, name = servers[at], labels.build_name(at)
        if server.change is None:
            reason = explain_missing_change(window, server.coverage, server.previous_coverage)
            reasons.setdefault(reason, []).append([name])
        else:
            verb, figures = _describe_change(server, server.change)
            changes[verb].append([name, " ", *figures] if len(servers) > 1 else figures)
    on = " on " if len(servers) > 1 else " "
    verbs = [[verb, on, *join_words(places)] for verb, places in changes.items() if places]
    start = f"Compared with the {format_window_length(window)} before, the average "
    sentences: list[Children] = [[start, *join_words(verbs, ", and "), "."]] if verbs else []
    for reason, names in reasons.items():
        place = ["of the average"] if len(servers) == 1 else ["on ", *join_words(names)]
        sentences.append(["The change ", *place, f" is unknown: {reason}."])
    return _join_sentences(sentences)


def _join_sentences(sentences: Iterable[Children]) -> Children:
    joined: list[Child] = []
    for one in filter(None, sentences):
        joined += [" ", *one] if joined else one
    return joined


def _describe_change(server: ServerStatistics, change: ChangePart) -> tuple[str, Children]:
    """Return a verb of _CHANGES and the figures of a server."""
    now = server.average_players or 0
    before = 0 if server.previous is None else server.previous.average_players or 0
    if now == before:
        return "did not change", ["(", build_average(now), ")"]
    figures: list[Child] = ["(from ", build_average(before), " to ", build_average(now)]
    for text in format_change(change, now)[1:]:
        figures += [", ", build_number(change.percentage, text)]
    is_small = abs(now - before) < _LEAST_CHANGE * before
    if is_small or format_average(now) == format_average(before):
        return "hardly changed", [*figures, ")"]
    return "rose" if now > before else "fell", [*figures, ")"]


def _describe_busiest(
    report: Report, labels: Labels, found: Mapping[int, HourPart | None]
) -> Children:
    servers = report.peak_hours.servers
    busiest = [(at, hour) for at, hour in found.items() if hour is not None]
    places = {
        hour: [[labels.build_name(at)] for at, other in busiest if other == hour]
        for _, hour in busiest
    }
    hours: list[list[Child]] = []
    for hour, names in places.items():
        hours.append([format_hour(hour.weekday, hour.hour)])
        if len(servers) > 1:
            hours[-1] += [" on ", *join_words(names)]
    joined = join_words(hours, ", and ")
    return ["The busiest hour of the week is ", *joined, f" ({report.time_zone})."]


def _list_coverage(report: Report, labels: Labels, observed: Sequence[int]) -> Iterator[Children]:
    servers = report.stats.servers
    shares = [share for at in observed if (share := servers[at].coverage) is not None]
    if shares:
        lowest, highest = (build_figure(one, format_share) for one in (min(shares), max(shares)))
        is_range = lowest.text != highest.text
        covered = [lowest, " to ", highest] if is_range else [lowest]
        end = ", depending on the server." if is_range else "."
        yield ["Observations cover ", *covered, " of the window", end]
    missing = [[labels.build_name(at)] for at in range(len(servers)) if at not in observed]
    if missing:
        yield ["There are no observations of ", *join_words(missing), "."]
    if report.window.to > report.as_of:
        yield ["The snapshot ends on ", labels.build_time(report.as_of), "."]


def _describe_gap(
    report: Report, labels: Labels, covered: Sequence[int], *, is_complete: bool
) -> Children:
    """Name the longest gap between observations of servers of which enough was observed."""
    if not covered:
        return []
    gaps = [(gap, at) for at in covered for gap in _iter_inner_gaps(report, at)]
    if not gaps:
        few = "no time without one is longer than three usual intervals."
        return [f"Between the first and the last observation, {few}"] if is_complete else []
    longest = max((gap for gap, _ in gaps), key=lambda gap: gap.to - gap.from_)
    names = [[labels.build_name(at)] for gap, at in gaps if gap == longest]
    place: Children = [", on ", *join_words(names)]
    if is_complete and len(names) == len(covered):
        place = [] if len(report.stats.servers) == 1 else [", on all servers observed"]
    length = format_span_length(longest.to - longest.from_)
    start = labels.build_time(longest.from_)
    among = "The" if is_complete else "On servers observed for 80% or more, the"
    subject = f"{among} longest time without observations"
    return [f"{subject} is {length} from ", start, *place, "."]


def _iter_inner_gaps(report: Report, at: int) -> Iterator[GapPart]:
    """Yield the gaps between observations of a server, not those at the ends of its data."""
    last = report.stats.servers[at].last_observed_at
    window = report.timeline.window
    for gap in report.timeline.servers[at].gaps:
        is_cut = gap.from_ == window.from_ or gap.to == window.to < report.as_of
        if not is_cut and gap.from_ != last:
            yield gap


def _describe_integrity(report: Report, labels: Labels) -> Children:
    results = [rule.result for server in report.integrity.servers for rule in server.rules]
    if "suspect" not in results:
        passed, left = results.count("pass"), results.count("notEvaluated")
        if not passed:
            return ["No integrity rule could be evaluated."]
        rest = f", and {left:,} could not be evaluated" if left else ""
        return [f"No integrity result is suspect: {passed:,} pass{rest}."]
    found: list[list[Child]] = []
    for at, server in enumerate(report.integrity.servers):
        suspects = [rule for rule in server.rules if rule.result == "suspect"]
        names = [[RULES[rule.rule].name.lower()] for rule in suspects]
        if names:
            found.append(join_words(names))
            if len(report.integrity.servers) > 1:
                found[-1] += [" on ", labels.build_name(at)]
    count = format_count(results.count("suspect"), "integrity result")
    verb = "is" if results.count("suspect") == 1 else "are"
    return [
        f"{count} {verb} suspect: ",
        *join_words(found, "; "),
        ". Such results can have innocent causes, and prove nothing.",
    ]
