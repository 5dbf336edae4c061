"""The text of an explanation: short labelled lines that can be pasted into a mail.

Has no color and no drawing. Lines break at 78 characters (RFC 5322, section 2.1.1) so that mail
programs do not break them again, or at the width of the terminal if it is narrower.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from srvstat.contract import wire
from srvstat.contract.instants import parse_instant
from srvstat.contract.ranges import DAYS
from srvstat.documents.document import GapPart
from srvstat.documents.servers import is_silent
from srvstat.documents.support import Explanation, ServerExplanation
from srvstat.render.screen import Screen
from srvstat.render.tables.figures import format_last_seen
from srvstat.render.text import (
    format_count,
    format_exact_duration,
    format_ordinal,
    format_time,
)

MAIL_WIDTH = 78
_INDENT = "  "


def render_explanation(explanation: Explanation, screen: Screen) -> str:
    """Render a summary, a block of lines for each server, and what the answer comes from."""
    data = explanation.answer["data"]
    blocks = []
    for server, result in zip(
        explanation.servers, [data] if explanation.range is None else data, strict=True
    ):
        lines = (
            _describe_record(server, result, explanation)
            if explanation.range is None
            else _describe_figures(server, result, explanation.snapshot_as_of)
        )
        blocks.append([_name_server(server, screen), *lines, *_describe_intervals(server)])
    blocks.append([*_describe_origin(explanation)])
    labelled = ["".join(_wrap(line, screen, _INDENT) for line in block) for block in blocks]
    return "\n".join([_wrap(_summarize(explanation, screen), screen), *labelled])


def _wrap(line: str, screen: Screen, indent: str = "") -> str:
    """Break a line, and indent all but its first part."""
    width = min(screen.width or MAIL_WIDTH, MAIL_WIDTH) - len(indent)
    text = Screen(width, ascii_only=screen.ascii_only).render(Text(line, overflow="fold"))
    return text.rstrip("\n").replace("\n", f"\n{indent}") + "\n"


def _summarize(explanation: Explanation, screen: Screen) -> str:
    *names, last = [screen.escape(server.server_id).plain for server in explanation.servers]
    start, end = explanation.servers[0].window.from_, format_time(explanation.as_of)
    after = "" if start is None else f" after {format_time(start)},"
    if explanation.range is None:
        return (
            f"This explains the answer of Get Server for {last}. The answer is the server's record"
            " in the snapshot; the as-of time does not change it. The window of the observations"
            f" described here is all time{after} up to and including the as-of time, {end}."
        )
    days = DAYS[explanation.range]
    length = "24 hours" if days == 1 else f"{days} days of 24 hours"
    return (
        f"This explains the answer of Compare Servers for {', '.join(names)} and {last} over"
        f" {explanation.range}. The window is the {length} before the as-of time:{after} up to and"
        f" including {end}. An observation exactly at the start is not in it; one exactly at the"
        " end is."
    )


def _name_server(server: ServerExplanation, screen: Screen) -> str:
    identifiers = [screen.escape(name).plain for name in (server.server_id, server.cfx_id)]
    hostname = screen.escape_name(server.hostname).plain
    # A line that begins with a space would look like the rest of another one.
    return f"{hostname} (id {identifiers[0]}, cfxId {identifiers[1]})".lstrip()


def _describe_current(server: ServerExplanation, as_of: int) -> str:
    last = server.last_in_snapshot
    if not server.current_is_fallback:
        last_at = None if last is None else last.observed_at
        silence = f", {format_last_seen(last_at, as_of)}" if is_silent(last_at, as_of) else ""
        return (
            f"{server.current_players:,}{silence}, from the server record; it is not an observation"
        )
    if last is not None:
        return (
            f"{server.current_players:,}, from the last observation in the snapshot, at"
            f" {format_time(last.observed_at)}: the server record has no current count"
        )
    return (
        f"{server.current_players:,}: the server record has no current count, and this file has no"
        " observation of the server"
    )


def _describe_figures(
    server: ServerExplanation, result: Mapping[str, Any], snapshot_as_of: int
) -> Iterator[str]:
    """Yield the lines about the figures of Compare Servers."""
    yield f"current: {_describe_current(server, snapshot_as_of)}"
    peak, lowest, count = server.peak, server.lowest, server.sample_count
    yield _describe_observations(server)
    if peak is None or lowest is None:
        yield "average, median, peak, lowest, growth: null, because the window has no observation"
        return
    average = result["averagePlayers"]
    yield (
        f"average: {average:,.2f} = {server.sum:,} / {count:,}, the sum of the counts divided"
        f" by their number{_add_exact_value(average, 2)}"
    )
    yield f"median: {_describe_median(server, result['medianPlayers'])}"
    yield f"peak: {peak.players:,}, first at {format_time(peak.first_at)}"
    yield f"lowest: {lowest.players:,}, first at {format_time(lowest.first_at)}"
    yield f"growth: {_describe_growth(server, result['growth'])}"
    weighted = server.time_weighted_average
    if weighted is not None and server.has_uneven_intervals:
        yield f"time-weighted mean: {_describe_weighted_mean(weighted, average)}"


def _describe_observations(server: ServerExplanation) -> str:
    first, last = server.first, server.last
    if first is None or last is None:
        return f"observations: none {_describe_others(server)}"
    if first == last:
        return f"observations: 1, at {format_time(last.observed_at)}"
    return (
        f"observations: {server.sample_count:,}, the first at {format_time(first.observed_at)}, the"
        f" last at {format_time(last.observed_at)}"
    )


def _describe_others(server: ServerExplanation) -> str:
    """Say where the observations are if the window has none, as the end of a line."""
    first, last = server.first_in_snapshot_at, server.last_in_snapshot
    if first is None or last is None:
        return "in this file"
    if first == last.observed_at:
        return f"in the window; the only one in the snapshot is at {format_time(first)}"
    return (
        f"in the window; the first one in the snapshot is at {format_time(first)}, the last at"
        f" {format_time(last.observed_at)}"
    )


def _describe_median(server: ServerExplanation, median: float) -> str:
    shown = f"{median:,.1f}".removesuffix(".0")
    number = f"of {server.sample_count:,} values in ascending order"
    if server.sample_count == 1:
        return f"{shown}, the only value"
    ranks = [format_ordinal(value.rank) for value in server.middle]
    if len(ranks) == 1:
        return f"{shown}, the {ranks[0]} {number}"
    values = " and ".join(f"{value.players:,}" for value in server.middle)
    return (
        f"{shown} = the mean of {values}, the {ranks[0]} and {ranks[1]} {number}"
        f"{_add_exact_value(median, 1)}"
    )


def _describe_growth(server: ServerExplanation, growth: Mapping[str, Any]) -> str:
    first, last = server.first, server.last
    if server.growth is None or first is None or last is None:
        return "null, because it takes two observations"
    players, percentage = growth["players"], growth["percentage"]
    sign = "+" if players else ""
    shown = "no percentage from 0" if percentage is None else f"{percentage:{sign},.1f}%"
    exact = "" if percentage is None else _add_exact_value(percentage, 1)
    return (
        f"{players:{sign},} ({shown}): from {first.players:,} at {format_time(first.observed_at)}"
        f" to {last.players:,} at {format_time(last.observed_at)}{exact}"
    )


def _add_exact_value(value: float, digits: int) -> str:
    """Return the value in the answer, as the end of a line, if rounding it hides anything."""
    if float(f"{value:.{digits}f}") == value:
        return ""
    return f"; in the answer: {wire.format_number(value)}"


def _describe_record(
    server: ServerExplanation, record: Mapping[str, Any], explanation: Explanation
) -> Iterator[str]:
    """Yield the lines about the fields of Get Server that observations can stand in for."""
    yield f"current: {_describe_current(server, explanation.snapshot_as_of)}"
    last = server.last_in_snapshot
    for name, which, at in (
        ("firstSeenAt", "first", server.first_in_snapshot_at),
        ("updatedAt", "last", last.observed_at if last else None),
    ):
        stored = parse_instant(record[name])
        yield f"{name}: {format_time(stored)}, {_describe_instant(stored, which, at, explanation)}"
    yield _describe_observations(server)


def _describe_instant(
    stored: int, which: str, observed_at: int | None, explanation: Explanation
) -> str:
    """Describe where a time of a record comes from; the default is that of an observation."""
    if explanation.covered_from is not None:
        return "as in the snapshot that this bundle was made from"
    default = explanation.snapshot_as_of if observed_at is None else observed_at
    if stored != default:
        return "from the server record"
    if observed_at is None:
        return "the end of the snapshot"
    return f"also the time of the {which} observation in the snapshot"


def _describe_intervals(server: ServerExplanation) -> Iterator[str]:
    """Yield the lines about the distances between observations."""
    if server.usual_interval_seconds is None:
        yield "usual interval: unknown, because it takes two observations"
        return
    yield f"usual interval: {_describe_usual_interval(server, server.usual_interval_seconds)}"
    if not server.gaps:
        yield "gaps over 1.5 usual intervals: none"
        return
    more = f", the {len(server.gaps)} longest:" if server.gap_count > len(server.gaps) else ""
    yield f"gaps over 1.5 usual intervals: {server.gap_count:,}{more}"
    for gap in server.gaps:
        length = format_exact_duration(gap.to - gap.from_) + _find_edge(server, gap)
        yield f"- {format_time(gap.from_)} to {format_time(gap.to)}: {length}"


def _describe_weighted_mean(weighted: float, average: float) -> str:
    side = "higher" if weighted > average else "lower"
    return (
        f"{weighted:,.2f}, {abs(weighted - average) / average:.1%} {side} than the average: each"
        " observation counts for the time until the next one, the last until the end of the"
        " window, but at most 3 usual intervals"
    )


def _describe_usual_interval(server: ServerExplanation, seconds: float) -> str:
    # With half a millisecond, it has no exact length in milliseconds.
    milliseconds = round(2000 * seconds)
    length = (
        f"{wire.format_number(seconds)} seconds"
        if milliseconds % 2
        else format_exact_duration(milliseconds // 2)
    )
    count = (
        ""
        if server.expected_count is None
        else f"; {server.expected_count:,} expected in the window, {server.sample_count:,} observed"
    )
    return f"{length}, the median distance between successive observations{count}"


def _find_edge(server: ServerExplanation, gap: GapPart) -> str:
    """Return which edge of the window a gap touches, as the end of a line."""
    if gap.from_ == server.window.from_:
        is_first = gap.to == server.first_in_snapshot_at
        observation = " to the first observation in the snapshot" if is_first else ""
        return f", from the start of the window{observation}"
    if server.last is not None and gap.from_ == server.last.observed_at:
        is_last = server.last == server.last_in_snapshot
        observation = " from the last observation in the snapshot" if is_last else ""
        return f",{observation} to the end of the window"
    return ""


def _describe_origin(explanation: Explanation) -> Iterator[str]:
    """Yield the lines about the snapshot and the program."""
    as_of, own = format_time(explanation.as_of), format_time(explanation.snapshot_as_of)
    if explanation.as_of == explanation.snapshot_as_of:
        reason = "the end of the snapshot"
    elif explanation.as_of < explanation.snapshot_as_of:
        reason = "as requested"
    else:
        reason = "as requested; the snapshot ends earlier"
    yield f"as of: {as_of}, {reason}"
    yield f"snapshot: as of {own}, root {explanation.root}"
    if explanation.covered_from is not None:
        yield f"coverage: a bundle, from {format_time(explanation.covered_from)} on"
    counts = explanation.not_kept
    whole = "" if explanation.covered_from is None else " of the whole snapshot"
    yield (
        f"left out by the build, of all servers{whole}:"
        f" {format_count(counts.repeated, 'repeated row')}, {counts.conflicting:,} conflicting,"
        f" {counts.rejected:,} malformed"
    )
    yield f"program: srvstat {explanation.program_version}"
