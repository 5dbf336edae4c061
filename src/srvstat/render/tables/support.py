"""The tables of replayed exchanges, differences and plans, and the text of an explanation."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import groupby, pairwise
from typing import Any

from rich.cells import chop_cells
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from srvstat.contract import wire
from srvstat.contract.time import parse_instant
from srvstat.contract.windows import DAYS
from srvstat.documents import support
from srvstat.documents.document import GapPart
from srvstat.render import text
from srvstat.render.figures import describe_silence
from srvstat.render.screen import Fields, Renderers, Screen, build_fields_grid, start_table
from srvstat.render.text import NOTHING, format_count, format_id, format_time

_MAX_EXCHANGES = 50
"""With more exchanges, runs of matches are shortened."""
_SHORT_RUN = 3
_MIN_REQUEST_WIDTH = 26
_MAX_VALUE_LENGTH = 60
_SECOND = 1000
_DETAIL_INDENT = 4
_PREFIX = "/gateway/v1/"
_CLASSES = {
    "match": ("match", "green"),
    "differs": ("differs", "red"),
    "unrecorded": ("unrecorded", "yellow"),
    "notReproducible": ("not reproducible", "yellow"),
    "unreadable": ("unreadable", "red"),
}
"""How each class but `foreign` is shown, and its style."""
_NOTES = {"text": "text only", "current": "current count at capture", "value": ""}


def render_replay(replay: support.Replay, screen: Screen) -> str:
    """Render a line of totals, and each exchange with its differences; foreign ones are counted."""
    shown = [exchange for exchange in replay.exchanges if exchange.class_ != "foreign"]
    parts: list[RenderableType] = [Text(_count_classes(replay))]
    if replay.counts.foreign:
        parts.append(Text(f"{format_count(replay.counts.foreign, 'foreign request')} not shown"))
    rows = list(_build_exchanges(shown, screen)) if shown else []
    return screen.render_blocks(parts, rows)


def _count_classes(replay: support.Replay) -> str:
    counts = replay.counts
    named = {
        "match" if counts.match != 1 else "matches": counts.match,
        "differs" if counts.differs == 1 else "differ": counts.differs,
        "unrecorded": counts.unrecorded,
        "not reproducible": counts.not_reproducible,
        "unreadable": counts.unreadable,
    }
    shown = ", ".join(f"{count:,} {name}" for name, count in named.items() if count)
    total = format_count(sum(named.values()), "exchange")
    return f"{total}: {shown or 'nothing to compare'}"


def _build_exchanges(
    exchanges: Sequence[support.ReplayedExchange], screen: Screen
) -> Iterator[RenderableType]:
    """Yield each exchange. Of many, only the first of a run of equal matches is shown."""
    rows = [
        (
            Text(*_CLASSES[exchange.class_]),
            screen.escape(exchange.place),
            Text("" if exchange.as_of is None else format_time(exchange.as_of), "dim"),
            _show_request(exchange, screen),
        )
        for exchange in exchanges
    ]
    *columns, _ = zip(*rows, strict=True)
    widths = [max(cell.cell_len for cell in column) for column in columns]
    is_wide = screen.width >= sum(widths) + 2 * len(widths) + _MIN_REQUEST_WIDTH
    is_long = len(exchanges) > _MAX_EXCHANGES
    is_first, was_plain = True, True
    pairs = zip(exchanges, rows, strict=True)
    for is_plain, run in groupby(pairs, lambda pair: _is_plain_match(pair[0])):
        members = list(run)
        is_cut = is_long and is_plain and len(members) > _SHORT_RUN
        for exchange, cells in members[:1] if is_cut else members:
            # A blank line ends a block of several lines.
            if not is_first and not (is_wide and was_plain):
                yield Text()
            yield _build_row(cells, widths) if is_wide else _build_head(cells)
            details = _build_details(exchange, screen)
            yield from (Padding(one, (0, 0, 0, _DETAIL_INDENT), expand=False) for one in details)
            is_first, was_plain = False, is_plain
        if is_cut:
            yield Text(f"  and {len(members) - 1:,} more that match", "dim")


def _is_plain_match(exchange: support.ReplayedExchange) -> bool:
    notes = exchange.true_during, exchange.explanation
    return exchange.class_ == "match" and not exchange.differences and notes == (None, None)


def _build_row(cells: Sequence[Text], widths: Sequence[int]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for width in widths:
        grid.add_column(width=width, no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(*cells)
    return grid


def _build_head(cells: Sequence[Text]) -> Group:
    """Return the class and the place, and below them the request and its time."""
    below = [cell for cell in (cells[3], cells[2]) if cell.plain]
    indented = (Padding(cell, (0, 0, 0, 2), expand=False) for cell in below)
    return Group(Text("  ").join(cells[:2]), *indented)


def _show_request(exchange: support.ReplayedExchange, screen: Screen) -> Text:
    """Show the method, the path, and the servers and the range of a comparison."""
    if exchange.method is None or exchange.path is None:
        return Text()
    shown = f"{exchange.method} {exchange.path.removeprefix(_PREFIX)}"
    if exchange.request is not None and exchange.request.range is not None:
        names = ", ".join(name.removeprefix("id:") for name in exchange.request.servers)
        shown = f"{shown}: {names}; {exchange.request.range}"
    return screen.escape(shown) if exchange.request else screen.escape_cell(shown)


def _build_details(exchange: support.ReplayedExchange, screen: Screen) -> Iterator[RenderableType]:
    if exchange.reason is not None and exchange.class_ != "match":
        yield screen.escape(exchange.reason)
    if exchange.differences:
        yield _build_differences(exchange.differences, screen)
    yield from map(screen.escape, _describe_truth(exchange))
    if exchange.class_ == "unrecorded" and exchange.answer is not None:
        yield Text(f"the answer is {exchange.answer.status}:")
        body = exchange.answer.body
        shown = screen.escape("no body" if body is None else wire.encode(body).decode())
        # JSON is folded in full lines, without regard to words.
        yield from map(Text, chop_cells(shown.plain, max(screen.width - _DETAIL_INDENT, 1)))
    if exchange.explanation is not None:
        width = max(min(screen.width, MAIL_WIDTH) - _DETAIL_INDENT, 1)
        explained = render_explanation(exchange.explanation, replace(screen, width=width))
        yield Text(f"\n{explained}".rstrip())


def _build_differences(differences: Sequence[support.Difference], screen: Screen) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    pointers = [screen.escape_cell(each.pointer or "the body") for each in differences]
    widest = max(pointer.cell_len for pointer in pointers)
    grid.add_column(overflow="fold", no_wrap=widest <= screen.width // 2)
    grid.add_column(overflow="fold")
    for pointer, difference in zip(pointers, differences, strict=True):
        grid.add_row(pointer, _show_values(difference, screen))
    return grid


def _show_values(difference: support.Difference, screen: Screen) -> Text:
    """Show the recorded and the recomputed value, and what else is known of the difference."""
    is_of_body = not difference.pointer
    if is_of_body and difference.class_ == "text":
        return Text("other white space, escapes or order of keys")
    absent, note = difference.absent_in, _NOTES[difference.class_]
    recorded = NOTHING if absent == "recorded" else _shorten_json(difference.recorded)
    recomputed = NOTHING if absent == "recomputed" else _shorten_json(difference.recomputed)
    values = screen.escape(f"{recorded} {screen.arrow} {recomputed}")
    if absent is not None:
        note = f"absent from the {absent} answer"
    elif is_of_body:
        note = "not an answer in JSON"
    return Text.assemble(values, (f"  {note}", "dim")) if note else values


def _shorten_json(value: Any) -> str:
    shown = wire.encode(value).decode()
    return shown if len(shown) <= _MAX_VALUE_LENGTH else f"{shown[:_MAX_VALUE_LENGTH]}…"


def _describe_truth(exchange: support.ReplayedExchange) -> Iterator[str]:
    """Yield sentences that say when a recorded answer was right, if a search was made."""
    if exchange.searched is None or exchange.true_during is None:
        return
    end = exchange.searched.to
    name = "the request" if exchange.requested_at == end else format_time(end)
    sentence = _describe_true_intervals(exchange.true_during, exchange.searched, name)
    is_stale = exchange.true_during and exchange.true_during[-1].to < end
    yield f"{sentence}: a stale answer, not a wrong one" if is_stale else sentence
    servers = exchange.servers or ()
    if not exchange.true_during and any(server.true_during for server in servers):
        for server in servers:
            sentence = _describe_true_intervals(server.true_during, exchange.searched, name)
            yield f"{server.server_id}: {sentence}"


def _describe_true_intervals(
    intervals: Sequence[support.Interval], searched: support.Interval, end: str
) -> str:
    """Return a sentence about the intervals; `end` names the end of the search."""
    is_instant = searched.from_ == searched.to
    if not intervals:
        if is_instant:
            return f"was not right as of {end}"
        length = text.format_exact_duration(searched.to - searched.from_)
        return f"was never right within {length} before {end}"
    *others, last = intervals
    earlier = f"; also in {format_count(len(others), 'earlier interval')}" if others else ""
    if last == searched and not is_instant:
        return "right at every instant of the search"
    if last.from_ == searched.to:
        return f"right as of {end}{earlier}"
    if last.to == searched.to:
        return f"right as of {end}, and since {format_time(last.from_)}{earlier}"
    distance = searched.to - last.to
    format_length = text.format_duration if distance >= _SECOND else text.format_exact_duration
    ago = format_length(distance)
    return f"right as of {_format_interval(last)}, {ago} before {end}{earlier}"


def _format_interval(interval: support.Interval) -> str:
    """Format an interval without a repeated date: `2026-08-22 17:30:00 to 17:34:59 UTC`."""
    start, end = format_time(interval.from_), format_time(interval.to)
    if start == end:
        return start
    day, _, clock = end.partition(" ")
    return f"{start.removesuffix(' UTC')} to {clock if start.startswith(day) else end}"


_MAX_ROWS = 20
_MAX_SPANS = 6
_ROOT_DIGITS = 12
_MIN_DIGITS, _MAX_DIGITS = 2, 17
_ONE_DAY = timedelta(days=1)


def render_snapshot_diff(diff: support.SnapshotDiff, screen: Screen) -> str:
    """Render the counts of the differences, the two snapshots, and the first of each list."""
    blocks: list[list[RenderableType]] = [
        [Text(_summarize_diff(diff), "bold")],
        [build_fields_grid(_list_diff_fields(diff, screen), screen)],
    ]
    changed = diff.servers.changed
    answers = [answer for answer in diff.answers if _select_values(answer)]
    if changed:
        table = _build_server_table(changed[:_MAX_ROWS], screen)
        blocks.append([table, *_build_rest(len(changed), "changed server")])
    if answers:
        table = _build_answer_table(answers[:_MAX_ROWS], screen)
        blocks.append([table, *_build_rest(len(answers), "answer")])
    return screen.render_blocks(*blocks)


def _summarize_diff(diff: support.SnapshotDiff) -> str:
    servers = diff.servers
    if diff.is_empty:
        return "no difference"
    values = sum(1 for answer in diff.answers if _select_values(answer))
    current = len(diff.answers) - values
    more = f", {current:,} more only in currentPlayers" if current else ""
    return (
        f"{format_count(len(servers.changed), 'server')} changed, {len(servers.added):,} added,"
        f" {len(servers.removed):,} removed;"
        f" {format_count(values, 'answer changes', 'answers change')}{more}"
    )


def _list_diff_fields(diff: support.SnapshotDiff, screen: Screen) -> Fields:
    yield "old", f"as of {format_time(diff.old_as_of)}, root {diff.old_root[:_ROOT_DIGITS]}"
    yield "new", f"as of {format_time(diff.new_as_of)}, root {diff.root[:_ROOT_DIGITS]}"
    yield "answers", f"as of {format_time(diff.as_of)}"
    if diff.compared_from is not None:
        start = format_time(diff.compared_from)
        yield "compared", f"servers in both, from {start} on: a bundle lacks the rest"
    for name, ids in (("added", diff.servers.added), ("removed", diff.servers.removed)):
        if ids:
            more = len(ids) - _MAX_ROWS
            rest = f" and {more:,} more" if more > 0 else ""
            yield name, screen.escape(", ".join(ids[:_MAX_ROWS]) + rest)


def _build_rest(count: int, noun: str) -> list[RenderableType]:
    more = count - _MAX_ROWS
    return [Text(f"and {format_count(more, f'more {noun}')}; --json lists all")] if more > 0 else []


def _build_server_table(servers: Sequence[support.ChangedServer], screen: Screen) -> Table:
    table = start_table("changed server", "fields", "days")
    for server in servers:
        spans = list(_join_days(server.days))
        more = len(spans) - _MAX_SPANS
        shown = spans[:_MAX_SPANS] + ([f"and {more:,} more"] if more > 0 else [])
        cells = (", ".join(server.fields), ", ".join(shown))
        table.add_row(screen.escape(server.server_id), *(cell or NOTHING for cell in cells))
    return table


def _join_days(days: Sequence[str]) -> Iterator[str]:
    """Yield ascending dates, with successive ones as one span."""
    dates = [date.fromisoformat(day) for day in days]
    starts = [at for at, day in enumerate(dates) if not at or day - dates[at - 1] > _ONE_DAY]
    for first, end in pairwise([*starts, len(dates)]):
        yield days[first] if end - first == 1 else f"{days[first]} to {days[end - 1]}"


def _build_answer_table(answers: Sequence[support.ChangedAnswer], screen: Screen) -> Table:
    table = start_table("answer", "range", "old and new values")
    previous = None
    for answer in answers:
        name = screen.escape("" if answer.server_id == previous else answer.server_id)
        changes = "; ".join(_format_change(one, screen) for one in _select_values(answer))
        table.add_row(name, answer.range, screen.escape(changes))
        previous = answer.server_id
    return table


def _select_values(answer: support.ChangedAnswer) -> list[support.Difference]:
    """Return the differences of an answer except for the current player count."""
    return [difference for difference in answer.differences if difference.class_ == "value"]


def _format_change(difference: support.Difference, screen: Screen) -> str:
    """Format two values with as many digits as they need to differ."""
    old, new = "", ""
    for digits in range(_MIN_DIGITS, _MAX_DIGITS + 1):
        old = _format_value(difference.recorded, digits)
        new = _format_value(difference.recomputed, digits)
        if old != new:
            break
    return f"{difference.pointer[1:].replace('/', '.')} {old} {screen.arrow} {new}"


def _format_value(value: Any, digits: int) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, float):
        return f"{value:,.{digits}f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def render_access(check: support.AccessCheck, screen: Screen) -> str:
    """Render a row for each plan, or a block for each where the rows do not fit."""
    table = start_table()
    for name in ("plan", "operations", "ranges", "raw history", "requests", "keys"):
        table.add_column(name, justify="right" if name == "keys" else "left", no_wrap=True)
    for plan in check.plans:
        table.add_row(plan.name, *(value or NOTHING for value in _list_plan_fields(plan).values()))
    if screen.has_room_for(table):
        return screen.render(table)
    blocks: list[list[RenderableType]] = []
    for plan in check.plans:
        grid = build_fields_grid(_list_plan_fields(plan).items(), screen)
        blocks.append([screen.escape(plan.name, "bold"), grid])
    return screen.render_blocks(*blocks)


def _list_plan_fields(plan: support.PlanPermissions) -> dict[str, str]:
    limit = plan.requests_per_minute
    return {
        "operations": ", ".join(plan.operations),
        "ranges": ", ".join(plan.ranges),
        "raw history": format_count(plan.raw_history_days, "day"),
        "requests": "no limit" if limit is None else f"{limit:,} per minute",
        "keys": f"{plan.keys:,}",
    }


MAIL_WIDTH = 78
_INDENT = "  "


def render_explanation(explanation: support.Explanation, screen: Screen) -> str:
    """Render a summary, a block of lines for each server, and what the answer comes from."""
    data = explanation.answer["data"]
    describe, results = _describe_figures, data
    if explanation.range is None:
        describe, results = _describe_record, [data]
    blocks = [_wrap(_summarize(explanation, screen), screen)]
    for server, result in zip(explanation.servers, results, strict=True):
        lines = (
            *describe(server, result, explanation),
            *_describe_distances(server, hold=explanation.hold),
        )
        named = (_name_server(server, screen), *lines)
        blocks.append("".join(_wrap(line, screen, _INDENT) for line in named))
    origin = _describe_origin(explanation)
    return "\n".join([*blocks, "".join(_wrap(line, screen, _INDENT) for line in origin)])


def _wrap(line: str, screen: Screen, indent: str = "") -> str:
    """Break a line, and indent all but its first part."""
    width = min(screen.width, MAIL_WIDTH) - len(indent)
    shown = Screen(width, ascii_only=screen.ascii_only).render(Text(line, overflow="fold"))
    return shown.rstrip("\n").replace("\n", f"\n{indent}") + "\n"


def _summarize(explanation: support.Explanation, screen: Screen) -> str:
    *names, last = [
        screen.escape(format_id(server.server_id)).plain for server in explanation.servers
    ]
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


def _name_server(server: support.ServerExplanation, screen: Screen) -> str:
    identifiers = [
        screen.escape(name).plain for name in (format_id(server.server_id), server.cfx_id)
    ]
    hostname = screen.escape_name(server.hostname).plain
    # A line that begins with a space would look like the rest of another one.
    return f"{hostname} (id {identifiers[0]}, cfxId {identifiers[1]})".lstrip()


def _describe_current(server: support.ServerExplanation, explanation: support.Explanation) -> str:
    last, as_of = server.last_in_snapshot, explanation.snapshot_as_of
    count = f"{server.current_players:,}"
    if not server.current_is_fallback:
        last_at = None if last is None else last.observed_at
        silence = describe_silence(last_at, as_of, hold=explanation.hold)
        return f"{count}{silence}, from the server record; it is not an observation"
    missing = "the server record has no current count"
    if last is None:
        return f"{count}: {missing}, and this file has no observation of the server"
    at = format_time(last.observed_at)
    return f"{count}, from the last observation in the snapshot, at {at}: {missing}"


def _describe_figures(
    server: support.ServerExplanation, result: Mapping[str, Any], explanation: support.Explanation
) -> Iterator[str]:
    """Yield the lines about the figures of Compare Servers."""
    yield f"current: {_describe_current(server, explanation)}"
    peak, lowest = server.peak, server.lowest
    yield _describe_observations(server)
    if peak is None or lowest is None:
        yield "average, median, peak, lowest, growth: null, because the window has no observation"
        return
    average = result["averagePlayers"]
    shown = text.format_average(average)
    yield (
        f"average: {shown} = {server.sum:,} / {server.sample_count:,}, the sum of the counts"
        f" divided by their number{_add_exact_value(average, shown)}"
    )
    yield f"median: {_describe_median(server, result['medianPlayers'])}"
    yield f"peak: {peak.players:,}, first at {format_time(peak.first_at)}"
    yield f"lowest: {lowest.players:,}, first at {format_time(lowest.first_at)}"
    yield f"growth: {_describe_growth(server, result['growth'])}"
    weighted = server.time_weighted_average
    if weighted is not None and server.has_uneven_intervals:
        side = "higher" if weighted > average else "lower"
        yield (
            f"time-weighted mean: {text.format_average(weighted)},"
            f" {abs(weighted - average) / average:.1%} {side} than the average: each observation"
            " counts for the time until the next one, the last until the end of the window, but at"
            " most 3 usual intervals"
        )


def _describe_observations(server: support.ServerExplanation) -> str:
    first, last = server.first, server.last
    if first is None or last is None:
        start, end = server.first_in_snapshot_at, server.last_in_snapshot
        if start is None or end is None:
            return "observations: none in this file"
        others = f"first one in the snapshot is at {format_time(start)}, the last at"
        others += f" {format_time(end.observed_at)}"
        if start == end.observed_at:
            others = f"only one in the snapshot is at {format_time(start)}"
        return f"observations: none in the window; the {others}"
    if first == last:
        return f"observations: 1, at {format_time(last.observed_at)}"
    return (
        f"observations: {server.sample_count:,}, the first at {format_time(first.observed_at)}, the"
        f" last at {format_time(last.observed_at)}"
    )


def _describe_median(server: support.ServerExplanation, median: float) -> str:
    shown = text.format_median(median)
    number = f"of {server.sample_count:,} values in ascending order"
    if server.sample_count == 1:
        return f"{shown}, the only value"
    ranks = [text.format_ordinal(value.rank) for value in server.middle]
    if len(ranks) == 1:
        return f"{shown}, the {ranks[0]} {number}"
    values = " and ".join(f"{value.players:,}" for value in server.middle)
    return (
        f"{shown} = the mean of {values}, the {ranks[0]} and {ranks[1]} {number}"
        f"{_add_exact_value(median, shown)}"
    )


def _describe_growth(server: support.ServerExplanation, growth: Mapping[str, Any]) -> str:
    first, last = server.first, server.last
    if server.growth is None or first is None or last is None:
        return "null, because it takes two observations"
    players, percentage = growth["players"], growth["percentage"]
    sign = "+" if players else ""
    shown, exact = "no percentage from 0", ""
    if percentage is not None:
        rounded = f"{percentage:{sign},.1f}"
        shown, exact = f"{rounded}%", _add_exact_value(percentage, rounded)
    return (
        f"{players:{sign},} ({shown}): from {first.players:,} at {format_time(first.observed_at)}"
        f" to {last.players:,} at {format_time(last.observed_at)}{exact}"
    )


def _add_exact_value(value: float, shown: str) -> str:
    """Return the value in the answer, as the end of a line, if its text hides anything."""
    is_exact = float(shown.replace(",", "")) == value
    return "" if is_exact else f"; in the answer: {wire.format_number(value)}"


def _describe_record(
    server: support.ServerExplanation, result: Mapping[str, Any], explanation: support.Explanation
) -> Iterator[str]:
    """Yield the lines about the fields of Get Server that observations can stand in for."""
    yield f"current: {_describe_current(server, explanation)}"
    last = server.last_in_snapshot
    for name, which, at in (
        ("firstSeenAt", "first", server.first_in_snapshot_at),
        ("updatedAt", "last", last.observed_at if last else None),
    ):
        stored = parse_instant(result[name])
        # By default, a time of a record comes from an observation.
        if explanation.covered_from is not None:
            origin = "as in the snapshot that this bundle was made from"
        elif stored != (explanation.snapshot_as_of if at is None else at):
            origin = "from the server record"
        elif at is None:
            origin = "the end of the snapshot"
        else:
            origin = f"also the time of the {which} observation in the snapshot"
        yield f"{name}: {format_time(stored)}, {origin}"
    yield _describe_observations(server)


def _describe_distances(server: support.ServerExplanation, *, hold: bool) -> Iterator[str]:
    """Yield the lines about the distances between observations."""
    if hold:
        yield "usual interval: none, because each count lasts until the next one"
        return
    if server.usual_interval_seconds is None:
        yield "usual interval: unknown, because it takes two observations"
        return
    # With half a millisecond, it has no exact length in milliseconds.
    milliseconds, half = divmod(round(2000 * server.usual_interval_seconds), 2)
    exact = text.format_exact_duration(milliseconds)
    length = f"{wire.format_number(server.usual_interval_seconds)} seconds" if half else exact
    expected = ""
    if server.expected_count is not None:
        expected = f"; {server.expected_count:,} expected in the window"
        expected += f", {server.sample_count:,} observed"
    yield f"usual interval: {length}, the median distance between successive observations{expected}"
    if not server.gaps:
        yield "gaps over 1.5 usual intervals: none"
        return
    more = f", the {len(server.gaps)} longest:" if server.gap_count > len(server.gaps) else ""
    yield f"gaps over 1.5 usual intervals: {server.gap_count:,}{more}"
    for gap in server.gaps:
        length = text.format_exact_duration(gap.to - gap.from_) + _find_edge(server, gap)
        yield f"- {format_time(gap.from_)} to {format_time(gap.to)}: {length}"


def _find_edge(server: support.ServerExplanation, gap: GapPart) -> str:
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


def _describe_origin(explanation: support.Explanation) -> Iterator[str]:
    """Yield the lines about the snapshot and the program."""
    as_of, own = format_time(explanation.as_of), format_time(explanation.snapshot_as_of)
    reason = "the end of the snapshot"
    if explanation.as_of != explanation.snapshot_as_of:
        is_later = explanation.as_of > explanation.snapshot_as_of
        reason = f"as requested{'; the snapshot ends earlier' if is_later else ''}"
    yield f"as of: {as_of}, {reason}"
    yield f"snapshot: as of {own}, root {explanation.root}"
    whole = ""
    if explanation.covered_from is not None:
        yield f"coverage: a bundle, from {format_time(explanation.covered_from)} on"
        whole = " of the whole snapshot"
    counts = explanation.not_kept
    yield (
        f"left out by the build, of all servers{whole}:"
        f" {format_count(counts.repeated, 'repeated row')}, {counts.conflicting:,} conflicting,"
        f" {counts.rejected:,} malformed"
    )
    yield f"program: srvstat {explanation.program_version}"


RENDERERS: Renderers = {
    support.AccessCheck: render_access,
    support.Explanation: render_explanation,
    support.Replay: render_replay,
    support.SnapshotDiff: render_snapshot_diff,
}
