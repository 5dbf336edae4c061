"""The row of a snapshot's file, and the decoded columns of verified rows."""

from contextlib import AbstractContextManager

from srvstat.contract import wire
from srvstat.contract.errors import SnapshotError
from srvstat.contract.instants import LATEST, format_instant
from srvstat.contract.responses import Players, ServerDetail
from srvstat.contract.windows import DAY_MS, DAYS
from srvstat.contract.wire import MAX_SAFE_INTEGER
from srvstat.snapshot.format.rows import FileRow, ForgedRowError, ServerRow
from srvstat.snapshot.read.connection import build_damage_error, convert_decode_errors

_ROOT_BYTES = 32


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
            check_optional_instant(file_row.first_observed_at)
            check_optional_instant(file_row.last_observed_at)
            check_coverage(file_row)
            counts = file_row.repeated, file_row.conflicting, file_row.rejected
            if not all(0 <= count <= MAX_SAFE_INTEGER for count in counts):
                raise ForgedRowError("not counts of rows")

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the observation files, in the order read; answers need none."""
        with self.convert_decode_errors(FILE_ROW):
            return read_texts(self.file_row.sources)

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

    def get_detail(self, server: ServerRow) -> ServerDetail:
        """Return a server's public record.

        Raises SnapshotError.
        """
        with self.convert_decode_errors(server.title):
            check_instant(server.first_seen_at)
            check_instant(server.updated_at)
            read_texts(server.completed)
            return ServerDetail(
                id=server.id,
                game=server.game,
                cfxId=server.cfx_id,
                hostname=server.hostname,
                projectName=server.project_name,
                projectDescription=server.project_description,
                region=server.region,
                players=Players(current=server.players_current, max=server.players_max),
                tags=read_texts(server.tags),
                flags=read_texts(server.flags),
                chatUrl=server.chat_url,
                iconUrl=server.icon_url,
                offline=bool(server.offline),
                firstSeenAt=format_instant(server.first_seen_at),
                updatedAt=format_instant(server.updated_at),
            )

    def build_damage_error(self, part: str) -> SnapshotError:
        """Return the error that reports a damaged part of the snapshot."""
        return build_damage_error(self.path, part)

    def convert_decode_errors(self, part: str) -> AbstractContextManager[None]:
        """Report values that can't be decoded as damage of a part of the snapshot."""
        return convert_decode_errors(self.path, part)
