"""Ask a snapshot named questions. Whatever an answer reads is proved by its digest first."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from srvstat.contract import wire
from srvstat.contract.instants import LATEST, format_instant
from srvstat.contract.ranges import DAY_MS, Window
from srvstat.contract.requests import Namespace, ServerReference
from srvstat.contract.responses import Players, ServerDetail
from srvstat.snapshot.format.days import DAYS_A_SERVER, observed_in
from srvstat.snapshot.format.rows import Day, ServerRow
from srvstat.snapshot.read.connection import SnapshotConnection, open_connection
from srvstat.snapshot.read.statistics import compute_window_statistics
from srvstat.snapshot.read.verified_rows import OWN_ROW, ProvedRows
from srvstat.stats import Statistics

if TYPE_CHECKING:
    from srvstat.documents.views import ListedServer, SnapshotView

_COLUMN_OF: dict[Namespace, str] = {"id": "id", "cfxId": "cfx_id"}

_MOST_LISTED = 50
"""How many servers a view lists."""


class StoredDetail(NamedTuple):
    """A server's public record, and what surrounds it; instants are Unix milliseconds."""

    server: ServerDetail
    first_seen_at: int
    updated_at: int
    current_is_fallback: bool


class SnapshotFile:
    """An open snapshot. Made by `open_file`; every method may raise SnapshotError.

    The error names the part of the file that is not what was built.
    """

    def __init__(self, connection: SnapshotConnection) -> None:
        self.path = connection.path
        self.connection = connection
        self.rows = ProvedRows(connection)
        with connection.decoding(OWN_ROW):
            self.as_of = _instant(self.rows.own.as_of)

    def close(self) -> None:
        """Close the file; the snapshot can't be asked any more."""
        self.connection.close()

    @property
    def root(self) -> str:
        """The digest of all the content, as 64 hexadecimal digits."""
        return self.rows.own.root.hex()

    def find(self, references: Iterable[ServerReference]) -> list[ServerRow | None]:
        """Return the server that each reference names, compared exactly; None where none does."""
        return self.rows.named([(one.by, one.identifier) for one in references])

    def detail(self, server: ServerRow) -> StoredDetail:
        """Return a server's public record."""
        with self.connection.decoding(server.title):
            return _stored_detail(server)

    def identifiers(
        self, by: Namespace, start: str = "", *, backwards: bool = False
    ) -> Iterator[str]:
        """Yield what may be the identifiers of a namespace; only `find` proves that one is.

        They come in order from `start` on, or backwards from the one before it.
        """
        column = _COLUMN_OF[by]
        reached, order = ("<", "DESC") if backwards else (">=", "ASC")
        rows = self.connection.stream(
            f"SELECT {column} FROM servers WHERE {column} {reached} ? ORDER BY {column} {order}",  # noqa: S608 - a column of ours
            start,
            part="the servers",
        )
        # Pages that point to each other could give rows without end.
        some = islice(rows, self.rows.own.server_count)
        return (name for (name,) in some if isinstance(name, str))

    def statistics(self, servers: Sequence[ServerRow], window: Window) -> list[Statistics]:
        """Return the statistics of some servers in a window, however long, from a few rows."""
        with self.connection.decoding("the days"):
            return compute_window_statistics(self.rows, servers, window)

    def observations(self, server: ServerRow, window: Window) -> tuple[list[int], list[int]]:
        """Return the instants of a server's observations in a window, in order, and the players."""
        days = self.rows.days(server, window.start // DAY_MS, window.end // DAY_MS)
        with self.connection.decoding(f"the days of {server.title}"):
            return observed_in(days, window)

    def last_observed_at(self, server: ServerRow, until: int) -> int | None:
        """Return the instant of a server's last observation up to and including `until`."""
        if server.last_observed_at is None or until >= server.last_observed_at:
            with self.connection.decoding(server.title):
                return _optional_instant(server.last_observed_at)
        # The last day may have observations after `until` only; the one before it never has.
        for _ in range(2):
            (ends,) = self.rows.ends([server], Window(0, until))
            if not ends:
                return None
            start = ends[-1].day * DAY_MS
            instants, _ = self.observations(server, Window(start - 1, until))
            if instants:
                return instants[-1]
            until = start - 1
        raise self.connection.damaged(f"the days of {server.title}")

    def days(self, server: ServerRow) -> Iterator[Day]:
        """Yield all days of a server."""
        yield from self.rows.days(server, 0, DAYS_A_SERVER - 1)

    def view(self, each: "Callable[[ListedServer], object] | None" = None) -> "SnapshotView":
        """Return what is in the file, with its first servers.

        The rows of all servers are read and proved, and `each` is called with them in the order of
        their ids, so that none of them has to stay in memory.
        """
        from srvstat.documents.views import SnapshotView  # noqa: PLC0415 - only for info

        games: Counter[str] = Counter()
        fallbacks = 0
        first: list[ListedServer] = []
        with self.connection.decoding("the servers"):
            for server in self.rows.servers():
                listed = _listed(server)
                games[listed.game] += 1
                fallbacks += server.current_is_fallback
                if len(first) < _MOST_LISTED:
                    first.append(listed)
                if each is not None:
                    each(listed)
        row = self.rows.own
        with self.connection.decoding(OWN_ROW):
            return SnapshotView(
                as_of=self.as_of,
                first_observed_at=_optional_instant(row.first_observed_at),
                last_observed_at=_optional_instant(row.last_observed_at),
                observations=row.observation_count,
                root=self.root,
                server_count=games.total(),
                games=dict(sorted(games.items())),
                servers=tuple(first),
                fallbacks=fallbacks,
                sources=_texts(row.sources),
                repeated=row.repeated,
                conflicting=row.conflicting,
                rejected=row.rejected,
            )


def open_file(path: str) -> SnapshotFile:
    """Open a snapshot for reading.

    Raises SnapshotError, in one line that says what the file is and what to do about it, and that
    holds nothing of the file's content.
    """
    connection = open_connection(path)
    try:
        return SnapshotFile(connection)
    except BaseException:
        connection.close()
        raise


def _instant(value: int) -> int:
    if not 0 <= value <= LATEST:
        raise ValueError("not an instant")
    return value


def _optional_instant(value: int | None) -> int | None:
    return None if value is None else _instant(value)


def _listed(row: ServerRow) -> "ListedServer":
    from srvstat.documents.views import ListedServer  # noqa: PLC0415 - only for info

    return ListedServer(
        id=row.id,
        cfx_id=row.cfx_id,
        game=row.game,
        hostname=row.hostname,
        observations=row.observation_count,
        first_observed_at=_optional_instant(row.first_observed_at),
        last_observed_at=_optional_instant(row.last_observed_at),
    )


def _texts(array: str) -> tuple[str, ...]:
    """Read a JSON array of texts; one that UTF-8 can't write is none of ours."""
    texts = tuple(wire.decode_text(array))
    "".join(texts).encode("utf-8")
    return texts


def _stored_detail(row: ServerRow) -> StoredDetail:
    server = ServerDetail(
        id=row.id,
        game=row.game,
        cfxId=row.cfx_id,
        hostname=row.hostname,
        projectName=row.project_name,
        projectDescription=row.project_description,
        region=row.region,
        players=Players(current=row.players_current, max=row.players_max),
        tags=_texts(row.tags),
        flags=_texts(row.flags),
        chatUrl=row.chat_url,
        iconUrl=row.icon_url,
        offline=bool(row.offline),
        firstSeenAt=format_instant(_instant(row.first_seen_at)),
        updatedAt=format_instant(_instant(row.updated_at)),
    )
    return StoredDetail(server, row.first_seen_at, row.updated_at, bool(row.current_is_fallback))
