"""Render the daily summary as a table of at most 24 lines, and as Markdown for chats."""

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from zoneinfo import ZoneInfo

from srvstat.documents.rows import escape_markdown
from srvstat.documents.today import Today
from srvstat.render import figures, text
from srvstat.render.screen import Screen, build_fields_grid, render_table
from srvstat.render.tables.events import describe_event

_MOST_SILENT = 3
_MOST_EVENTS = 3
_ID_WIDTH = 36
"""Enough for a UUID. A longer id would make a line fold."""


@render_table.register
def render_today(document: Today, screen: Screen) -> str:
    """Render the summary. Its lists show their first few items."""
    fields = [(name, screen.escape(value)) for name, value in _iter_fields(document, screen)]
    return screen.render(build_fields_grid(fields, screen))


def render_markdown(document: Today) -> str:
    """Return the summary as a Markdown list, because chats such as Discord show no tables."""
    lines = []
    for name, value in _iter_fields(document, Screen()):
        shown = escape_markdown(" ".join(value.split()))
        lines.append(f"- **{name}** {shown}\n" if name else f"  - {shown}\n")
    return "".join(lines)


def _iter_fields(document: Today, screen: Screen) -> Iterator[tuple[str, str]]:
    """Yield names and values. An item without a name continues the list above it."""
    total, zone, peak = document.total, ZoneInfo(document.time_zone), document.yesterday_peak
    yield "as of", text.format_zoned_time(document.as_of, zone, "minutes")
    of_all = f"{total.present_count:,} of {text.format_count(total.server_count, 'server')}"
    yield "players", f"{text.format_whole(total.players)} now, on {of_all}"
    yield "this hour", _describe_usual(document)
    if peak is None:
        yield "yesterday", text.NOTHING
    else:
        clock = text.format_clock(peak.at, zone, "minutes")[len("2026-01-31 ") :]
        yield "yesterday", f"peak {peak.players:,} at {clock}"
    yield "silent", _join_ids(document.silent, screen)
    yield from _list_changes(document, screen)
    yield from _list_events(document, screen)
    if document.hold:
        yield "held", figures.HELD


def _describe_usual(document: Today) -> str:
    total = document.total
    if total.same_hour_median is None:
        return f"{text.NOTHING} needs data from at least 2 of the previous 4 weeks"
    players = text.format_median(total.same_hour_median)
    usual = f"usually {players} (median of {total.week_count} weeks)"
    if total.change is None:
        return f"{usual}; too few servers are observed now"
    return f"{usual}: {' '.join(figures.format_change(total.change, total.players))}"


def _join_ids(ids: Sequence[str], screen: Screen) -> str:
    if not ids:
        return "none"
    shown = ", ".join(_cut_id(one, screen) for one in ids[:_MOST_SILENT])
    more = len(ids) - _MOST_SILENT
    return f"{len(ids):,}: {shown}" + (f" and {more:,} more" if more > 0 else "")


def _list_changes(document: Today, screen: Screen) -> Iterator[tuple[str, str]]:
    changed = document.changed
    if not changed:
        yield "changes", "none among servers with 80% of both weeks observed"
        return
    yield "changes", "average of the last 7 days, compared with the 7 days before:"
    names = [_cut_id(one.server_id, screen) for one in changed]
    changes = figures.align_changes((one.change, one.average_players) for one in changed)
    for name, change in zip(names, changes, strict=True):
        yield "", f"{name.ljust(max(map(len, names)))}  {change.plain}"


def _list_events(document: Today, screen: Screen) -> Iterator[tuple[str, str]]:
    """Yield the newest events, with one line for servers that share an event."""
    events, zone = document.events, ZoneInfo(document.time_zone)
    count = text.format_count(len(events), "gap or empty period", "gaps and empty periods")
    since = text.format_clock(document.yesterday, zone)[: len("2026-01-31")]
    yield "events", f"{count if events else 'no gaps or empty periods'} since {since}"
    shown = 0
    groups = groupby(events, key=lambda one: (one.from_, one.to, one.kind, one.expected))
    for _, group in islice(groups, _MOST_EVENTS):
        first, *others = group
        shown += 1 + len(others)
        begin = text.format_clock(first.from_, zone, "minutes")[len("2026-") :]
        length = text.format_interval(first.seconds)
        name = _cut_id(first.server_id or "", screen)
        more = f" and {len(others):,} more" if others else ""
        yield "", f"{begin}, {length}, {name}{more}: {describe_event(first)}"
    if shown < len(events):
        yield "", f"and {len(events) - shown:,} more; see srvstat events"


def _cut_id(server_id: str, screen: Screen) -> str:
    return screen.truncate(screen.escape(server_id), _ID_WIDTH).plain
