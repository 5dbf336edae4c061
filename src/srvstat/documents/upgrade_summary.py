"""The summary of an upgrade. It has no JSON."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UpgradeSummary:
    """What an upgrade rewrote; `as_of` is in Unix milliseconds.

    `version` is that of the old format, `new_version` that of the new one. `old_root` is None if
    the old format has no digests.
    """

    version: int
    new_version: int
    servers: int
    observations: int
    as_of: int
    old_root: str | None
    root: str
