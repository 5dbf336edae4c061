"""Apply all rules to the player counts of servers."""

from collections.abc import Callable, Iterable, Sequence
from zoneinfo import ZoneInfo

from srvstat.analysis.integrity.daily_cycle import check_daily_cycle
from srvstat.analysis.integrity.flat_line import check_flat_line
from srvstat.analysis.integrity.floor import check_floor
from srvstat.analysis.integrity.gaps import check_gaps
from srvstat.analysis.integrity.jitter import check_jitter
from srvstat.analysis.integrity.maximum import check_maximum
from srvstat.analysis.integrity.missing_values import check_missing_values
from srvstat.analysis.integrity.series import Series
from srvstat.analysis.integrity.step_change import check_step_change
from srvstat.contract.ranges import BEFORE_ALL, Window
from srvstat.documents.document import WindowPart
from srvstat.documents.integrity import AnyRule, Integrity, ServerIntegrity
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.snapshot import Snapshot

DEFAULT_RANGE = "90d"
"""The window of an integrity check unless it is given: most rules need weeks."""

Rule = Callable[[Series], AnyRule]

RULES: Sequence[Rule] = (
    check_flat_line,
    check_floor,
    check_jitter,
    check_missing_values,
    check_step_change,
    check_daily_cycle,
    check_maximum,
    check_gaps,
)
"""All rules, in the order of the document."""


def check_integrity(
    snapshot: Snapshot, servers: Iterable[ServerRow], window: Window, zone: ZoneInfo
) -> Integrity:
    """Return the results of all rules for servers, in their order.

    Reads the observations of one server at a time. `zone` defines the hours of the day.

    Raises SnapshotError.
    """
    return Integrity(
        as_of=snapshot.as_of,
        root=snapshot.root,
        window=WindowPart(
            from_=None if window.start == BEFORE_ALL else window.start, to=window.end
        ),
        time_zone=zone.key,
        servers=tuple(_check_server(snapshot, server, window, zone) for server in servers),
    )


def check_series(series: Series) -> tuple[AnyRule, ...]:
    """Return the results of all rules for one server."""
    return tuple(rule(series) for rule in RULES)


def _check_server(
    snapshot: Snapshot, server: ServerRow, window: Window, zone: ZoneInfo
) -> ServerIntegrity:
    # A window may end after the snapshot. The time between is no gap.
    known = Window(window.start, min(window.end, snapshot.as_of))
    instants, players = snapshot.read_observations(server, known)
    return ServerIntegrity(
        server_id=server.id,
        cfx_id=server.cfx_id,
        hostname=server.hostname,
        rules=check_series(Series(instants, players, known, zone, server.players_max)),
    )
