"""Read another snapshot as a source: its observations and the records of its servers.

Every row is verified by its digest before it is used.
"""

from array import array
from collections.abc import Iterator
from contextlib import closing, contextmanager

from srvstat.contract.errors import SnapshotError, SourceError
from srvstat.contract.instants import LATEST, format_instant
from srvstat.contract.windows import BEFORE_ALL, Window
from srvstat.files.reading import STDIN
from srvstat.snapshot.format.derive import has_valid_observations
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.snapshot import Snapshot, open_snapshot
from srvstat.snapshot.write.server_rows import build_record
from srvstat.sources.batch import Batch, Runs
from srvstat.sources.server_records import ServerRecord
from srvstat.sources.source import Source

_ROWS_PER_BATCH = 50_000


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
            for instants, players in _read_columns(snapshot, server):
                places = range(done + 1, done + len(instants) + 1)
                # The digests of a forged file match, whatever its values are.
                if not has_valid_observations(instants, players, snapshot.as_of):
                    raise snapshot.build_damage_error(f"the days of {server.title}")
                names = Runs([server.id], [len(instants)])
                yield Batch(names, instants, players, array("q", places))
                source.report_rows(done, len(instants), snapshot.file_row.observation_count)
                done = places.stop - 1


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


def _read_columns(
    snapshot: Snapshot, server: ServerRow
) -> Iterator[tuple["array[int]", "array[int]"]]:
    """Yield the observations of a server in columns of limited length."""
    window = Window(BEFORE_ALL, LATEST)
    instants, players = array("q"), array("q")
    with snapshot.convert_decode_errors(f"the days of {server.title}"):
        for more_instants, more_players in snapshot.iter_observations(server, window):
            instants.extend(more_instants)
            players.extend(more_players)
            if len(instants) >= _ROWS_PER_BATCH:
                yield instants, players
                instants, players = array("q"), array("q")
    if instants:
        yield instants, players
