"""Read another snapshot as a source: its observations and the records of its servers.

Every row is verified by its digest before it is used.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import numpy as np

from srvstat.contract.errors import SnapshotError, SourceError
from srvstat.contract.time import BEFORE_ALL, LATEST, Window, format_instant
from srvstat.files.reading import STDIN
from srvstat.snapshot.read.observations import iter_observations
from srvstat.snapshot.read.snapshot import Snapshot, open_snapshot
from srvstat.snapshot.write.server_rows import build_record
from srvstat.sources.servers import ServerRecord
from srvstat.sources.source import Batch, Source

_ALL = Window(BEFORE_ALL, LATEST)


def read(source: Source) -> Iterator[Batch]:
    """Read the observations of a snapshot, one server after the other.

    Warns of a bundle, which has only some observations.

    Raises SourceError if the snapshot is missing or damaged.
    """
    done = 0
    with _open(source) as snapshot:
        if snapshot.covered_from is not None and source.on_warning:
            first = format_instant(max(snapshot.covered_from, 0))
            source.on_warning(f"{source.title}: a bundle, which has no observations before {first}")
        for server in snapshot.iter_servers():
            for instants, players in iter_observations(snapshot, server, _ALL):
                count = len(instants)
                places = np.arange(done + 1, done + 1 + count)
                yield Batch([server.id], np.zeros_like(places), instants, players, places)
                source.report_rows(done, count, snapshot.file_row.observation_count)
                done += count


def read_records(source: Source) -> list[ServerRecord]:
    """Read the records from which a snapshot was built. Values that were fallbacks are None again.

    Raises SourceError if the snapshot is missing or damaged.
    """
    with _open(source) as snapshot:
        records = []
        for server in snapshot.iter_servers():
            with snapshot.convert_decode_errors(server.title):
                snapshot.get_detail(server)
                records.append(build_record(server))
    return records


@contextmanager
def _open(source: Source) -> Iterator[Snapshot]:
    """Open a snapshot; errors that concern it in the block become those of a source."""
    if source.name == STDIN:
        raise SourceError(f"{source.title}: a snapshot can't be read from a pipe; name a file")
    try:
        with closing(open_snapshot(source.name)) as snapshot:
            yield snapshot
    except SnapshotError as error:
        raise SourceError(error.reason) from None
