"""Decode the columns of the verified rows of `snapshot` and `servers`.

The functions raise ValueError and TypeError for values that no build writes: in a forged file, the
digests match any values.
"""

from typing import NamedTuple

from srvstat.contract import wire
from srvstat.contract.instants import LATEST, format_instant
from srvstat.contract.ranges import DAY_MS, DAYS
from srvstat.contract.responses import Players, ServerDetail
from srvstat.snapshot.format.rows import FileRow, ServerRow

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
    """Return a number of Unix milliseconds that is an instant of the contract.

    Raises ValueError for other numbers.
    """
    if not 0 <= value <= LATEST:
        raise ValueError("not an instant")
    return value


def check_coverage(row: FileRow) -> None:
    """Check the columns of a bundle, of which a whole snapshot has neither.

    Raises ValueError.
    """
    if row.parent_root is None and row.covered_from is None:
        return
    if row.parent_root is None or len(row.parent_root) != _ROOT_BYTES or row.covered_from is None:
        raise ValueError("not the provenance of a bundle")
    # The longest range of a snapshot as of 1970-01-01 reaches back one year.
    earliest = -max(DAYS.values()) * DAY_MS
    if row.covered_from % DAY_MS or not earliest <= row.covered_from <= row.as_of:
        raise ValueError("not the coverage of a bundle")


def check_optional_instant(value: int | None) -> int | None:
    """Return None, or the instant that `check_instant` returns."""
    return None if value is None else check_instant(value)


def read_texts(array: str) -> tuple[str, ...]:
    """Return the texts of a JSON array.

    Raises ValueError or TypeError for other JSON, and for texts that UTF-8 can't encode.
    """
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
