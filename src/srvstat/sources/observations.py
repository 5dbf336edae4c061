"""Read observations of any registered kind."""

from collections.abc import Callable, Iterator

from srvstat.sources.batch import Batch
from srvstat.sources.registry import load_reader
from srvstat.sources.source import Source


def read_batches(source: Source) -> Iterator[Batch]:
    """Read the observations of a source, a batch at a time.

    Raises SourceError if the source can't be read or is not of its kind.
    """
    read: Callable[[Source], Iterator[Batch]] = load_reader(source.kind).read
    return read(source)
