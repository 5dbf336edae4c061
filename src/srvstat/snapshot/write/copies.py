"""Copy a snapshot: to a bundle, to an export, or as a source of another snapshot."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial

import numpy as np

from srvstat.contract import wire
from srvstat.contract.errors import SnapshotError, SourceError, UsageError
from srvstat.contract.time import LATEST, format_instant
from srvstat.contract.windows import BEFORE_ALL, DAY_MS, Range, Window, find_window
from srvstat.documents.snapshot import BundleSummary, ExportSummary
from srvstat.files.paths import convert_write_errors
from srvstat.files.reading import STDIN
from srvstat.files.writing import atomic_folder, atomic_write, check_name, write_file
from srvstat.snapshot.blocks import derive
from srvstat.snapshot.read.observations import (
    find_last_observed_at,
    iter_observations,
    read_observations,
)
from srvstat.snapshot.read.snapshot import Snapshot, open_snapshot
from srvstat.snapshot.rows import REDACTED_TEXT, REDACTED_URL, ServerRow
from srvstat.snapshot.write import build
from srvstat.snapshot.write.roster import build_record
from srvstat.sources.servers import ServerRecord, format_records
from srvstat.sources.source import Batch, Source


def write_bundle(  # noqa: PLR0913 - each is an option of the command
    output: str,
    parent: Snapshot,
    servers: Sequence[ServerRow],
    range: Range,
    *,
    starts_at: int | None = None,
    case: Mapping[str, str] | None = None,
    redact: bool = False,
    overwrite: bool = False,
) -> BundleSummary:
    """Write a bundle of some servers of a snapshot, and return a summary.

    - `servers`: the servers to include; repeats are ignored.
    - `range`: the bundle covers this range, from midnight UTC on. The parent must cover it.
    - `starts_at`: if given, the bundle starts with the UTC day of this time instead.
    - `case`: stored with the options of the sources.
    - `redact`: replaces names, descriptions and links, and drops the source names.

    Raises SnapshotError if the parent is damaged, UsageError if the output may not be replaced, and
    OutputError if it can't be written.
    """
    if check_name("--output", output) == os.path.realpath(parent.path):
        raise UsageError(f"{output}: same file as the input snapshot; choose another output")
    build.check_journal(output)
    start = find_window(range, parent.as_of).start if starts_at is None else starts_at
    covered_from = start // DAY_MS * DAY_MS
    chosen = sorted(set(servers), key=lambda server: server.id)
    window = Window.from_first(covered_from, parent.as_of)
    file_row = parent.file_row._replace(
        sources="[]" if redact else parent.file_row.sources,
        reading=_encode_reading(parent, case, redact=redact),
        parent_root=parent.file_row.root,
        covered_from=covered_from,
    )
    with atomic_write(output, overwrite=overwrite) as draft:
        with build.open_draft(output, draft) as connection:
            build.create_tables(connection)
            put = partial(build.put_block, connection)
            rows: list[ServerRow] = []
            for number, server in enumerate(chosen, 1):
                # Validate values, because a forged file can have matching digests and any values.
                parent.describe_record(server)
                observations = read_observations(parent, server, _extend(parent, server, window))
                row = derive(server._replace(server=number), observations, put)
                rows.append(_redact(row) if redact else row)
            file_row = build.store_servers(connection, rows, file_row)
        build.check_draft(output, draft, file_row)
        with convert_write_errors(output):
            size = os.path.getsize(draft)
    return BundleSummary(
        ids=tuple(server.id for server in chosen),
        observations=file_row.observation_count,
        range=range,
        covered_from=covered_from,
        as_of=parent.as_of,
        size=size,
        root=file_row.root.hex(),
        parent_root=parent.root,
    )


def _extend(parent: Snapshot, server: ServerRow, window: Window) -> Window:
    """Start the window at the preceding observation if its count is held into the window."""
    before = find_last_observed_at(parent, server, window.start) if parent.is_held else None
    return window if before is None else Window.from_first(before, window.end)


def _encode_reading(parent: Snapshot, case: Mapping[str, str] | None, *, redact: bool) -> str:
    """Encode the options of the parent's sources, and the case of a bundle.

    A redacted bundle keeps only the options that change statistics. The others name columns and
    servers.
    """
    kept = {name: value for name, value in parent.reading.items() if name == "hold" or not redact}
    return wire.encode(kept | ({"case": dict(case)} if case else {})).decode()


def _redact(row: ServerRow) -> ServerRow:
    """Replace a server's nonempty texts, and drop its source identifiers. URLs remain URLs."""
    return row._replace(
        hostname=row.hostname and REDACTED_TEXT,
        project_name=row.project_name and REDACTED_TEXT,
        project_description=row.project_description and REDACTED_TEXT,
        chat_url=row.chat_url and REDACTED_URL,
        icon_url=row.icon_url and REDACTED_URL,
        source_id=None,
        other_source_ids="[]",
    )


