"""The summary of a new bundle. It has no JSON."""

from dataclasses import dataclass

from srvstat.contract.ranges import Range


@dataclass(frozen=True, slots=True)
class BundleSummary:
    """What a bundle contains; instants are Unix milliseconds, and `size` is in bytes.

    `ids` are those of its servers, in order. `range` is the longest one that it answers.
    """

    ids: tuple[str, ...]
    observations: int
    range: Range
    covered_from: int
    as_of: int
    size: int
    root: str
    parent_root: str
