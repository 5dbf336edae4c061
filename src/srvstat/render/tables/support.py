"""Tables of replayed exchanges, differences, plans and explanations."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from http import HTTPStatus
from itertools import groupby, pairwise
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from srvstat.contract import wire
from srvstat.contract.time import parse_instant
from srvstat.documents import support
from srvstat.documents.document import GapPart, remove_color_codes
from srvstat.render import layout, text
from srvstat.render.figures import describe_silence, format_title_window
from srvstat.render.screen import Screen, build_fields_grid, render_table, start_table
from srvstat.render.text import NOTHING, UTC, format_count, format_id, format_time

_APART = {"current": "current counts", "notComparable": "what can't be compared"}
_MAX_EXCHANGES = 50
"""The maximum number of exchanges with a line each. With more, matching exchanges share lines."""
_MAX_ROWS = 40
"""Enough for all values of a comparison of five servers."""
_MAX_VALUE_WIDTH = 40
_MIN_DIGITS = 2
_SECOND = 1000
_INDENT = (0, 0, 0, 2)
_PREFIX = "/gateway"
_MARKS = {
    "match": ("✓", "green"),
    "differs": ("✗", "red"),
    "unreadable": ("✗", "red"),
    "unrecorded": (NOTHING, "yellow"),
    "notReproducible": (NOTHING, "yellow"),
    "foreign": (NOTHING, "dim"),
}


@render_table.register
def render_replay(replay: support.Replay, screen: Screen) -> str:
    """Render a line per exchange, then the differences and the responses that were not recorded."""
    exchanges = replay.exchanges
    files = [(title, list(run)) for title, run in groupby(exchanges, lambda each: _split(each)[0])]
    title = screen.escape(files[0][0]).plain if files else "nothing to show"
    title = format_count(len(files), "file") if len(files) > 1 else title
    blocks: list[list[RenderableType]] = [
        [Text(f"{title}: {_count_classes(replay)}", "bold", overflow="fold")]
    ]
    for name, run in files:
        heading = [screen.escape(name)] if len(files) > 1 else []
        blocks.append(
            [*heading, _build_lines(run, screen, is_long=len(exchanges) > _MAX_EXCHANGES)]
        )
    for exchange in exchanges:
        if details := list(_build_details(exchange, screen)):
            place = exchange.place if len(files) > 1 else _split(exchange)[1]
            named = ": ".join(filter(None, (place, _format_request(exchange))))
            head = screen.escape_cell(named, "bold")
            head.append("" if exchange.as_of is None else f", as of {format_time(exchange.as_of)}")
            head.append(_describe_clock(exchange))
            blocks.append([head, *(Padding(one, _INDENT, expand=False) for one in details)])
    return screen.render_blocks(*blocks)


def render_advice(finding: str, command: str, screen: Screen) -> str:
    """Render the end of a replay: a sentence, and a command to copy, which is not folded."""
    shown = f"  {screen.escape(command).plain}\n" if command else ""
    return f"\n{screen.render(screen.escape(finding))}{shown}"


def _count_classes(replay: support.Replay) -> str:
    counts = replay.counts
    named = {
        "match" if counts.match == 1 else "matches": counts.match,
        "difference" if counts.differs == 1 else "differences": counts.differs,
        "not recorded": counts.unrecorded,
        "not reproducible": counts.not_reproducible,
        "unreadable": counts.unreadable,
        "to another API": counts.foreign,
    }
    shown = [f"{count:,} {name}" for name, count in named.items() if count]
    return ", ".join([format_count(sum(named.values()), "exchange"), *shown])


def _split(exchange: support.ReplayedExchange) -> tuple[str, str]:
    """Return the file of an exchange, and its line or entry."""
    title, comma, place = exchange.place.rpartition(", ")
    return (
        (title, place) if comma else (place, "")
    )  # the place of a single response is just its file


def _build_lines(
    exchanges: Sequence[support.ReplayedExchange], screen: Screen, *, is_long: bool
) -> Table:
    """Return a line for each exchange, or for a group of exchanges that can share one."""
    groups: dict[str, list[support.ReplayedExchange]] = {}
    for exchange in exchanges:
        groups.setdefault(_name_group(exchange, is_long=is_long), []).append(exchange)
    requests = {
        name: _format_request(run[0])
        if len(run) == 1
        else f"{format_count(len(run), 'request')}{'' if _is_unreadable(run[0]) else name}"
        for name, run in groups.items()
    }
    ours = [requests[name] for name, run in groups.items() if run[0].class_ != "foreign"]
    width = min(max(map(len, ours), default=0), screen.width // 2)
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, (first, *others) in groups.items():
        request = screen.escape_cell(requests[name]).plain
        words = "match" if first.class_ == "match" and others else _describe(first)
        words += f", from {_split(first)[1]} on" if others and _is_unreadable(first) else ""
        line = screen.escape(words)
        if request:
            line = Text(f"{request:{width}}  ").append_text(line)
        for truth in _describe_truth(first, first.true_during):
            line.append(f"\n{truth}")
        place = "" if others else screen.escape(_split(first)[1]).plain
        grid.add_row(
            Text.assemble(_MARKS[first.class_], (f" {place}" if place else "", "dim")), line
        )
    return grid


def _name_group(exchange: support.ReplayedExchange, *, is_long: bool) -> str:
    """Return a group name; exchanges with the same name share a line."""
    if exchange.class_ == "foreign":
        host = (exchange.path or "").partition("/")[0]
        return f" to {host}" if host else " elsewhere"
    if is_long and _is_unreadable(exchange):
        return f": {exchange.reason}"
    notes = exchange.true_during, exchange.explanation
    is_plain = exchange.class_ == "match" and not exchange.differences and notes == (None, None)
    return "" if is_long and is_plain else exchange.place


def _is_unreadable(exchange: support.ReplayedExchange) -> bool:
    return exchange.class_ == "unreadable"


def _format_request(exchange: support.ReplayedExchange) -> str:
    if exchange.method is None or exchange.path is None:
        return ""
    length = exchange.request.range if exchange.request else None
    shown = f"{exchange.method} {exchange.path.removeprefix(_PREFIX)}"
    return shown if length is None else f"{shown} {length}"


def _format_minute(at: int) -> str:
    return f"{text.format_clock(at, UTC, 'minutes')} UTC"


def _describe_clock(exchange: support.ReplayedExchange) -> str:
    """Describe the clock that determined the as-of time, and by how much the clocks differ."""
    if exchange.clock != "service" or exchange.answered_at is None:
        agrees = " and the Date of the response" if exchange.answered_at is not None else ""
        return "" if exchange.clock is None else f" by the clock of the client{agrees}"
    words = " by the Date of the response"
    if exchange.requested_at is None:
        return words
    late = exchange.requested_at - exchange.answered_at
    side = "ahead" if late > 0 else "behind"
    return f"{words}; the clock of the client was {text.format_whole_minutes(abs(late))} {side}"


def _describe(exchange: support.ReplayedExchange) -> str:
    """Describe the class of an exchange, and the as-of time of its response."""
    as_of = (
        "" if exchange.as_of is None else f", as of {format_time(exchange.as_of // 1000 * 1000)}"
    )
    status = exchange.answer.status if exchange.answer else 0
    match exchange.class_:
        case "match":
            kinds = {difference.class_ for difference in exchange.differences}
            words = "matches"
            if status >= HTTPStatus.BAD_REQUEST:
                words += f" with status {status}"
            if apart := [_APART[kind] for kind in _APART if kind in kinds]:
                words += f", apart from {' and '.join(apart)}"
            elif kinds:
                words += ", in other text"
            return words + as_of
        case "differs":
            return f"differs{_count_values(exchange)}"
        case "unrecorded":
            return exchange.reason or ""
        case "notReproducible":
            return f"not reproducible: {exchange.reason}"
        case "unreadable":
            return f"can't be read: {exchange.reason}"
        case "foreign":
            words = "a preflight" if exchange.method == "OPTIONS" else "another API"
            return f"{words}; {exchange.reason}" if exchange.reason else words


def _list_values(differences: Sequence[support.Difference]) -> list[support.Difference]:
    return [difference for difference in differences if difference.class_ == "value"]


def _count_values(exchange: support.ReplayedExchange) -> str:
    values = _list_values(exchange.differences)
    noun = "number" if exchange.request and exchange.request.range else "field"
    for one in values:
        if one.pointer == "/status":
            return f": status {one.recorded} recorded, {one.recomputed} recomputed"
        if not one.pointer:
            return ": the recorded body is not JSON"
    return f" in {format_count(len(values), noun)}"


def _build_details(exchange: support.ReplayedExchange, screen: Screen) -> Iterator[RenderableType]:
    """Yield what the line of an exchange omits: differences, response and explanation."""
    data = _read_data(exchange)
    if exchange.class_ == "differs":
        if exchange.reason is not None:
            yield screen.escape(exchange.reason)
        values = _list_values(exchange.differences)
        rows = [_build_row(one, exchange, data) for one in values]
        yield from _build_differences(["server id"], rows, screen)
        kinds = {one.class_ for one in exchange.differences}
        if "current" in kinds:
            note = "not compared: current counts, which depend on when the response was captured"
            yield Text(note, "dim", overflow="fold")
    others = [one for one in exchange.differences if one.class_ == "notComparable"]
    if others:
        yield Text("not comparable: metadata from another time, or redacted", overflow="fold")
        rows = [_build_row(one, exchange, data) for one in others]
        yield from _build_differences(["server id"], rows, screen, ("recorded", "snapshot"))
    elif exchange.class_ == "unrecorded" and data is not None:
        yield _build_answer(data, screen)
    for server in exchange.servers or () if not exchange.true_during else ():
        for truth in _describe_truth(exchange, server.true_during):
            yield screen.escape(f"{server.server_id}: {truth}")
    if exchange.explanation is not None:
        width = max(min(screen.width, MAIL_WIDTH) - 2, 1)
        explained = render_explanation(exchange.explanation, replace(screen, width=width))
        yield Text.from_ansi(explained.rstrip())


Row = tuple[Sequence[str], str, support.Difference]
"""A row: cells shared with other rows, such as a server id, then the field and its difference."""


def _read_data(exchange: support.ReplayedExchange) -> Any:
    """Return the server or results of a recomputed response; None for an error or HEAD."""
    body = wire.decode(wire.encode(exchange.answer.body)) if exchange.answer else None
    return body.get("data") if isinstance(body, dict) else None


def _build_row(
    difference: support.Difference, exchange: support.ReplayedExchange, data: Any
) -> Row:
    """Return a row with the server and field that a difference's pointer names."""
    steps = [one.replace("~1", "/").replace("~0", "~") for one in difference.pointer.split("/")[1:]]
    named = exchange.request.servers if exchange.request else ()
    server = named[0].partition(":")[2] if len(named) == 1 else ""
    if steps[:1] == ["data"] and data is not None:
        steps = steps[1:]
        if isinstance(data, list) and steps:
            at = int(steps.pop(0))
            server = data[at]["serverId"] if at < len(data) else f"result {at + 1}"
    return (server,), ".".join(steps) or "body", difference


