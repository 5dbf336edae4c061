"""The table of the differences between two snapshots: a summary, then the first of each list."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from srvstat.documents.support import ChangedAnswer, ChangedServer, Difference, SnapshotDiff
from srvstat.render.fields import Fields, build_fields_grid
from srvstat.render.screen import Screen
from srvstat.render.text import NOTHING, format_count, format_time

_MAX_ROWS = 20
_MAX_SPANS = 6
_ROOT_DIGITS = 12
_MIN_DIGITS, _MAX_DIGITS = 2, 17
_ONE_DAY = timedelta(days=1)


def render_snapshot_diff(diff: SnapshotDiff, screen: Screen) -> str:
    """Render the counts of the differences, the two snapshots, and the first of each list."""
    parts: list[RenderableType] = [
        Text(_summarize(diff), "bold"),
        Text(),
        build_fields_grid(_list_fields(diff, screen), screen),
    ]
    answers = [answer for answer in diff.answers if _select_values(answer)]
    if diff.servers.changed:
        parts += [Text(), _build_server_table(diff.servers.changed[:_MAX_ROWS], screen)]
        parts += _build_rest(len(diff.servers.changed), "changed server")
    if answers:
        parts += [Text(), _build_answer_table(answers[:_MAX_ROWS], screen)]
        parts += _build_rest(len(answers), "answer")
    return screen.render(*parts)


def _summarize(diff: SnapshotDiff) -> str:
    servers = diff.servers
    if diff.is_empty:
        return "no difference"
    values = sum(1 for answer in diff.answers if _select_values(answer))
    current = len(diff.answers) - values
    text = (
        f"{format_count(len(servers.changed), 'server')} changed, {len(servers.added):,} added,"
        f" {len(servers.removed):,} removed;"
        f" {format_count(values, 'answer changes', 'answers change')}"
    )
    return text + (f", {current:,} more only in currentPlayers" if current else "")


def _list_fields(diff: SnapshotDiff, screen: Screen) -> Fields:
    fields: list[tuple[str, str | Text] | None] = [
        ("old", f"as of {format_time(diff.old_as_of)}, root {diff.old_root[:_ROOT_DIGITS]}"),
        ("new", f"as of {format_time(diff.new_as_of)}, root {diff.root[:_ROOT_DIGITS]}"),
        ("answers", f"as of {format_time(diff.as_of)}"),
    ]
    if diff.compared_from is not None:
        start = format_time(diff.compared_from)
        fields.append(("compared", f"servers in both, from {start} on: a bundle lacks the rest"))
    for name, ids in (("added", diff.servers.added), ("removed", diff.servers.removed)):
        if ids:
            more = len(ids) - _MAX_ROWS
            rest = f" and {more:,} more" if more > 0 else ""
            fields.append((name, screen.escape(", ".join(ids[:_MAX_ROWS]) + rest)))
    return fields


def _build_rest(count: int, noun: str) -> list[RenderableType]:
    more = count - _MAX_ROWS
    return [Text(f"and {format_count(more, f'more {noun}')}; --json lists all")] if more > 0 else []


def _build_server_table(servers: Sequence[ChangedServer], screen: Screen) -> Table:
    table = _start_table("changed server", "fields", "days")
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


def _build_answer_table(answers: Sequence[ChangedAnswer], screen: Screen) -> Table:
    table = _start_table("answer", "range", "old and new values")
    previous = None
    for answer in answers:
        name = screen.escape("" if answer.server_id == previous else answer.server_id)
        changes = "; ".join(_format_change(one, screen) for one in _select_values(answer))
        table.add_row(name, answer.range, screen.escape(changes))
        previous = answer.server_id
    return table


def _start_table(*names: str) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def _select_values(answer: ChangedAnswer) -> list[Difference]:
    """Return the differences of an answer except for the current player count."""
    return [difference for difference in answer.differences if difference.class_ == "value"]


def _format_change(difference: Difference, screen: Screen) -> str:
    old, new = _format_pair(difference.recorded, difference.recomputed)
    arrow = "->" if screen.ascii_only else "→"
    return f"{difference.pointer[1:].replace('/', '.')} {old} {arrow} {new}"


def _format_pair(old: Any, new: Any) -> tuple[str, str]:
    """Return two values as text, with as many digits as they need to differ."""
    digits = _MIN_DIGITS
    texts = _format_value(old, digits), _format_value(new, digits)
    while texts[0] == texts[1] and digits < _MAX_DIGITS:
        digits += 1
        texts = _format_value(old, digits), _format_value(new, digits)
    return texts


def _format_value(value: Any, digits: int) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, float):
        return f"{value:,.{digits}f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
