"""The differences between two snapshots."""

from typing import Literal

from srvstat.documents.document import Instant, Part, SnapshotDocument
from srvstat.documents.replay import Difference


class ChangedServer(Part):
    """A server in both snapshots whose record or observations differ.

    `fields` are the names of the API's fields, such as `players.max`. `days` are UTC dates whose
    observations differ.
    """

    server_id: str
    fields: tuple[str, ...]
    days: tuple[str, ...]


class ServerChanges(Part):
    """The ids of added and removed servers, and the changed ones, each ordered by id."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[ChangedServer, ...]


class ChangedAnswer(Part):
    """A result of Compare Servers that differs; its pointers begin at the server's result.

    In each difference, `recorded` is the value of the old snapshot, `recomputed` of the new one.
    """

    server_id: str
    range: str
    differences: tuple[Difference, ...]


class SnapshotDiff(SnapshotDocument):
    """All differences. `as_of` is the instant of the answers, and `root` that of the new snapshot.

    `old` and `new` in other fields are the two snapshots. If one is a bundle, `compared_from` is
    the instant from which both have observations: earlier days and the answers of windows that
    begin earlier are left out, and so are servers that a bundle lacks.
    """

    document: Literal["diff"] = "diff"
    version: Literal[1] = 1
    old_as_of: Instant
    new_as_of: Instant
    old_root: str
    compared_from: Instant | None
    servers: ServerChanges
    answers: tuple[ChangedAnswer, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is no difference."""
        return not (self.servers.added or self.servers.removed or self.servers.changed)
