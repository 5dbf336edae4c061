"""Select the servers of an analysis: by reference, or by properties of their records."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from srvstat.contract import wire
from srvstat.contract.requests import ServerReference
from srvstat.operations import resolve_servers
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.reader import SnapshotFile

_SERVERS_PER_READ = 500
"""Servers found with one statement, which SQLite limits."""

_SERVERS_PER_BATCH = 100


@dataclass(frozen=True, slots=True)
class ServerFilter:
    """Properties of a server; None or empty matches all servers.

    `text` is searched, in any case, in id, cfxId, hostname, project, description and tags. A server
    needs all `tags`. `seen_since` is the earliest instant of its last observation.
    """

    text: str | None = None
    game: str | None = None
    region: str | None = None
    tags: tuple[str, ...] = ()
    is_offline: bool | None = None
    seen_since: int | None = None

    def matches(self, server: ServerRow) -> bool:
        """Check whether a server has all properties.

        Raises ValueError or TypeError for a row that no build writes.
        """
        own_tags: Sequence[str] = ()
        if self.tags or self.text is not None:
            own_tags = [tag.casefold() for tag in wire.decode_text(server.tags)]
        return (
            (self.game is None or server.game == self.game)
            and (self.region is None or server.region.casefold() == self.region.casefold())
            and (self.is_offline is None or bool(server.offline) == self.is_offline)
            and (self.seen_since is None or (server.last_observed_at or -1) >= self.seen_since)
            and all(tag.casefold() in own_tags for tag in self.tags)
            and (self.text is None or _contains(server, own_tags, self.text.casefold()))
        )


def find_matches(snapshot: SnapshotFile, wanted: ServerFilter) -> Iterator[ServerRow]:
    """Yield the servers that match a filter, in the order of their ids.

    Raises SnapshotError.
    """
    with snapshot.convert_decode_errors("the servers"):
        for server in snapshot.iter_servers():
            if wanted.matches(server):
                yield server


def find_references(
    snapshot: SnapshotFile, references: Iterable[ServerReference]
) -> list[ServerRow]:
    """Return the servers of references, each once, in the order of their first reference.

    Raises UnknownServerError, NotInBundleError, SnapshotError.
    """
    wanted = list(dict.fromkeys(references))
    found = [
        server
        for start in range(0, len(wanted), _SERVERS_PER_READ)
        for server in resolve_servers(snapshot, wanted[start : start + _SERVERS_PER_READ])
    ]
    return list({server.server: server for server in found}.values())


def iter_batches(snapshot: SnapshotFile, servers: Iterable[ServerRow]) -> Iterator[list[ServerRow]]:
    """Yield servers in batches. Before all but the first, the snapshot forgets what it has read."""
    rest = iter(servers)
    batch = list(islice(rest, _SERVERS_PER_BATCH))
    while batch:
        yield batch
        snapshot.forget_servers()
        batch = list(islice(rest, _SERVERS_PER_BATCH))


def _contains(server: ServerRow, tags: Iterable[str], text: str) -> bool:
    names = (server.id, server.cfx_id, server.hostname, server.project_name)
    texts = (*(name.casefold() for name in names), server.project_description.casefold(), *tags)
    return any(text in one for one in texts)
