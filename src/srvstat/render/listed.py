"""The list of servers in the table of a snapshot."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from srvstat.documents.views import ListedServer
from srvstat.render.screen import Screen
from srvstat.render.text import format_count, instant_text

_NOTHING = "–"  # noqa: RUF001 - a dash to read, not to compute with
_LEAST_NAME_WIDTH = 20
_DATE_LENGTH = len("2026-08-22")


def listed_table(servers: Sequence[ListedServer], screen: Screen) -> Table:
    """List servers: a column for each value where that fits, else fewer columns."""
    if screen.width is None:
        return _in_columns(servers, screen, None)
    spare = screen.width - screen.width_of(_in_columns(servers, screen, _LEAST_NAME_WIDTH))
    if spare >= 0:
        return _in_columns(servers, screen, _LEAST_NAME_WIDTH + spare)
    # Without hostnames, which may wrap: that is the least width.
    nameless = [server._replace(hostname="") for server in servers]
    least = screen.width_of(_in_lines(nameless, screen, is_beside=True))
    return _in_lines(servers, screen, is_beside=screen.width >= least)


def _in_columns(servers: Sequence[ListedServer], screen: Screen, name_width: int | None) -> Table:
    table = _table("id", "cfxId", "game", "hostname")
    table.columns[-1].max_width = name_width
    _add_observed_columns(table)
    for server in servers:
        names = (screen.whole(server.id), screen.whole(server.cfx_id))
        table.add_row(*names, server.game, screen.cell(server.hostname), *_observed(server))
    return table


def _in_lines(servers: Sequence[ListedServer], screen: Screen, *, is_beside: bool) -> Table:
    """List servers with their identifiers below the hostname, and the rest beside or below it."""
    table = _table("server")
    if is_beside:
        _add_observed_columns(table)
    for server in servers:
        lines = [screen.cell(server.hostname), _names(server, screen)]
        count, first, last = _observed(server)
        if is_beside:
            table.add_row(Text("\n").join(lines), count, first, last)
        else:
            span = f", {first} to {last}" if server.observations else ""
            lines.append(Text(f"  {format_count(server.observations, 'observation')}{span}"))
            table.add_row(Text("\n").join(lines))
    return table


def _names(server: ListedServer, screen: Screen) -> Text:
    return screen.whole(f"  {server.game}  {server.id}  {server.cfx_id}", "dim")


def _table(*names: str) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def _add_observed_columns(table: Table) -> None:
    table.add_column("observations", justify="right", no_wrap=True)
    for name in ("first seen", "last seen"):
        table.add_column(name, no_wrap=True)


def _observed(server: ListedServer) -> tuple[str, str, str]:
    """Return how many observations a server has, and the days (UTC) of the first and the last."""
    first, last = (
        _NOTHING if at is None else instant_text(at)[:_DATE_LENGTH]
        for at in (server.first_observed_at, server.last_observed_at)
    )
    return f"{server.observations:,}", first, last
