"""The table of replayed exchanges, with the differences of each."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from rich.cells import chop_cells
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from srvstat.contract import wire
from srvstat.documents.support import Difference, Interval, Replay, ReplayedExchange
from srvstat.render.screen import NATURAL_WIDTH, Screen
from srvstat.render.tables.explanation import MAIL_WIDTH, render_explanation
from srvstat.render.text import (
    NOTHING,
    format_count,
    format_duration,
    format_exact_duration,
    format_time,
)

_MAX_ROWS = 50
"""With more exchanges, runs of matches are shortened."""
_SHORT_RUN = 3
_MIN_REQUEST_WIDTH = 26
_MAX_VALUE_LENGTH = 60
_SECOND = 1000
_INDENT = 4
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


def render_replay(replay: Replay, screen: Screen) -> str:
    """Render a line of totals, and each exchange with its differences; foreign ones are counted."""
    shown = [exchange for exchange in replay.exchanges if exchange.class_ != "foreign"]
    parts: list[RenderableType] = [Text(_count_classes(replay))]
    if replay.counts.foreign:
        parts.append(Text(f"{format_count(replay.counts.foreign, 'foreign request')} not shown"))
    if shown:
        parts.append(Text())
    parts.extend(_build_rows(shown, screen))
    return screen.render(*parts)


def _count_classes(replay: Replay) -> str:
    counts = replay.counts
    named = {
        "match" if counts.match != 1 else "matches": counts.match,
        "differs" if counts.differs == 1 else "differ": counts.differs,
        "unrecorded": counts.unrecorded,
        "not reproducible": counts.not_reproducible,
        "unreadable": counts.unreadable,
    }
    total = format_count(sum(named.values()), "exchange")
    return f"{total}: " + (
        ", ".join(f"{count:,} {name}" for name, count in named.items() if count)
        or "nothing to compare"
    )


def _build_rows(exchanges: Sequence[ReplayedExchange], screen: Screen) -> Iterator[RenderableType]:
    """Yield each exchange. Of many, only the first of a run of equal matches is shown."""
    widths = _choose_widths(exchanges, screen)
    is_long = len(exchanges) > _MAX_ROWS
    is_first, was_plain = True, True
    for is_plain, run in groupby(exchanges, _is_plain_match):
        members = list(run)
        is_cut = is_long and is_plain and len(members) > _SHORT_RUN
        for exchange in members[:1] if is_cut else members:
            # A blank line ends a block of several lines.
            if not is_first and (widths is None or not was_plain):
                yield Text()
            yield _build_row(exchange, widths, screen)
            yield from (
                Padding(part, (0, 0, 0, _INDENT), expand=False)
                for part in _build_details(exchange, screen)
            )
            is_first, was_plain = False, is_plain
        if is_cut:
            yield Text(f"  and {len(members) - 1:,} more that match", "dim")


def _is_plain_match(exchange: ReplayedExchange) -> bool:
    is_silent = not exchange.differences and exchange.true_during is None
    return exchange.class_ == "match" and is_silent and exchange.explanation is None


def _choose_widths(exchanges: Sequence[ReplayedExchange], screen: Screen) -> list[int] | None:
    """Return the widths of the columns before the request; None if it is better placed below."""
    names = ([_CLASSES[each.class_][0] for each in exchanges], [each.place for each in exchanges])
    widths = [max((screen.escape(text).cell_len for text in texts), default=0) for texts in names]
    widths.append(max((len(_format_as_of(exchange)) for exchange in exchanges), default=0))
    needed = sum(widths) + 2 * len(widths) + _MIN_REQUEST_WIDTH
    return widths if screen.width is None or screen.width >= needed else None


def _build_row(
    exchange: ReplayedExchange, widths: list[int] | None, screen: Screen
) -> RenderableType:
    name, style = _CLASSES[exchange.class_]
    cells = [
        Text(name, style),
        screen.escape(exchange.place),
        Text(_format_as_of(exchange), "dim"),
        _show_request(exchange, screen),
    ]
    if widths is None:
        head = Text("  ").join(cells[:2])
        below = [cell for cell in (cells[3], cells[2]) if cell.plain]
        return Group(head, *(Padding(cell, (0, 0, 0, 2), expand=False) for cell in below))
    grid = Table.grid(padding=(0, 2, 0, 0))
    for width in widths:
        grid.add_column(width=width, no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(*cells)
    return grid


def _format_as_of(exchange: ReplayedExchange) -> str:
    return "" if exchange.as_of is None else format_time(exchange.as_of)


def _show_request(exchange: ReplayedExchange, screen: Screen) -> Text:
    """Show the method, the path, and the servers and the range of a comparison."""
    if exchange.method is None or exchange.path is None:
        return Text()
    text = f"{exchange.method} {exchange.path.removeprefix(_PREFIX)}"
    if exchange.request is not None and exchange.request.range is not None:
        names = ", ".join(name.removeprefix("id:") for name in exchange.request.servers)
        text = f"{text}: {names}; {exchange.request.range}"
    return screen.escape(text) if exchange.request else screen.escape_cell(text)


def _build_details(exchange: ReplayedExchange, screen: Screen) -> Iterator[RenderableType]:
    if exchange.reason is not None and exchange.class_ != "match":
        yield screen.escape(exchange.reason)
    if exchange.differences:
        yield _build_differences(exchange.differences, screen)
    yield from map(screen.escape, _describe_truth(exchange))
    if exchange.class_ == "unrecorded" and exchange.answer is not None:
        yield Text(f"the answer is {exchange.answer.status}:")
        yield from _build_body(exchange.answer.body, screen)

    if exchange.explanation is not None:
        width = max(min(screen.width or MAIL_WIDTH, MAIL_WIDTH) - _INDENT, 1)
        text = render_explanation(exchange.explanation, replace(screen, width=width))
        yield Text(f"\n{text}".rstrip())


def _build_body(body: Any, screen: Screen) -> Iterator[RenderableType]:
    """Yield a body as JSON in full lines, without regard to words."""
    text = screen.escape("no body" if body is None else _format_json(body)).plain
    width = NATURAL_WIDTH if screen.width is None else max(screen.width - _INDENT, 1)
    yield from map(Text, chop_cells(text, width))


def _build_differences(differences: Sequence[Difference], screen: Screen) -> Table:
    pointers = [screen.escape_cell(each.pointer or "the body") for each in differences]
    widest = max(pointer.cell_len for pointer in pointers)
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(overflow="fold", no_wrap=screen.width is None or widest <= screen.width // 2)
    grid.add_column(overflow="fold")
    for pointer, difference in zip(pointers, differences, strict=True):
        grid.add_row(pointer, _show_values(difference, screen))
    return grid


def _show_values(difference: Difference, screen: Screen) -> Text:
    """Show the recorded and the recomputed value, and what else is known of the difference."""
    is_of_body = not difference.pointer
    if is_of_body and difference.class_ == "text":
        return Text("other white space, escapes or order of keys")
    recorded, recomputed = (
        NOTHING if difference.absent_in == side else _cut(_format_json(value))
        for side, value in (
            ("recorded", difference.recorded),
            ("recomputed", difference.recomputed),
        )
    )
    values = screen.escape(f"{recorded} {'->' if screen.ascii_only else '→'} {recomputed}")
    note = _NOTES[difference.class_]
    if difference.absent_in is not None:
        note = f"absent from the {difference.absent_in} answer"
    elif is_of_body:
        note = "not an answer in JSON"
    return Text.assemble(values, (f"  {note}", "dim")) if note else values


def _format_json(value: Any) -> str:
    return wire.encode(value).decode()


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[:_MAX_VALUE_LENGTH]}…"


def _describe_truth(exchange: ReplayedExchange) -> Iterator[str]:
    """Yield sentences that say when a recorded answer was right, if a search was made."""
    if exchange.searched is None or exchange.true_during is None:
        return
    end = exchange.searched.to
    name = "the request" if exchange.requested_at == end else format_time(end)
    sentence = _describe_intervals(exchange.true_during, exchange.searched, name)
    is_stale = exchange.true_during and exchange.true_during[-1].to < end
    yield f"{sentence}: a stale answer, not a wrong one" if is_stale else sentence
    servers = exchange.servers or ()
    if not exchange.true_during and any(server.true_during for server in servers):
        for server in servers:
            sentence = _describe_intervals(server.true_during, exchange.searched, name)
            yield f"{server.server_id}: {sentence}"


def _describe_intervals(intervals: Sequence[Interval], searched: Interval, end: str) -> str:
    """Return a sentence about the intervals; `end` names the end of the search."""
    is_instant = searched.from_ == searched.to
    if not intervals:
        if is_instant:
            return f"was not right as of {end}"
        length = format_exact_duration(searched.to - searched.from_)
        return f"was never right within {length} before {end}"
    last = intervals[-1]
    more = len(intervals) - 1
    earlier = f"; also in {format_count(more, 'earlier interval')}" if more else ""
    if last == searched and not is_instant:
        return "right at every instant of the search"
    if last.from_ == searched.to:
        return f"right as of {end}{earlier}"
    if last.to == searched.to:
        return f"right as of {end}, and since {format_time(last.from_)}{earlier}"
    distance = searched.to - last.to
    ago = format_duration(distance) if distance >= _SECOND else format_exact_duration(distance)
    return f"right as of {_format_interval(last)}, {ago} before {end}{earlier}"


def _format_interval(interval: Interval) -> str:
    """Format an interval without a repeated date: `2026-08-22 17:30:00 to 17:34:59 UTC`."""
    start, end = format_time(interval.from_), format_time(interval.to)
    if start == end:
        return start
    day, _, clock = end.partition(" ")
    is_same_day = start.startswith(day)
    return f"{start.removesuffix(' UTC')} to {clock if is_same_day else end}"
