"""The summary of a build. It is never JSON."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BuildSummary:
    """What a build did with the rows of its sources; instants are Unix milliseconds.

    `read` counts all rows but empty ones; each was kept, repeated, conflicting, rejected or
    skipped. `skipped` has the count for each reason, `first_reject` the place and reason of the
    first row in the rejects. `withheld` counts the servers that are not publishable.
    """

    read: int
    kept: int
    repeated: int
    conflicting: int
    rejected: int
    skipped: Mapping[str, int]
    first_reject: str | None
    servers: int
    withheld: int
    fallbacks: int
    as_of: int
    first_observed_at: int | None
    last_observed_at: int | None
    warnings: tuple[str, ...]