def _build_differences(
    names: Sequence[str],
    rows: Sequence[Row],
    screen: Screen,
    sides: tuple[str, str] = ("recorded", "recomputed"),
) -> Iterator[RenderableType]:
    """Yield a table of differences, and how many are omitted. Repeated cells are shown once."""
    shown = rows[:_MAX_ROWS]
    table = start_table(*names, "field", *sides, right=sides)
    before: Sequence[str] = ()
    for cells, field, difference in shown:
        texts = ["" if cells[: at + 1] == before[: at + 1] else one for at, one in enumerate(cells)]
        values = map(screen.escape_cell, (field, *_format_values(difference)))
        short = (screen.truncate(value, _MAX_VALUE_WIDTH) for value in values)
        table.add_row(*map(screen.escape, texts), *short)
        before = cells
    yield table
    yield from layout.build_rest(len(rows) - _MAX_ROWS, "more difference")


def _format_values(difference: support.Difference) -> list[str]:
    values = [wire.encode(one).decode() for one in (difference.recorded, difference.recomputed)]
    if difference.absent_in is None:
        return text.format_apart(values)
    values[difference.absent_in == "recomputed"] = "absent"
    return values


def _build_answer(data: Any, screen: Screen) -> Table:
    """Build a table of a response, with a row for each field and a column for each server."""
    results = data if isinstance(data, list) else [data]
    ids = [result.get("serverId", result.get("id")) for result in results]
    table = start_table("field", *ids, right=ids if isinstance(data, list) else ())
    columns = [dict(_flatten(result)) for result in results]
    for field in columns[0]:
        if field not in {"id", "serverId", "range"}:
            values = [column[field] for column in columns]
            digits = _MIN_DIGITS if any("." in one for one in values) else 0
            shown = (text.format_number(one, digits) for one in values)
            table.add_row(field, *map(screen.escape_cell, shown))
    return table


