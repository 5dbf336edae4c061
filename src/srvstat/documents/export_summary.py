"""The summary of a new export. It has no JSON."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """What an export contains; `as_of` is in Unix milliseconds, and `size` in bytes.

    `servers_path` and `observations_path` are the sources of a build. `root` is that of the
    snapshot which a build of them has; None if the export is only a part of a snapshot, or if the
    snapshot has shards, whose root is another than that of one file.
    `covered_from` is None unless the snapshot is a bundle, which has only some observations.
    """

    servers: int
    observations: int
    servers_path: str
    observations_path: str
    size: int
    as_of: int
    covered_from: int | None
    root: str | None
