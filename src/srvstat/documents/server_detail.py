"""What the table of one server shows besides the API's answer. It has no JSON."""

from dataclasses import dataclass

from srvstat.contract.responses import ServerDetail


@dataclass(frozen=True, slots=True)
class ServerTable:
    """An answer of Get Server, with the instants for its table in Unix milliseconds.

    `last_observed_at` is the last observation up to and including `as_of`, and
    `last_in_snapshot_at` that of the snapshot. `covered_from` is the
    first instant that a bundle covers, None for a whole snapshot. `source_id` is the identifier
    that the source uses, if it is not the id, and `completed` the fields that its record lacked.
    """

    server: ServerDetail
    as_of: int
    snapshot_as_of: int
    last_observed_at: int | None
    last_in_snapshot_at: int | None
    first_seen_at: int
    updated_at: int
    current_is_fallback: bool
    covered_from: int | None
    source_id: str | None
    completed: tuple[str, ...]
