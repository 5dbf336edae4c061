"""Define what a command can ask of a fleet, without importing DuckDB."""

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from srvstat.contract import wire
from srvstat.contract.errors import ParameterError, UsageError
from srvstat.contract.time import Range
from srvstat.snapshot.write.processes import count_cores
from srvstat.snapshot.write.rules import RejectLimit
from srvstat.sources.source import Source

if TYPE_CHECKING:
    from srvstat.fleet.rows import Conflicts


RESULT_EXTENSIONS = (".ndjson", ".jsonl", ".parquet")
"""The extensions of files of results."""


def find_extension(path: str) -> str:
    """Return the extension of a file of results, in lower case.

    Raises UsageError for the extension of another format.
    """
    extension = os.path.splitext(path)[1].lower()
    if extension not in RESULT_EXTENSIONS:
        raise UsageError(
            f"-o {path}: unknown format; end the name in {', '.join(RESULT_EXTENSIONS)}"
        )
    return extension


_BYTES_PER_PROCESS = 512 << 20
"""The memory of a process that builds shards: it takes 260 MiB for servers of 20,000 rows."""

_SIZE = re.compile(r"([1-9][0-9]{0,5})(MiB|GiB|TiB)")
_UNITS = {"MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def parse_size(text: str) -> int:
    """Return a size such as `512MiB` in bytes.

    Raises ParameterError.
    """
    found = _SIZE.fullmatch(text)
    if not found:
        raise ParameterError(
            "{memory}: {value} is not a size such as 512MiB or 4GiB", value=wire.quote_value(text)
        )
    return int(found[1]) * _UNITS[found[2]]


def count_processes(memory: str | None, threads: int | None) -> int:
    """Return how many processes build shards at a time: one for each core that has the memory."""
    processes = threads or count_cores()
    if memory is None:
        return processes
    return max(1, min(processes, parse_size(memory) // _BYTES_PER_PROCESS))


class FleetRequest(NamedTuple):
    """What to compute of which sources, and how.

    `servers`, `uses_slugs`, `game`, `as_of` and `max_rejected` are those of a build. `output` is
    the file of the results, and `snapshots` the folder of a sharded snapshot; one of them may be
    None.
    """

    servers: Source | None
    observations: Sequence[Source]
    uses_slugs: bool
    game: str | None
    range: Range
    as_of: int | None
    max_rejected: RejectLimit | None
    conflicts: "Conflicts"
    output: str | None
    overwrite: bool
    snapshots: str | None
    shards: int
    memory: str | None
    threads: int | None
