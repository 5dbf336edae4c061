"""The summary of a build. It has no JSON."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BuildSummary:
    """What a build did with the rows of its sources; instants are Unix milliseconds.

    `read` counts all rows except empty ones; each was kept, repeated, conflicting, rejected or
    skipped. `skipped` has a count for each reason. `first_reject` is the place of the first row in
    the rejects, with the reason, and `remedy` a sentence on how to keep rejected rows, if
    anything helps. `withheld` counts the servers that are not publishable, and `completed` the
    servers whose records lacked a field, by field.
    """

    read: int
    kept: int
    repeated: int
    conflicting: int
    rejected: int
    skipped: Mapping[str, int]
    first_reject: str | None
    remedy: str | None
    servers: int
    withheld: int
    completed: Mapping[str, int]
    fallbacks: int
    as_of: int
    first_observed_at: int | None
    last_observed_at: int | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UpdateSummary:
    """What an update did: the rows of its sources, and the changes to the snapshot.

    `rows` describes the new rows; its servers, fallbacks and instants are those of the snapshot.
    `added` and `removed` count servers, `observations` those of the snapshot.
    """

    rows: BuildSummary
    added: int
    removed: int
    observations: int
    root: str
