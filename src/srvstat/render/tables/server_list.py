"""The list of servers in the table of a snapshot."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from srvstat.documents.snapshot_info import ListedServer
from srvstat.render.fields import NOTHING
from srvstat.render.screen import Screen
from srvstat.render.text import format_count, format_date

_MIN_NAME_WIDTH = 20


def build_server_list(servers: Sequence[ListedServer], screen: Screen) -> Table:
    """List servers with a column for each value, or with fewer columns where these do not fit."""
    if screen.width is None:
        return _build_wide(servers, screen, None)
    spare = screen.width - screen.measure(_build_wide(servers, screen, _MIN_NAME_WIDTH))
    if spare >= 0:
        return _build_wide(servers, screen, _MIN_NAME_WIDTH + spare)
    # Measured without hostnames, since these may wrap.
    nameless = [server.model_copy(update={"hostname": ""}) for server in servers]
    least = screen.measure(_build_narrow(nameless, screen, is_beside=True))
    return _build_narrow(servers, screen, is_beside=screen.width >= least)


def _build_wide(servers: Sequence[ListedServer], screen: Screen, name_width: int | None) -> Table:
    table = _start_table("id", "cfxId", "game", "hostname")
    table.columns[-1].max_width = name_width
    _add_observed_columns(table)
    for server in servers:
        names = (screen.escape(server.id), screen.escape(server.cfx_id))
        observed = _format_observed(server)
        table.add_row(*names, server.game, screen.escape_cell(server.hostname), *observed)
    return table


def _build_narrow(servers: Sequence[ListedServer], screen: Screen, *, is_beside: bool) -> Table:
    """List servers with identifiers below the hostname, and the rest beside or below it."""
    table = _start_table("server")
    if is_beside:
        _add_observed_columns(table)
    for server in servers:
        lines = [screen.escape_cell(server.hostname), _show_names(server, screen)]
        count, first, last = _format_observed(server)
        if is_beside:
            table.add_row(Text("\n").join(lines), count, first, last)
        else:
            span = f", {first} to {last}" if server.observations else ""
            lines.append(Text(f"  {format_count(server.observations, 'observation')}{span}"))
            table.add_row(Text("\n").join(lines))
    return table


def _show_names(server: ListedServer, screen: Screen) -> Text:
    return screen.escape(f"  {server.game}  {server.id}  {server.cfx_id}", "dim")


def _start_table(*names: str) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def _add_observed_columns(table: Table) -> None:
    table.add_column("observations", justify="right", no_wrap=True)
    for name in ("first seen", "last seen"):
        table.add_column(name, no_wrap=True)


def _format_observed(server: ListedServer) -> tuple[str, str, str]:
    """Return the number of observations, and the days (UTC) of the first and the last."""
    first, last = (
        NOTHING if at is None else format_date(at)
        for at in (server.first_observed_at, server.last_observed_at)
    )
    return f"{server.observations:,}", first, last
