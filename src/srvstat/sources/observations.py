"""Observations of any format: the one place that knows which reader serves which."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from srvstat.sources import csv_observations, ndjson_observations
from srvstat.sources.batch import Batch
from srvstat.sources.formats import Format
from srvstat.sources.source import Source

_READERS: Mapping[Format, Callable[[Source], Iterator[Batch]]] = {
    "csv": csv_observations.read,
    "ndjson": ndjson_observations.read,
}


def read(source: Source) -> Iterator[Batch]:
    """Read the observations of a source, a block at a time.

    Raises SourceError for a wrong header and for what `Source.blocks` refuses.
    """
    return _READERS[source.format](source)


def seen_servers(sources: Iterable[Source], warn: Callable[[str], None]) -> tuple[set[str], int]:
    """Return the server ids in some sources, and how many of their rows are no observation.

    `warn` is called with one line about a source that may be cut off.
    """
    seen: set[str] = set()
    rejected = 0
    for source in sources:
        for batch in read(replace(source, on_warning=warn)):
            seen.update(batch.server_ids)
            rejected += len(batch.rejects)
    return seen, rejected
