"""Read observations of any registered kind."""

import os
from collections.abc import Callable, Iterator

from srvstat.sources.batch import Batch
from srvstat.sources.registry import FOLDER_KIND, load_reader
from srvstat.sources.source import Source


def read_batches(source: Source) -> Iterator[Batch]:
    """Read the observations of a source, a batch at a time.

    Raises SourceError if the source can't be read or is not of its kind.
    """
    read: Callable[[Source], Iterator[Batch]] = load_reader(source.kind).read
    return read(source)


def split_folder(source: Source) -> list[Source]:
    """Return the files of a folder as sources, and any other source as it is.

    Raises SourceError.
    """
    if source.kind != FOLDER_KIND or not os.path.isdir(source.name):
        return [source]
    list_files: Callable[[Source], list[Source]] = load_reader(source.kind).list_files
    return list_files(source)
