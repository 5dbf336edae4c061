"""Answers as tables: one function an answer. Figures are rounded for reading; JSON is exact."""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import ceil

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from srvstat.contract.responses import GrowthFields, ServerResult
from srvstat.contract.views import (
    AccessView,
    ComparisonView,
    PlanView,
    ServerDetailView,
    ServerView,
    SnapshotView,
    Verification,
)
from srvstat.render.screen import Screen
from srvstat.render.text import count_of, duration, exact_duration, instant_text

_NOTHING = "–"  # noqa: RUF001 - a dash to read, not to compute with
_MARKS = "▁▂▃▄▅▆▇█"
_LEAST_NAME_WIDTH = 20
_LEAST_VALUE_WIDTH = 20
_MOST_LISTED = 50
_STAND_IN = "the last observation, or 0 without one"

_Fields = Sequence[tuple[str, str | Text] | None]


def comparison(view: ComparisonView, screen: Screen) -> str:
    """Show a comparison: a row a server where that fits, else a block a server."""
    width = max(_natural_name_width(server, screen) for server in view.servers)
    if screen.width is not None:
        longest = max(len(name) for server in view.servers for name in _identifiers(server))
        least = max(longest, _LEAST_NAME_WIDTH)
        spare = screen.width - screen.width_of(_comparison_table(view, screen, least))
        if spare < 0:
            return screen.text(*_blocks(view, screen), _notes(view, screen))
        width = min(width, least + spare)
    return screen.text(_comparison_table(view, screen, width), Text(), _notes(view, screen))


def _comparison_table(view: ComparisonView, screen: Screen, name_width: int) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    table.add_column("server", width=name_width)
    for name in _row(view.servers[0].result):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column(view.response.range, no_wrap=True)
    for server in view.servers:
        table.add_row(
            _name(server, screen, name_width),
            *_row(server.result).values(),
            _sparkline(server.averages),
        )
    return table


def _blocks(view: ComparisonView, screen: Screen) -> Iterator[RenderableType]:
    figures = [
        [f"{name} {value}" for name, value in _figures(server.result).items()]
        for server in view.servers
    ]
    # Columns as wide as in the widest block, so that figures stand below one another.
    widths = [max(len(row[at]) for row in figures) for at in range(len(figures[0]))]
    columns = list(map(max, widths[:3], widths[3:]))
    if sum(columns) + 2 * len(columns) > (screen.width or 0):
        columns = [0]
    for server, row in zip(view.servers, figures, strict=True):
        grid = Table.grid(padding=(0, 2, 0, 0))
        for width in columns:
            grid.add_column(min_width=width, overflow="fold")
        for start in range(0, len(row), len(columns)):
            grid.add_row(*row[start : start + len(columns)])
        yield _name(server, screen, screen.width or 0)
        yield grid
        yield Text.assemble(("growth ", "dim"), _growth(server.result.growth))
        yield Text.assemble((f"{view.response.range} ", "dim"), _sparkline(server.averages))
        yield Text()


def _identifiers(server: ServerView) -> tuple[str, str]:
    return f"id {server.result.serverId}", f"cfxId {server.result.cfxId}"


def _natural_name_width(server: ServerView, screen: Screen) -> int:
    return max(cell_len(screen.cell(server.hostname).plain), len("  ".join(_identifiers(server))))


def _name(server: ServerView, screen: Screen, width: int) -> Text:
    identifiers = _identifiers(server)
    on_one_line = "  ".join(identifiers)
    lines = [on_one_line] if len(on_one_line) <= width else identifiers
    name = screen.cell(server.hostname, "bold")
    return Text("\n", overflow="fold").join([name, *(screen.whole(line, "dim") for line in lines)])


def _figures(result: ServerResult) -> dict[str, str]:
    return {
        "current": f"{result.currentPlayers:,}",
        "average": _rounded(result.averagePlayers, 2),
        "median": _rounded(result.medianPlayers, 1),
        "peak": _whole(result.peakPlayers),
        "lowest": _whole(result.lowestPlayers),
        "samples": f"{result.sampleCount:,}",
    }


