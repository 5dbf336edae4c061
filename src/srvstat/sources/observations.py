"""Read observations of any registered kind."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from srvstat.sources.batch import Batch
from srvstat.sources.registry import FOLDER_KIND, load_reader
from srvstat.sources.source import Source, check_readable


def read_batches(source: Source) -> Iterator[Batch]:
    """Read the observations of a source, a batch at a time.

    Raises SourceError if the source can't be read or is not of its kind.
    """
    read: Callable[[Source], Iterator[Batch]] = load_reader(source.kind).read
    return read(source)


def check_sources(sources: Sequence[Source]) -> None:
    """Check files, before any of them is read: that they may be read, and that folders fit.

    Raises SourceError.
    """
    check_readable(sources)
    in_folders = [source for source in sources if source.folder is not None]
    for (kind, _), files in groupby(in_folders, key=attrgetter("kind", "folder")):
        check_types: Callable[[Iterable[Source]], None] = load_reader(kind).check_types
        check_types(files)


def split_folder(source: Source) -> list[Source]:
    """Return the files of a folder as sources, and any other source as it is.

    Raises SourceError.
    """
    if source.kind != FOLDER_KIND or not os.path.isdir(source.name):
        return [source]
    list_files: Callable[[Source], list[Source]] = load_reader(source.kind).list_files
    return list_files(source)
