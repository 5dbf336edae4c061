"""The files of the demo, written where none of theirs stands yet."""

import os
from contextlib import closing

from srvstat import demo as fleet
from srvstat.cli.output import report
from srvstat.contract.errors import OutputError, SnapshotError, UsageError
from srvstat.files.atomic_write import atomic_write
from srvstat.files.errors import convert_errors, convert_write_errors
from srvstat.snapshot.read.reader import open_file
from srvstat.snapshot.write.build import build
from srvstat.sources.source import Source


def write_demo(directory: str) -> str:
    """Write the demo's files unless they stand there already, and return the snapshot's path.

    Raises UsageError where another file has one of their names; nothing is ever replaced.
    """
    with convert_write_errors(directory):
        os.makedirs(directory, exist_ok=True)
    servers, observations, access, snapshot = (
        os.path.join(directory, name)
        for name in ("servers.ndjson", "observations.csv", "access.toml", "snapshot.db")
    )
    sources = {
        servers: fleet.servers_ndjson(),
        observations: fleet.observations_csv(),
        access: fleet.access_toml(),
    }
    written = [path for path, content in sources.items() if not _stands(path, content)]
    has_snapshot = os.path.lexists(snapshot)
    if has_snapshot:
        _check_snapshot(snapshot)
    for path in written:
        with (
            atomic_write(path, overwrite=False) as draft,
            convert_write_errors(path),
            open(draft, "wb") as file,
        ):
            file.write(sources[path])
    if not has_snapshot:
        build(
            snapshot,
            servers_source=Source(servers, "ndjson"),
            observation_sources=[Source(observations, "csv")],
        )
        written.append(snapshot)
    if written:
        report(f"wrote {' and '.join(filter(None, (', '.join(written[:-1]), written[-1])))}")
    return snapshot


def _stands(path: str, content: bytes) -> bool:
    """Say whether a file stands there already; one that begins otherwise is refused.

    The access file may have grown: the keys that were added to it are its user's.
    """
    if not os.path.lexists(path):
        return False
    with convert_errors(path, OutputError), open(path, "rb") as file:
        found = file.read(len(content))
        has_more = bool(file.read(1)) and not path.endswith(".toml")
    if found != content or has_more:
        raise _foreign(path)
    return True


def _check_snapshot(path: str) -> None:
    try:
        with closing(open_file(path)) as snapshot:
            is_ours = (
                snapshot.as_of == fleet.AS_OF and list(snapshot.iter_identifiers("id")) == fleet.IDS
            )
    except SnapshotError:
        is_ours = False
    if not is_ours:
        raise _foreign(path)


def _foreign(path: str) -> UsageError:
    return UsageError(
        f"{path}: exists and is not the demo's, or not this version's;"
        " remove it, or name another directory"
    )
