"""Read observations of any registered kind."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from srvstat.sources.batch import Batch
from srvstat.sources.registry import load_reader
from srvstat.sources.source import Source


def read_batches(source: Source) -> Iterator[Batch]:
    """Read the observations of a source, a batch at a time.

    Raises SourceError if the source can't be read or is not of its kind.
    """
    read: Callable[[Source], Iterator[Batch]] = load_reader(source.kind).read
    return read(source)


def collect_server_ids(
    sources: Iterable[Source], warn: Callable[[str], None]
) -> tuple[set[str], int]:
    """Return the server ids in some sources, and the number of malformed rows.

    `warn` is called with one line about each source that may be cut off.
    """
    found: set[str] = set()
    rejected = 0
    for source in sources:
        for batch in read_batches(replace(source, on_warning=warn)):
            found.update(batch.server_ids)
            rejected += len(batch.rejects)
    return found, rejected
