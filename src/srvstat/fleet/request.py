"""Define what a command can ask of an engine, without importing an engine or its libraries."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from srvstat.contract.ranges import Range
from srvstat.sources.source import Source

if TYPE_CHECKING:
    from srvstat.fleet.counts import Conflicts


RESULT_EXTENSIONS = (".ndjson", ".jsonl", ".parquet")
"""The extensions of files of results."""


def find_extension(path: str) -> str:
    """Return the extension of a path of results, in lower case."""
    return os.path.splitext(path)[1].lower()


class EngineOptions(NamedTuple):
    """The values of the options that only some engines take; None for the engine's default.

    `memory` is a size such as `4GiB`, and `master` the URL of a cluster.
    """

    memory: str | None = None
    threads: int | None = None
    master: str | None = None


class FleetRequest(NamedTuple):
    """What to compute of which sources, and with which engine.

    `servers`, `uses_slugs`, `game` and `as_of` are those of a build. `output` is the file of the
    results.
    """

    servers: Source | None
    observations: Sequence[Source]
    uses_slugs: bool
    game: str | None
    range: Range
    as_of: int | None
    conflicts: "Conflicts"
    output: str
    overwrite: bool
    engine: str
    options: EngineOptions
