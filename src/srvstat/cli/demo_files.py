"""Write the files of the demo without replacing any."""

import os
from contextlib import closing

from srvstat import demo
from srvstat.cli.output import report
from srvstat.contract.errors import OutputError, SnapshotError, UsageError
from srvstat.files.atomic import atomic_write
from srvstat.files.errors import convert_errors, convert_write_errors
from srvstat.snapshot.read.snapshot import open_snapshot
from srvstat.snapshot.write.build import build
from srvstat.sources.source import Source


def write_demo(directory: str) -> str:
    """Write the missing files of the demo, and return the path of its snapshot.

    Raises UsageError if one of the names is taken by another file, OutputError.
    """
    with convert_write_errors(directory):
        os.makedirs(directory, exist_ok=True)
    servers, observations, access, snapshot = (
        os.path.join(directory, name)
        for name in ("servers.ndjson", "observations.csv", "access.toml", "snapshot.db")
    )
    contents = {
        servers: demo.build_servers_file(),
        observations: demo.build_observations_file(),
        access: demo.build_access_file(),
    }
    written = [path for path, content in contents.items() if not _is_present(path, content)]
    has_snapshot = os.path.lexists(snapshot)
    if has_snapshot:
        _check_snapshot(snapshot)
    for path in written:
        _write_file(path, contents[path])
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


def _write_file(path: str, content: bytes) -> None:
    with (
        atomic_write(path, overwrite=False) as draft,
        convert_write_errors(path),
        open(draft, "wb") as file,
    ):
        file.write(content)


def _is_present(path: str, content: bytes) -> bool:
    """Return whether a file of the demo already exists.

    The access file may be longer: users add keys to it.

    Raises UsageError if the file has other content, OutputError.
    """
    if not os.path.lexists(path):
        return False
    with convert_errors(path, OutputError), open(path, "rb") as file:
        found = file.read(len(content))
        has_more = bool(file.read(1)) and not path.endswith(".toml")
    if found != content or has_more:
        raise _build_exists_error(path)
    return True


def _check_snapshot(path: str) -> None:
    try:
        with closing(open_snapshot(path)) as snapshot:
            is_ours = (
                snapshot.as_of == demo.AS_OF and list(snapshot.iter_identifiers("id")) == demo.IDS
            )
    except SnapshotError:
        is_ours = False
    if not is_ours:
        raise _build_exists_error(path)


def _build_exists_error(path: str) -> UsageError:
    return UsageError(
        f"{path}: exists and is not of this version's demo; remove it, or name another directory"
    )
