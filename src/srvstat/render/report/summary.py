"""Summarize a report in sentences. They state figures, never causes."""

from collections.abc import Iterator, Sequence

from srvstat.documents.report import Report
from srvstat.documents.statistics import ServerStatistics
from srvstat.render.local_time import format_hour
from srvstat.render.pictures import find_busiest
from srvstat.render.report.elements import (
    Child,
    Children,
    build,
    build_number,
    build_share,
    join_words,
)
from srvstat.render.report.integrity import RULE_NAMES
from srvstat.render.report.labels import Labels
from srvstat.render.tables.figures import format_rounded, format_whole
from srvstat.render.text import format_count, format_span_length

_LEAST_CHANGE = 0.01
"""An average that changes by a smaller share of it hardly changed."""
_CHANGES = ("rose", "fell", "hardly changed", "did not change")
_WELL_COVERED = 0.9
"""The coverage of the previous window is stated if it is less."""


def summarize(report: Report, labels: Labels) -> Iterator[Children]:
    """Yield one to five statements, each of one or two sentences."""
    observed = [at for at, one in enumerate(report.stats.servers) if one.sample_count]
    if not observed:
        yield ["There are no observations in this window."]
        return
    yield [*_describe_size(report, labels, observed), " ", *_describe_peak(report, labels)]
    if report.stats.previous_window is not None:
        yield _compare_windows(report, labels, observed)
    if any(map(find_busiest, report.peak_hours.servers)):
        yield _describe_busiest(report, labels)
    coverage = [*_describe_coverage(report, labels, observed), *_describe_gap(report, labels)]
    if coverage:
        yield coverage
    yield _describe_integrity(report, labels)


def _describe_size(report: Report, labels: Labels, observed: Sequence[int]) -> Children:
    averages = {at: report.stats.servers[at].average_players or 0 for at in observed}
    greatest = max(averages.values())
    leaders = [at for at in observed if averages[at] == greatest]
    others = sorted((at for at in observed if at not in leaders), key=lambda at: -averages[at])
    names = join_words([[_build_lead(labels, at)] for at in leaders])
    average = build_number(greatest, format_rounded(greatest, 2))
    if len(observed) == 1:
        return [*names, " has ", average, " players on average."]
    if not others:
        return [*names, " each have ", average, " players on average."]
    verb = " have the most players, each " if len(leaders) > 1 else " has the most players, "
    followers = [[labels.build_name(at), " (", _build_average(averages[at]), ")"] for at in others]
    return [*names, verb, average, " on average, followed by ", *join_words(followers), "."]


def _build_lead(labels: Labels, at: int) -> Child:
    return build("strong", labels.build_name(at))


def _build_average(average: float | None) -> Child:
    return build_number(average, format_rounded(average, 2))


def _describe_peak(report: Report, labels: Labels) -> Children:
    servers = report.stats.servers
    peak = max(one.peak_players for one in servers if one.peak_players is not None)
    holders = [at for at, server in enumerate(servers) if server.peak_players == peak]
    names = join_words([[labels.build_name(at)] for at in holders])
    times = [[*_describe_times(servers[at], labels)] for at in holders]
    count = [build_number(peak, format_whole(peak)), " player" if peak == 1 else " players"]
    if len(servers) == 1:
        return ["The highest count is ", *count, ", on ", *times[0], "."]
    if len(holders) == 1:
        return [*names, " has the highest count, ", *count, " on ", *times[0], "."]
    return ["The highest count is ", *count, ", on ", *names, "."]


def _describe_times(server: ServerStatistics, labels: Labels) -> Iterator[Child]:
    first, last = server.peak_first_at, server.peak_last_at
    if first is not None:
        yield labels.build_time(first)
    if last is not None and last != first:
        yield from (" (last on ", labels.build_time(last), ")")


