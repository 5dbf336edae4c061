"""Answers as tables: one function an answer. Figures are rounded for reading; JSON is exact."""

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from srvstat.documents.views import (
    AccessView,
    PlanView,
    ServerDetailView,
    SnapshotView,
    Verification,
)
from srvstat.render.fields import NOTHING, Fields, fields_grid
from srvstat.render.listed import listed_table
from srvstat.render.screen import Screen
from srvstat.render.text import duration, format_count, instant_text

_FALLBACK = "the last observation, or 0 without one"


def server_detail(view: ServerDetailView, screen: Screen) -> str:
    """Show every field of a server, in groups."""
    server = view.server
    fallback = f" (fallback: {_FALLBACK})" if view.current_is_fallback else ""
    # --at moves the last observation; the record is the snapshot's whatever is asked.
    is_snapshots = view.as_of == view.snapshot_as_of
    own = "" if is_snapshots else ", as of the snapshot"
    fields: Fields = [
        ("id", screen.whole(server.id)),
        ("cfxId", screen.whole(server.cfxId)),
        ("game", server.game),
        None,
        ("projectName", screen.whole(server.projectName)),
        ("projectDescription", screen.lines(server.projectDescription)),
        ("region", screen.whole(server.region)),
        ("tags", screen.whole(", ".join(server.tags))),
        ("flags", screen.whole(" ".join(server.flags))),
        ("chatUrl", screen.whole(server.chatUrl)),
        ("iconUrl", screen.whole(server.iconUrl or "")),
        None,
        ("players", f"{server.players.current:,} of {server.players.max:,}{own}{fallback}"),
        ("offline", "yes" if server.offline else "no"),
        None,
        ("firstSeenAt", _moment(view.first_seen_at, view.snapshot_as_of)),
        ("updatedAt", _moment(view.updated_at, view.snapshot_as_of)),
        *([] if is_snapshots else [("as of", instant_text(view.as_of))]),
        ("last seen", _last_seen(view)),
    ]
    return screen.text(screen.whole(server.hostname, "bold"), fields_grid(fields, screen))


def _last_seen(view: ServerDetailView) -> str:
    at = view.last_observed_at
    if at is None:
        return "never"
    if view.as_of == view.snapshot_as_of:
        return _moment(at, view.snapshot_as_of)
    before = f" ({duration(view.as_of - at)} before as of)" if at != view.as_of else ""
    return f"{instant_text(at)}{before}"


def _moment(at: int, as_of: int) -> str:
    if at == as_of:
        return f"{instant_text(at)} (the snapshot's own as_of)"
    side = "before" if at < as_of else "after"
    return f"{instant_text(at)} ({duration(abs(as_of - at))} {side} the snapshot)"


def snapshot_info(view: SnapshotView, screen: Screen) -> str:
    """Show what is in a snapshot, and the first of its servers."""
    per_game = ", ".join(f"{game} {count:,}" for game, count in view.games.items())
    first, last = (
        instant_text(at) if at is not None else None
        for at in (view.first_observed_at, view.last_observed_at)
    )
    not_kept = (
        f"{view.repeated:,} repeated, {view.conflicting:,} conflicting, {view.rejected:,} rejected"
    )
    fields: Fields = [
        ("as of", instant_text(view.as_of)),
        ("root", view.root),
        ("observed", f"{first} to {last}" if first else "nothing"),
        ("observations", f"{view.observations:,}"),
        ("servers", f"{view.server_count:,}" + (f" ({per_game})" if per_game else "")),
        ("fallbacks", f"{format_count(view.fallbacks, 'current count')}: {_FALLBACK}"),
        ("sources", screen.whole(", ".join(view.sources))),
        ("not kept", not_kept),
    ]
    more = view.server_count - len(view.servers)
    rest = (
        [Text(f"and {format_count(more, 'more server')}; --json names them all")]
        if more > 0
        else []
    )
    return screen.text(
        fields_grid(fields, screen), Text(), listed_table(view.servers, screen), *rest
    )


def verification(view: Verification, screen: Screen) -> str:
    """Show what was found of a snapshot that is sound."""
    fields: Fields = [
        ("sound", "every row is what was built, and what is derived follows from the observations"),
        ("root", view.root),
        ("as of", instant_text(view.as_of)),
        ("servers", f"{view.servers:,}"),
        ("observations", f"{view.observations:,}"),
        ("days", f"{view.days:,}, each of one server"),
    ]
    return screen.text(fields_grid(fields, screen))


def access(view: AccessView, screen: Screen) -> str:
    """Show what each plan may do: a row a plan where that fits, else a block a plan."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for name in ("plan", "operations", "ranges", "raw history", "requests", "keys"):
        table.add_column(name, justify="right" if name == "keys" else "left", no_wrap=True)
    for plan in view.plans:
        table.add_row(plan.name, *(value or NOTHING for value in _permissions(plan).values()))
    if screen.width is None or screen.width >= screen.width_of(table):
        return screen.text(table)
    blocks = [part for plan in view.plans for part in _plan_block(plan, screen)]
    return screen.text(*blocks[:-1])


def _plan_block(plan: PlanView, screen: Screen) -> tuple[RenderableType, ...]:
    return (
        screen.whole(plan.name, "bold"),
        fields_grid([*_permissions(plan).items()], screen),
        Text(),
    )


def _permissions(plan: PlanView) -> dict[str, str]:
    limit = plan.requests_per_minute
    return {
        "operations": ", ".join(plan.operations),
        "ranges": ", ".join(plan.ranges),
        "raw history": format_count(plan.raw_history_days, "day"),
        "requests": "no limit" if limit is None else f"{limit:,} a minute",
        "keys": f"{plan.keys:,}",
    }
