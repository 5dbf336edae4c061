"""The table of events: one line per event, or per group of equal events on several servers."""

from itertools import groupby, islice
from zoneinfo import ZoneInfo

from rich.text import Text

from srvstat.documents.analysis import EventPart, Events
from srvstat.render import figures, layout, text
from srvstat.render.screen import Screen, render_table, start_table

_MAX_LINES = 30

_TEMPLATES = {
    "gap": "no data",
    "zeros": "no players (usually {0})",
    "unusualDay": "unusual day: expected {0}, observed {1}",
    "stepChange": "new level: {0} before, {1} after",
    "belowUsual": "below usual: expected {0}, observed {1}",
}


@render_table.register
def render_events(document: Events, screen: Screen) -> str:
    """Render the newest events, followed by notes."""
    zone = ZoneInfo(document.time_zone)
    title = layout.build_title(figures.format_title_window(document.window, zone))
    events = document.events
    if not events:
        return screen.render(title, Text("no events"), *layout.build_footer([], screen))
    table = start_table("start", "duration", "server", "event")
    for column in table.columns[:2]:
        column.no_wrap = True
    shown = 0
    groups = groupby(events, key=lambda one: (one.from_, one.to, one.kind, one.expected, one.seen))
    for _, group in islice(groups, _MAX_LINES):
        first, *others = group
        shown += 1 + len(others)
        name = screen.escape(text.format_id(first.server_id))
        if others:
            name.append(f" and {len(others):,} more")
        table.add_row(
            text.format_clock(first.from_, zone, "minutes"),
            text.format_interval(first.seconds),
            name,
            describe_event(first),
        )
    rest = layout.build_rest(len(events) - shown, "more event")
    return screen.render(title, table, *rest, *layout.build_footer([], screen))


def describe_event(event: EventPart) -> str:
    """Describe an event, such as `no observation`."""
    counts = map(text.format_median, (event.expected, event.seen))
    return _TEMPLATES[event.kind].format(*counts)