def _compare_windows(report: Report, labels: Labels, observed: Sequence[int]) -> Children:
    servers = report.stats.servers
    known = [at for at in observed if _get_previous_average(servers[at]) is not None]
    window = report.stats.window
    length = format_span_length(window.to - (window.from_ or 0))
    before_this = f"the {'day' if length == '1 day' else length} before"
    if not known:
        return [f"There are no observations in {before_this}."]
    changes: dict[str, list[Children]] = {verb: [] for verb in _CHANGES}
    for at in known:
        before, now = _get_previous_average(servers[at]) or 0, servers[at].average_players or 0
        earlier = [] if now == before else ["from ", _build_average(before), " to "]
        figures = ["(", *earlier, _build_average(now), ")"]
        if len(servers) > 1:
            figures[:0] = [labels.build_name(at), " "]
        changes[_compare_averages(before, now)].append(figures)
    on = " on " if len(servers) > 1 else " "
    verbs = [[verb, on, *join_words(places)] for verb, places in changes.items() if places]
    start = f"Compared with {before_this}, the average "
    sentence = [start, *join_words(verbs, ", and "), ".", *_describe_earlier(servers, known)]
    missing = [[labels.build_name(at)] for at in observed if at not in known]
    if missing:
        sentence += [" There are no observations of ", *join_words(missing), " in that time."]
    return sentence


def _get_previous_average(server: ServerStatistics) -> float | None:
    return None if server.previous is None else server.previous.average_players


def _compare_averages(before: float, now: float) -> str:
    if now == before:
        return "did not change"
    is_small = abs(now - before) < _LEAST_CHANGE * before
    if is_small or format_rounded(now, 2) == format_rounded(before, 2):
        return "hardly changed"
    return "rose" if now > before else "fell"


def _describe_earlier(servers: Sequence[ServerStatistics], known: Sequence[int]) -> Iterator[Child]:
    """Yield the coverage of the previous window, if it is low."""
    shares = [
        before.coverage
        for at in known
        if (before := servers[at].previous) is not None and before.coverage is not None
    ]
    if shares and min(shares) < _WELL_COVERED:
        yield " Observations cover "
        yield from _build_shares(shares)
        yield " of that earlier time."


def _build_shares(shares: Sequence[float]) -> Children:
    lowest, highest = build_share(min(shares)), build_share(max(shares))
    if lowest.text == highest.text:
        return [lowest]
    return [lowest, " to ", highest]


def _describe_busiest(report: Report, labels: Labels) -> Children:
    servers = report.peak_hours.servers
    busiest = [
        (at, hour) for at, one in enumerate(servers) if (hour := find_busiest(one)) is not None
    ]
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


def _describe_coverage(report: Report, labels: Labels, observed: Sequence[int]) -> Iterator[Child]:
    servers = report.stats.servers
    shares = [share for at in observed if (share := servers[at].coverage) is not None]
    if shares:
        covered = _build_shares(shares)
        end = ", depending on the server. " if len(covered) > 1 else ". "
        yield from ("Observations cover ", *covered, " of the window", end)
    missing = [[labels.build_name(at)] for at in range(len(servers)) if at not in observed]
    if missing:
        yield from ("There are no observations of ", *join_words(missing), ". ")
    if report.window.to > report.as_of:
        yield from ("The snapshot ends on ", labels.build_time(report.as_of), ". ")


def _describe_gap(report: Report, labels: Labels) -> Children:
    gaps = [
        (gap, at)
        for at, server in enumerate(report.timeline.servers)
        if any(server.sample_counts)
        for gap in server.gaps
    ]
    if not gaps:
        if all(one.usual_interval_seconds is None for one in report.stats.servers):
            return []
        return ["No time without observations is longer than three usual intervals."]
    longest = max((gap for gap, _ in gaps), key=lambda gap: gap.to - gap.from_)
    names = [[labels.build_name(at)] for gap, at in gaps if gap == longest]
    place: Children = [", on ", *join_words(names)]
    if len(names) == sum(1 for one in report.stats.servers if one.sample_count):
        place = [] if len(report.stats.servers) == 1 else [", on all servers observed"]
    length = format_span_length(longest.to - longest.from_)
    start = labels.build_time(longest.from_)
    return [f"The longest time without observations is {length} from ", start, *place, "."]


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
        names = [[RULE_NAMES[rule.rule].lower()] for rule in suspects]
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