def _row(result: ServerResult) -> dict[str, str | Text]:
    figures = _figures(result)
    samples = figures.pop("samples")
    return {**figures, "growth": _growth(result.growth), "samples": samples}


def _rounded(value: float | None, digits: int) -> str:
    if value is None:
        return _NOTHING
    text = f"{value:,.{digits}f}"
    return text.removesuffix(".0") if digits == 1 else text


def _whole(value: int | None) -> str:
    return _NOTHING if value is None else f"{value:,}"


def _growth(growth: GrowthFields) -> Text:
    if growth.players is None:
        return Text(_NOTHING)
    percent = "from 0" if growth.percentage is None else f"{growth.percentage:+,.1f}%"
    if not growth.players:
        return Text(f"0 ({percent.lstrip('+')})")
    style = "green" if growth.players > 0 else "red"
    return Text(f"{growth.players:+,} ({percent})", style)


def _sparkline(averages: Sequence[float | None]) -> str:
    """Draw averages from 0 to the highest of them, with blanks where nothing was observed."""
    top = max((average for average in averages if average is not None), default=0) or 1
    marks = (
        # Rounded up, so that only a zero gets the lowest mark.
        " " if average is None else _MARKS[ceil(average / top * (len(_MARKS) - 1))]
        for average in averages
    )
    return f"│{''.join(marks)}│"


def _notes(view: ComparisonView, screen: Screen) -> Table:
    start, end = map(instant_text, view.window)
    snapshot = instant_text(view.snapshot_as_of)
    own = view.window.end == view.snapshot_as_of
    return _grid(
        [
            ("window", f"after {start}, up to and including {end}"),
            ("as of", f"{end}" + ("" if own else f"; the snapshot's own is {snapshot}")),
            ("observed", _coverage(view)),
            (
                view.response.range,
                (
                    f"each mark is the average of {exact_duration(view.cell_ms)}, from 0 to the"
                    " row's highest; blank where nothing was observed"
                ),
            ),
        ],
        screen,
    )


def _coverage(view: ComparisonView) -> str:
    unit = "hours" if view.response.range == "24h" else "days"
    observed = [server.observed_spans for server in view.servers]
    if len(set(observed)) == 1:
        return f"on {observed[0]} of {view.span_count} {unit}, each server"
    each = (f"{server.result.serverId} {server.observed_spans}" for server in view.servers)
    return f"of {view.span_count} {unit}: {', '.join(each)}"


def server_detail(view: ServerDetailView, screen: Screen) -> str:
    """Show every field of a server, in groups."""
    server = view.server
    stand_in = f" (stand-in: {_STAND_IN})" if view.current_is_stand_in else ""
    fields: _Fields = [
        ("id", screen.whole(server.id)),
        ("cfxId", screen.whole(server.cfxId)),
        ("game", server.game),
        None,
        ("projectName", screen.whole(server.projectName)),
        ("projectDescription", screen.whole(server.projectDescription)),
        ("region", screen.whole(server.region)),
        ("tags", screen.whole(", ".join(server.tags))),
        ("flags", screen.whole(" ".join(server.flags))),
        ("chatUrl", screen.whole(server.chatUrl)),
        ("iconUrl", screen.whole(server.iconUrl or "")),
        None,
        ("players", f"{server.players.current:,} of {server.players.max:,}{stand_in}"),
        ("offline", "yes" if server.offline else "no"),
        None,
        ("firstSeenAt", _moment(view.first_seen_at, view.snapshot_as_of)),
        ("updatedAt", _moment(view.updated_at, view.snapshot_as_of)),
    ]
    return screen.text(screen.whole(server.hostname, "bold"), _grid(fields, screen))


def _moment(at: int, as_of: int) -> str:
    if at == as_of:
        return f"{instant_text(at)} (the snapshot's own as_of)"
    side = "before" if at < as_of else "after"
    return f"{instant_text(at)} ({duration(abs(as_of - at))} {side} the snapshot)"


