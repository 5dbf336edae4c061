"""Questions about a fleet, asked of a snapshot from Python."""

import csv
from pathlib import Path

import srvstat


def rank_by_peak(
    snapshot: srvstat.Snapshot, *, range: str = "30d"
) -> list[tuple[str | None, int | None]]:
    """Return the three servers with the highest peak in the last days, with their peaks."""
    top = snapshot.top(by="peak", limit=3, range=range)
    return [(server.server_id, server.peak_players) for server in top.servers]


def list_weeks(snapshot: srvstat.Snapshot, identifier: str, *, end: str) -> list[float | None]:
    """Return the average players in the week before `end`, and in the week before that."""
    (server,) = snapshot.stats([identifier], range="7d", end=end, versus="previous").servers
    assert server.previous
    return [server.average_players, server.previous.average_players]


def write_total(snapshot: srvstat.Snapshot, path: Path) -> None:
    """Write the players of all servers together, hour by hour, to a CSV file.

    Rows are read while they are written, so years of history need little memory. Their instants are
    in Unix milliseconds. Any document has `to_arrow` and `to_pandas`, too.
    """
    history = snapshot.history(range="7d", step="1h", sum=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(column.name for column in history.columns)
        writer.writerows(history)
