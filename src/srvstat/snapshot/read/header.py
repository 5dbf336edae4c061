"""The row of a snapshot's file, and the decoded columns of verified rows."""

from contextlib import AbstractContextManager
from typing import NamedTuple

from srvstat.contract import wire
from srvstat.contract.errors import SnapshotError
from srvstat.contract.instants import LATEST, format_instant
from srvstat.contract.responses import Players, ServerDetail
from srvstat.contract.windows import DAY_MS, DAYS
from srvstat.snapshot.format.rows import FileRow, ForgedRowError, ServerRow
from srvstat.snapshot.read.connection import build_damage_error, convert_decode_errors

_ROOT_BYTES = 32


class Totals(NamedTuple):
    """The counts in the row of the file; the instants are None without observations."""

    observations: int
    first_observed_at: int | None
    last_observed_at: int | None
    sources: tuple[str, ...]
    repeated: int
    conflicting: int
    rejected: int


class DetailWithInstants(NamedTuple):
    """A server's public record, its instants in Unix milliseconds, and where its values are from.

    `completed` are the names of the fields that the source's record lacked.
    """

    server: ServerDetail
    first_seen_at: int
    updated_at: int
    current_is_fallback: bool
    completed: tuple[str, ...]


def check_instant(value: int) -> int:
    """Return a number of Unix milliseconds that is an instant of the contract."""
    if not 0 <= value <= LATEST:
        raise ForgedRowError("not an instant")
    return value


def check_coverage(row: FileRow) -> None:
    """Check the columns of a bundle, of which a whole snapshot has neither."""
    if row.parent_root is None and row.covered_from is None:
        return
    if row.parent_root is None or len(row.parent_root) != _ROOT_BYTES or row.covered_from is None:
        raise ForgedRowError("not the provenance of a bundle")
    # The longest range of a snapshot as of 1970-01-01 reaches back one year.
    earliest = -max(DAYS.values()) * DAY_MS
    if row.covered_from % DAY_MS or not earliest <= row.covered_from <= row.as_of:
        raise ForgedRowError("not the coverage of a bundle")


def check_optional_instant(value: int | None) -> int | None:
    """Return None, or the instant that `check_instant` returns."""
    return None if value is None else check_instant(value)


def read_texts(array: str) -> tuple[str, ...]:
    """Return the texts of a JSON array."""
    texts = tuple(wire.decode_text(array))
    "".join(texts).encode("utf-8")
    return texts


def read_detail(row: ServerRow) -> DetailWithInstants:
    """Return the public record in a row of `servers`."""
    server = ServerDetail(
        id=row.id,
        game=row.game,
        cfxId=row.cfx_id,
        hostname=row.hostname,
        projectName=row.project_name,
        projectDescription=row.project_description,
        region=row.region,
        players=Players(current=row.players_current, max=row.players_max),
        tags=read_texts(row.tags),
        flags=read_texts(row.flags),
        chatUrl=row.chat_url,
        iconUrl=row.icon_url,
        offline=bool(row.offline),
        firstSeenAt=format_instant(check_instant(row.first_seen_at)),
        updatedAt=format_instant(check_instant(row.updated_at)),
    )
    return DetailWithInstants(
        server,
        row.first_seen_at,
        row.updated_at,
        bool(row.current_is_fallback),
        read_texts(row.completed),
    )


def read_totals(row: FileRow) -> Totals:
    """Return the counts in the row of a file."""
    return Totals(
        observations=row.observation_count,
        first_observed_at=check_optional_instant(row.first_observed_at),
        last_observed_at=check_optional_instant(row.last_observed_at),
        sources=read_texts(row.sources),
        repeated=row.repeated,
        conflicting=row.conflicting,
        rejected=row.rejected,
    )


FILE_ROW = "the table snapshot"


class SnapshotHeader:
    """A snapshot's path, instant, root and totals; instants are Unix milliseconds.

    Raises SnapshotError for a row that no build writes.
    """

    def __init__(self, path: str, file_row: FileRow) -> None:
        self.path = path
        self.file_row = file_row
        """The verified row of `snapshot`."""
        with self.convert_decode_errors(FILE_ROW):
            self.as_of = check_instant(file_row.as_of)
            check_coverage(file_row)

    @property
    def root(self) -> str:
        """The digest of the whole content, as 64 hexadecimal digits."""
        return self.file_row.root.hex()

    @property
    def parent_root(self) -> str | None:
        """The root of a bundle's parent, as 64 hexadecimal digits; None for a whole snapshot."""
        root = self.file_row.parent_root
        return None if root is None else root.hex()

    @property
    def covered_from(self) -> int | None:
        """The first instant that a bundle covers; None for a whole snapshot."""
        return self.file_row.covered_from

    def is_same_as(self, other: "SnapshotHeader") -> bool:
        """Check whether both have equal content and equal counts of their sources."""
        return self.file_row == other.file_row

    def read_totals(self) -> Totals:
        """Return the counts in the row of the file.

        Raises SnapshotError.
        """
        with self.convert_decode_errors(FILE_ROW):
            return read_totals(self.file_row)

    def build_damage_error(self, part: str) -> SnapshotError:
        """Return the error that reports a damaged part of the snapshot."""
        return build_damage_error(self.path, part)

    def convert_decode_errors(self, part: str) -> AbstractContextManager[None]:
        """Report values that can't be decoded as damage of a part of the snapshot."""
        return convert_decode_errors(self.path, part)