def snapshot_info(view: SnapshotView, screen: Screen) -> str:
    """Show what is in a snapshot, and whom it can be asked about."""
    games = Counter(server.game for server in view.servers)
    per_game = ", ".join(f"{game} {count:,}" for game, count in sorted(games.items()))
    first, last = (
        instant_text(at) if at is not None else None
        for at in (view.first_observed_at, view.last_observed_at)
    )
    not_kept = (
        f"{view.repeated:,} repeated, {view.conflicting:,} conflicting, {view.rejected:,} rejected"
    )
    fields: _Fields = [
        ("as of", instant_text(view.as_of)),
        ("root", view.root),
        ("observed", f"{first} to {last}" if first else "nothing"),
        ("observations", f"{view.observations:,}"),
        ("servers", f"{len(view.servers):,}" + (f" ({per_game})" if per_game else "")),
        ("stand-ins", f"{count_of(view.stand_ins, 'current count')}: {_STAND_IN}"),
        ("sources", screen.whole(", ".join(view.sources))),
        ("not kept", not_kept),
    ]
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for name in ("id", "cfxId", "game", "hostname"):
        table.add_column(name, overflow="fold")
    for server in view.servers[:_MOST_LISTED]:
        names = (screen.whole(server.id), screen.whole(server.cfx_id))
        table.add_row(*names, server.game, screen.cell(server.hostname))
    more = len(view.servers) - _MOST_LISTED
    rest = [Text(f"and {count_of(more, 'more server')}; --json names them all")] if more > 0 else []
    return screen.text(_grid(fields, screen), Text(), table, *rest)


def verification(view: Verification, screen: Screen) -> str:
    """Show what was found of a snapshot that is sound."""
    fields: _Fields = [
        ("sound", "every row is what was built, and what is derived follows from the observations"),
        ("root", view.root),
        ("as of", instant_text(view.as_of)),
        ("servers", f"{view.servers:,}"),
        ("observations", f"{view.observations:,}"),
        ("days", f"{view.days:,}, each of one server"),
    ]
    return screen.text(_grid(fields, screen))


def access(view: AccessView, screen: Screen) -> str:
    """Show what each plan may do: a row a plan where that fits, else a block a plan."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for name in ("plan", "operations", "ranges", "raw history", "requests", "keys"):
        table.add_column(name, justify="right" if name == "keys" else "left", no_wrap=True)
    for plan in view.plans:
        table.add_row(plan.name, *(value or _NOTHING for value in _permissions(plan).values()))
    if screen.width is None or screen.width >= screen.width_of(table):
        return screen.text(table)
    blocks = [part for plan in view.plans for part in _plan_block(plan, screen)]
    return screen.text(*blocks[:-1])


def _plan_block(plan: PlanView, screen: Screen) -> tuple[RenderableType, ...]:
    return screen.whole(plan.name, "bold"), _grid([*_permissions(plan).items()], screen), Text()


def _permissions(plan: PlanView) -> dict[str, str]:
    limit = plan.requests_per_minute
    return {
        "operations": ", ".join(plan.operations),
        "ranges": ", ".join(plan.ranges),
        "raw history": count_of(plan.raw_history_days, "day"),
        "requests": "no limit" if limit is None else f"{limit:,} a minute",
        "keys": f"{plan.keys:,}",
    }


def _grid(fields: _Fields, screen: Screen) -> Table:
    """Lay out names and values, side by side where that fits; None leaves a line free."""
    widest = max(len(entry[0]) for entry in fields if entry is not None)
    fits = screen.width is None or screen.width >= widest + 2 + _LEAST_VALUE_WIDTH
    grid = Table.grid(padding=(0, 2, 0, 0) if fits else 0)
    if fits:
        grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for entry in fields:
        if entry is None:
            grid.add_row()
            continue
        name, value = entry
        shown = Text(value, overflow="fold") if isinstance(value, str) else value
        cells = (Text(name, "dim"), shown if shown.plain else Text(_NOTHING, "dim"))
        for row in [cells] if fits else [cells[:1], cells[1:]]:
            grid.add_row(*row)
    return grid
