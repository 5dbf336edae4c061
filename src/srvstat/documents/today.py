"""The daily summary document."""

from dataclasses import dataclass
from typing import Any, Literal

from srvstat.documents.analysis import EventPart
from srvstat.documents.document import ChangePart, CountsDocument, Instant, Part
from srvstat.documents.rows import Column, RowDocument, Rows


class TotalPart(Part):
    """The total of all servers: the sum of each server's latest count at `as_of`.

    - `players`: None if no server has a recent count. A count is recent until it is three polling
      intervals old. The polling interval is computed from the last ten observations.
    - `present_count`: the number of servers with a recent count, of `server_count`.
    - `same_hour_median`: the median of the totals at the same local time, one to four weeks before;
      None for fewer than two weeks.
    - `week_count`: the number of these weeks that count: at least 80 % of the servers expected then
      were present.
    - `change`: `players` minus the median; None if fewer than 80 % of the servers are present now.
    """

    players: int | None
    present_count: int
    server_count: int
    same_hour_median: float | None
    week_count: int
    change: ChangePart | None


@dataclass(frozen=True, slots=True)
class ChangedServer:
    """A server whose average of the last 7 days differs from its average of the 7 days before."""

    server_id: str
    average_players: float
    change: ChangePart


@dataclass(frozen=True, slots=True)
class PeakPart:
    """The highest total, and when it was first reached."""

    players: int
    at: Instant


_COLUMNS = (
    Column("what", "text"),
    Column("serverId", "text"),
    Column("from", "instant"),
    Column("to", "instant"),
    Column("players", "number"),
    Column("expected", "number"),
    Column("changePlayers", "number"),
)


class Today(CountsDocument, RowDocument):
    """A summary of all servers.

    - `yesterday`: the start of the local day before `as_of`.
    - `silent`: the servers without an observation in the last day, the most recently seen first.
    - `changed`: at most 5 servers with the largest changes, if observations cover 80 % of both
      weeks.
    - `yesterday_peak`: None if yesterday has no observation, or if a bundle does not cover it.
    - `events`: the gaps and zeros of other servers that ended since `yesterday`, by the rules of
      the document `events` for the last 90 days.
    """

    document: Literal["today"] = "today"
    time_zone: str
    yesterday: Instant
    total: TotalPart
    silent: tuple[str, ...]
    changed: tuple[ChangedServer, ...]
    yesterday_peak: PeakPart | None
    events: tuple[EventPart, ...]

    def to_rows(self) -> Rows:
        """Return a row for each line of the summary: the totals, the servers and the events."""
        total, peak = self.total, self.yesterday_peak
        change = total.change and total.change.players
        rows: list[tuple[Any, ...]] = [
            ("total", None, None, self.as_of, total.players, total.same_hour_median, change)
        ]
        if peak:
            rows.append(("yesterdayPeak", None, None, peak.at, peak.players, None, None))
        rows += (("silent", one, *[None] * 5) for one in self.silent)
        for one in self.changed:
            changed = one.server_id, None, None, one.average_players, None, one.change.players
            rows.append(("changed", *changed))
        rows += (
            (one.kind, one.server_id, one.from_, one.to, one.seen, one.expected, None)
            for one in self.events
        )
        return Rows(_COLUMNS, rows)