def write_export(
    folder: str,
    snapshot: Snapshot,
    servers: Callable[[], Iterable[ServerRow]],
    encode: Callable[[Iterable[ServerRow], Window], Iterable[bytes]],
    *,
    format: str,
) -> ExportSummary:
    """Write servers of a snapshot to a new folder, and return a summary.

    - `servers`: called once for each pass over the servers.
    - `encode`: returns the observations in a window, as encoded pieces.
    - `format`: the format, which is also the file's extension.

    Raises SnapshotError if the snapshot is damaged, UsageError if the folder exists, and
    OutputError if it can't be written.
    """
    server_count = observation_count = size = 0

    def iter_records() -> Iterator[ServerRecord]:
        nonlocal server_count, observation_count
        for server in servers():
            server_count += 1
            observation_count += server.observation_count
            yield _read_record(snapshot, server)

    window = Window(BEFORE_ALL, snapshot.as_of)
    files = {
        "servers.ndjson": format_records(iter_records()),
        f"observations.{format}": encode(servers(), window),
    }
    with atomic_folder(folder) as draft:
        for name, pieces in files.items():
            path = os.path.join(draft, name)
            write_file(path, pieces, title=folder)
            size += os.path.getsize(path)
    has_all = server_count == snapshot.file_row.server_count
    is_one_file = snapshot.shards is None and snapshot.parent_root is None
    servers_path, observations_path = (os.path.join(folder, name) for name in files)
    return ExportSummary(
        servers=server_count,
        observations=observation_count,
        servers_path=servers_path,
        observations_path=observations_path,
        size=size,
        as_of=snapshot.as_of,
        covered_from=snapshot.covered_from,
        root=snapshot.root if has_all and is_one_file else None,
    )


_ALL = Window(BEFORE_ALL, LATEST)


def read(source: Source) -> Iterator[Batch]:
    """Read the observations of a snapshot, server by server.

    Warns about a bundle, which lacks earlier observations.

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
    """Read the records from which a snapshot was built. Filled-in values are None again.

    Raises SourceError if the snapshot is missing or damaged.
    """
    with _open(source) as snapshot:
        return [_read_record(snapshot, server) for server in snapshot.iter_servers()]


def _read_record(snapshot: Snapshot, server: ServerRow) -> ServerRecord:
    """Return the record from which a verified row was built. The row may be forged."""
    with snapshot.convert_decode_errors(server.title):
        snapshot.describe_record(server)
        return build_record(server)


@contextmanager
def _open(source: Source) -> Iterator[Snapshot]:
    """Open a snapshot, and convert its errors in the block to SourceError."""
    if source.name == STDIN:
        raise SourceError(f"{source.title}: a snapshot can't be read from a pipe; name a file")
    try:
        with closing(open_snapshot(source.name)) as snapshot:
            yield snapshot
    except SnapshotError as error:
        raise SourceError(error.reason) from None
