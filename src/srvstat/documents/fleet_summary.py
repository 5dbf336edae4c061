"""The summary of the statistics of a fleet. It has no JSON."""

from collections.abc import Mapping
from dataclasses import dataclass

from srvstat.documents.manifest import Manifest


@dataclass(frozen=True, slots=True)
class FleetSummary:
    """What became of the rows of the sources; instants are Unix milliseconds.

    `read` counts all rows except empty ones; each was kept, repeated, conflicting, rejected,
    skipped, or an early one of a known server, before the window. `reject_reasons` and `skipped`
    have a count for each reason. `conflict` describes one of the conflicts, and `remedy` is a
    sentence on how to keep rejected rows, if anything helps. `servers` counts the results, and
    `observed` those with an observation in the window, which is `(start, as_of]`; it has no start
    if only a snapshot was written. `withheld`, `completed` and `fallbacks` are those of a build.
    `manifest` is that of the snapshot, if one was written.
    """

    read: int
    kept: int
    repeated: int
    conflicting: int
    reject_reasons: Mapping[str, int]
    skipped: Mapping[str, int]
    early: int
    conflict: str | None
    remedy: str | None
    servers: int
    observed: int
    withheld: int
    completed: Mapping[str, int]
    fallbacks: int
    start: int | None
    as_of: int
    warnings: tuple[str, ...]
    manifest: Manifest | None = None

    @property
    def rejected(self) -> int:
        """The number of rejected rows."""
        return sum(self.reject_reasons.values())