def _flatten(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _flatten(member, f"{name}.{key}" if name else key)
    else:
        yield name, value if isinstance(value, str) else wire.encode(value).decode()


def _describe_truth(
    exchange: support.ReplayedExchange, intervals: Sequence[support.Interval] | None
) -> Iterator[str]:
    """Yield when something was true, and how long before the request, if that was searched."""
    searched, asked = exchange.searched, exchange.searched_around
    if searched is None or intervals is None:
        return
    is_request = asked is not None and asked in (exchange.requested_at, exchange.answered_at)
    end = "the request" if is_request else format_time(asked or searched.to)
    if not intervals:
        length = text.format_exact_duration((asked or searched.to) - searched.from_)
        later = searched.to - (asked or searched.to)
        after = f" and {text.format_exact_duration(later)} after" if later else ""
        yield f"no match within {length} before{after} {end}"
        return
    nearest, distance = support.find_nearest(intervals, asked or searched.to)
    when = "at" if nearest.from_ == nearest.to else "from"
    words = f"right {when} {_format_interval(nearest.from_, nearest.to)}"
    if nearest == searched:
        words += ", the whole search"
    elif distance and asked is not None:
        words += " or later" if distance < 0 and nearest.to == searched.to else ""
        size = abs(distance)
        format_length = text.format_whole_minutes if size >= _SECOND else text.format_exact_duration
        side, verdict = ("before", "stale, not wrong")
        if distance < 0:
            side, verdict = ("after", "a clock was slow, or the response comes from other data")
        words += f", {format_length(size)} {side} {end}: {verdict}"
    others = len(intervals) - 1
    yield f"{words}; also {format_count(others, 'other time')}" if others else words


_MAX_TIMES = 10


@render_table.register
def render_when(found: support.When, screen: Screen) -> str:
    """Render the last times at which all values were true, or the closest values."""
    times = [_format_interval(one.from_, one.to) for one in reversed(found.true_during)]
    verdict = format_count(len(times), "match", "matches") if times else "no match"
    start, end = map(format_time, (found.searched.from_, found.searched.to))
    title = f"{verdict} for {found.range} between {start} and {end}"
    blocks: list[list[RenderableType]] = [
        [Text(title, "bold", overflow="fold")],
        [
            *map(Text, times[:_MAX_TIMES]),
            *layout.build_rest(len(times) - _MAX_TIMES, "earlier time"),
        ],
    ]
    for server in found.servers if not times else ():
        if server.nearest is None:
            blocks.append([_describe_own_times(server, screen)])
            continue
        table = start_table("", "statistic", "given", "closest", right=("given", "closest"))
        for wanted, value in zip(server.figures, server.nearest.figures, strict=True):
            sides = [wire.encode(one.value).decode() for one in (wanted, value)]
            mark = _MARKS["match" if wanted.measure(value.value) is None else "differs"]
            table.add_row(Text(*mark), wanted.figure, *text.format_apart(sides))
        when = _format_interval(server.nearest.from_, server.nearest.to)
        blocks.append([screen.escape(f"{server.server_id}: closest match, {when}"), table])
    return screen.render_blocks(*blocks)


def _describe_own_times(server: support.DatedServer, screen: Screen) -> Text:
    last = server.true_during[-1]
    times = format_count(len(server.true_during), "match", "matches")
    interval = _format_interval(last.from_, last.to)
    return screen.escape(f"{server.server_id}: {times}; last: {interval}")


_MAX_SPANS = 6
_ROOT_DIGITS = 12
_ONE_DAY = timedelta(days=1)


@render_table.register
def render_snapshot_diff(diff: support.SnapshotDiff, screen: Screen) -> str:
    """Render the changed servers, the first changed responses, and what was compared."""
    blocks: list[list[RenderableType]] = [
        [Text(_summarize_diff(diff), "bold", overflow="fold")],
        list(_build_servers(diff.servers, screen)),
    ]
    rows: list[Row] = [
        ((answer.server_id, answer.range), one.pointer[1:].replace("/", "."), one)
        for answer in diff.answers
        for one in _list_values(answer.differences)
    ]
    if rows:
        blocks.append([*_build_differences(["server id", "range"], rows, screen, ("old", "new"))])
    blocks.append([Text(line, "dim") for line in _describe_sides(diff)])
    return screen.render_blocks(*blocks)


def _summarize_diff(diff: support.SnapshotDiff) -> str:
    servers = diff.servers
    if diff.is_empty:
        return "no difference in what both snapshots cover"
    values = sum(bool(_list_values(answer.differences)) for answer in diff.answers)
    current = len(diff.answers) - values
    more = f", {current:,} more in currentPlayers only" if current else ""
    return (
        f"{format_count(len(servers.changed), 'server')} changed, {len(servers.added):,} added,"
        f" {len(servers.removed):,} removed;"
        f" {format_count(values, 'response changes', 'responses change')}{more}"
    )


def _build_servers(servers: support.ServerChanges, screen: Screen) -> Iterator[RenderableType]:
    rows = [
        (one.server_id, "changed", one.fields, [*_join_days(one.days)]) for one in servers.changed
    ]
    rows += [(one, "added", (), []) for one in servers.added]
    rows += [(one, "removed", (), []) for one in servers.removed]
    if rows:
        table = start_table("server id", "change", "fields", "days")
        for name, change, fields, spans in rows[:_MAX_ROWS]:
            more = len(spans) - _MAX_SPANS
            days = spans[:_MAX_SPANS] + ([f"and {more:,} more"] if more > 0 else [])
            cells = (", ".join(fields), ", ".join(days))
            table.add_row(screen.escape(name), change, *(cell or NOTHING for cell in cells))
        yield table
        yield from layout.build_rest(len(rows) - _MAX_ROWS, "more server")


def _join_days(days: Sequence[str]) -> Iterator[str]:
    """Yield ascending dates, with consecutive dates joined into spans."""
    dates = [date.fromisoformat(day) for day in days]
    starts = [at for at, day in enumerate(dates) if not at or day - dates[at - 1] > _ONE_DAY]
    for first, end in pairwise([*starts, len(dates)]):
        yield days[first] if end - first == 1 else f"{days[first]} to {days[end - 1]}"


def _describe_sides(diff: support.SnapshotDiff) -> Iterator[str]:
    """Yield notes on the two snapshots, and on what was compared."""
    old, new, at = map(_format_minute, (diff.old_as_of, diff.new_as_of, diff.as_of))
    roots = f"{diff.old_root[:_ROOT_DIGITS]} and {diff.root[:_ROOT_DIGITS]}"
    if old == new == at:
        yield f"both as of {at}; roots {roots}"
    else:
        yield f"old as of {old}, new as of {new}, responses as of {at}; roots {roots}"
    if diff.compared_from is not None:
        start = _format_minute(diff.compared_from)
        yield f"compared: servers in both, from {start} on, because a bundle lacks the rest"


@render_table.register
def render_access(check: support.AccessCheck, screen: Screen) -> str:
    """Render a row for each plan, or a block for each if the rows do not fit."""
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
"""The width of explanations, which people paste into mails."""
ExplainedRow = tuple[str, str, str]
"""The name of a value, the value, and its origin."""


@render_table.register
def render_explanation(explanation: support.Explanation, screen: Screen) -> str:
    """Render the window, a block of values for each server, and the origin of the response."""
    screen = replace(screen, width=min(screen.width, MAIL_WIDTH))
    data = explanation.answer["data"]
    window = format_title_window(explanation.servers[0].window)
    title, describe, results = f"Get Server: {window}", _list_record_rows, [data]
    if explanation.range is not None:
        title, describe, results = f"Compare Servers: {window}", _list_figure_rows, data
    blocks: list[list[RenderableType]] = [[Text(title, "bold", overflow="fold")]]
    for server, result in zip(explanation.servers, results, strict=True):
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        rows = (
            *describe(server, result, explanation),
            *_list_distance_rows(server, hold=explanation.hold),
        )
        for name, value, origin in rows:
            grid.add_row(Text(name), Text(value), Text(origin))
        blocks.append([_name_server(server, screen), grid])
    notes = [Text(line, "dim", overflow="fold") for line in _list_origins(explanation)]
    return screen.render_blocks(*blocks, notes)


def _name_server(server: support.ServerExplanation, screen: Screen) -> Text:
    texts = (format_id(server.server_id), remove_color_codes(server.hostname), server.cfx_id)
    first, *others = map(screen.escape_cell, filter(None, dict.fromkeys(texts)))
    first.stylize("bold")
    return Text("  ", overflow="fold").join([first, *others])


def _explain_current(
    server: support.ServerExplanation, explanation: support.Explanation
) -> ExplainedRow:
    last, as_of = server.last_in_snapshot, explanation.snapshot_as_of
    origin = "the metadata has no current count, and the snapshot has no observation"
    if not server.current_is_fallback:
        last_at = None if last is None else last.observed_at
        silence = describe_silence(last_at, as_of, hold=explanation.hold)
        origin = f"from the server's metadata; not an observation{silence}"
    elif last is not None:
        at = format_time(last.observed_at)
        origin = f"the last observation, at {at}; the metadata has no current count"
    return "current", f"{server.current_players:,}", origin


def _list_figure_rows(
    server: support.ServerExplanation, result: Mapping[str, Any], explanation: support.Explanation
) -> Iterator[ExplainedRow]:
    """Yield the values of Compare Servers."""
    yield _explain_current(server, explanation)
    peak, lowest = server.peak, server.lowest
    yield _explain_observations(server)
    if peak is None or lowest is None:
        yield "all others", "null", "the window has no observation"
        return
    average, median = result["averagePlayers"], result["medianPlayers"]
    shown = text.format_average(average)
    origin = f"{server.sum:,} / {server.sample_count:,}{_add_exact_value(average, shown)}"
    yield "average", shown, origin
    yield "median", text.format_median(median), _explain_median(server, median)
    yield "peak", f"{peak.players:,}", f"first at {format_time(peak.first_at)}"
    yield "lowest", f"{lowest.players:,}", f"first at {format_time(lowest.first_at)}"
    yield _explain_growth(server, result["growth"])
    weighted = server.time_weighted_average
    if weighted is not None and server.has_uneven_intervals:
        side = "higher" if weighted > average else "lower"
        origin = (
            f"{abs(weighted - average) / average:.1%} {side} than the average: counts weighted by"
            " the time until the next one, at most 3 polling intervals"
        )
        yield "by time", text.format_average(weighted), origin


def _explain_observations(server: support.ServerExplanation) -> ExplainedRow:
    first, last = server.first, server.last
    start, end = server.first_in_snapshot_at, server.last_in_snapshot
    if first is not None and last is not None:
        origin = _format_interval(first.observed_at, last.observed_at)
    elif start is None or end is None:
        origin = "this file has none"
    else:
        origin = f"all in the snapshot: {_format_interval(start, end.observed_at)}"
    return "observations", f"{server.sample_count:,}", origin


def _explain_median(server: support.ServerExplanation, median: float) -> str:
    ranks = [text.format_ordinal(value.rank) for value in server.middle]
    number = f"of {format_count(server.sample_count, 'count')} in ascending order"
    if len(ranks) == 1:
        return f"the {ranks[0]} {number}" if server.sample_count > 1 else "the only count"
    values = " and ".join(f"{value.players:,}" for value in server.middle)
    exact = _add_exact_value(median, text.format_median(median))
    return f"the mean of {values}, the {ranks[0]} and {ranks[1]} {number}{exact}"


def _explain_growth(server: support.ServerExplanation, growth: Mapping[str, Any]) -> ExplainedRow:
    first, last = server.first, server.last
    if server.growth is None or first is None or last is None:
        return "growth", "null", "it takes two observations"
    players, percentage = growth["players"], growth["percentage"]
    sign = "+" if players else ""
    shown, exact = f"{players:{sign},}", "; no percentage from 0"
    if percentage is not None:
        rounded = f"{percentage:{sign},.1f}"
        shown, exact = f"{shown} ({rounded}%)", _add_exact_value(percentage, rounded)
    origin = (
        f"from {first.players:,} at {format_time(first.observed_at)}"
        f" to {last.players:,} at {format_time(last.observed_at)}"
    )
    return "growth", shown, f"{origin}{exact}"


def _add_exact_value(value: float, shown: str) -> str:
    """Return the exact value as a suffix if the shown text is rounded."""
    is_exact = float(shown.replace(",", "")) == value
    return "" if is_exact else f"; in the response: {wire.format_number(value)}"


def _list_record_rows(
    server: support.ServerExplanation, result: Mapping[str, Any], explanation: support.Explanation
) -> Iterator[ExplainedRow]:
    """Yield the fields of Get Server that can come from observations."""
    yield _explain_current(server, explanation)
    last = server.last_in_snapshot
    for name, which, at in (
        ("firstSeenAt", "first", server.first_in_snapshot_at),
        ("updatedAt", "last", last.observed_at if last else None),
    ):
        stored = parse_instant(result[name])
        # By default, a record's times come from observations.
        if explanation.covered_from is not None:
            origin = "of the snapshot that this bundle was made from"
        elif stored != (explanation.snapshot_as_of if at is None else at):
            origin = "of the server's record"
        elif at is None:
            origin = "the end of the snapshot"
        else:
            origin = f"the {which} observation in the snapshot"
        yield name, format_time(stored), origin
    yield _explain_observations(server)


def _list_distance_rows(server: support.ServerExplanation, *, hold: bool) -> Iterator[ExplainedRow]:
    """Yield the polling interval, and the gaps of more than 1.5 intervals."""
    if hold:
        yield "interval", NOTHING, "each count lasts until the next one"
        return
    if server.usual_interval_seconds is None:
        yield "interval", NOTHING, "it takes two observations"
        return
    # The polling interval may have half a millisecond, which the formatter can't show.
    milliseconds, half = divmod(round(2000 * server.usual_interval_seconds), 2)
    exact = text.format_exact_duration(milliseconds)
    length = f"{wire.format_number(server.usual_interval_seconds)} seconds" if half else exact
    expected = ""
    if server.expected_count is not None:
        expected = f"; {server.expected_count:,} in the window, {server.sample_count:,} observed"
    yield "interval", "", f"{length}{expected}"
    more = f"the {len(server.gaps)} longest:" if server.gap_count > len(server.gaps) else ""
    yield "gaps", f"{server.gap_count:,}", more or "over 1.5 polling intervals"
    for gap in server.gaps:
        length = text.format_span_length(gap.to - gap.from_) + _find_edge(server, gap)
        yield "", "", f"{_format_interval(gap.from_, gap.to)}: {length}"


def _find_edge(server: support.ServerExplanation, gap: GapPart) -> str:
    """Return which edge of the window a gap touches, as the end of a line."""
    if gap.from_ == server.window.from_:
        is_first = gap.to == server.first_in_snapshot_at
        return ", before the first observation" if is_first else ", from the start of the window"
    if server.last is not None and gap.from_ == server.last.observed_at:
        is_last = server.last == server.last_in_snapshot
        return ", after the last observation" if is_last else ", to the end of the window"
    return ""


def _list_origins(explanation: support.Explanation) -> Iterator[str]:
    """Yield notes on the ends of the window, the snapshot and the program."""
    start, end = explanation.servers[0].window.from_, format_time(explanation.as_of)
    if start is not None:
        yield f"after {format_time(start)}, up to and including {end}"
    parts = [f"snapshot as of {_format_minute(explanation.snapshot_as_of)}"]
    if explanation.covered_from is not None:
        parts.append(f"a bundle from {_format_minute(explanation.covered_from)} on")
    parts.append(f"root {explanation.root[:_ROOT_DIGITS]}")
    counts = explanation.not_kept
    for count, kind in (
        (counts.repeated, "repeated"),
        (counts.conflicting, "conflicting"),
        (counts.rejected, "malformed"),
    ):
        if count:
            parts.append(f"{format_count(count, f'{kind} row')} not kept")
    yield ", ".join([*parts, f"srvstat {explanation.program_version}"])


def _format_interval(first: int, last: int) -> str:
    """Format an interval without repeating the date: `2026-08-22 17:30:00 to 17:34:59 UTC`."""
    start, end = format_time(first), format_time(last)
    if start == end:
        return start
    day, _, clock = end.partition(" ")
    return f"{start.removesuffix(' UTC')} to {clock if start.startswith(day) else end}"
