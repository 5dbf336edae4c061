"""The command `demo`: write reproducible example data and build a snapshot from it."""

import gzip
import json
import os
import shlex
from contextlib import closing
from string import Template
from typing import Annotated

from srvstat.analysis.parameters import Parameter
from srvstat.analysis.servers import describe_comparison
from srvstat.cli.output import Form, Outcome, report, show
from srvstat.cli.process import allow_cleanup
from srvstat.contract import read_package_file
from srvstat.contract.errors import OutputError, SnapshotError, UsageError
from srvstat.contract.requests import build_compare_request
from srvstat.contract.time import parse_instant
from srvstat.files.paths import convert_errors, convert_write_errors
from srvstat.files.writing import write_atomically
from srvstat.snapshot.read.snapshot import open_snapshot
from srvstat.snapshot.write.build import build
from srvstat.snapshot.write.intake import Inputs
from srvstat.sources.registry import load_reader, load_record_reader
from srvstat.sources.source import Source

AS_OF = parse_instant("2026-03-01T12:00Z")
_FILES = (
    "servers.ndjson",
    "observations.csv",
    "access.toml",
    "games.csv",
    "mail.txt",
    "customer.har",
)

_DirectoryArgument = Annotated[
    str, Parameter("The directory for the demo's files.", "DIRECTORY", is_argument=True)
]


def demo(directory: _DirectoryArgument = "srvstat-demo") -> Outcome:
    """Create a small example snapshot.

    Compare three of its servers and show what to try next. Existing files are never replaced.

    Example: srvstat demo && export SRVSTAT_SNAPSHOT=srvstat-demo/snapshot.db
    """
    if not directory:
        raise UsageError("DIRECTORY: empty; give a directory")
    # Import the readers now, because nothing may be imported while the demo can be interrupted.
    load_reader("csv")
    load_record_reader("ndjson")
    with allow_cleanup():
        path = write_demo(directory)
    request = build_compare_request(
        ["harbor-city", "new-frontier", "night-shift"], by="id", range="7d"
    )
    with closing(open_snapshot(path)) as snapshot:
        comparison = describe_comparison(snapshot, request)
    table = show(comparison, Form.TABLE)
    named = {"access": "access.toml", "games": "games.csv", "recording": "customer.har"}
    paths = {key: shlex.quote(os.path.join(directory, name)) for key, name in named.items()}
    text = Template(read_demo_file("next.txt").decode()).substitute(
        paths, snapshot=shlex.quote(path)
    )
    return Outcome([*table.pieces, text.encode("utf-8", "backslashreplace")])


def read_demo_file(name: str) -> bytes:
    """Return the content of a demo file.

    docs/demo_data.py generates the servers and observations. The mail and the recording are for the
    support tutorial; `games.csv` is an example of a server owner's own table.
    """
    if name == "observations.csv":
        return gzip.decompress(read_package_file(f"cli/demo_files/{name}.gz"))
    return read_package_file(f"cli/demo_files/{name}")


def list_ids() -> list[str]:
    """Return the ids of the public servers, sorted."""
    records = map(json.loads, read_demo_file("servers.ndjson").splitlines())
    return sorted(record["id"] for record in records if record["publishable"])


def write_demo(directory: str) -> str:
    """Write the missing files of the demo, and return the path of its snapshot.

    Raises UsageError if another file has one of the names, and OutputError if a file can't be
    written.
    """
    if os.path.exists(directory) and not os.path.isdir(directory):
        raise UsageError(f"{directory}: not a directory; name a new directory")
    with convert_write_errors(directory):
        os.makedirs(directory, exist_ok=True)
    snapshot = os.path.join(directory, "snapshot.db")
    contents = {os.path.join(directory, name): read_demo_file(name) for name in _FILES}
    servers, observations, *_ = contents
    written = [path for path, content in contents.items() if not _is_present(path, content)]
    has_snapshot = os.path.lexists(snapshot)
    if has_snapshot:
        _check_snapshot(snapshot)
    for path in written:
        write_atomically(path, contents[path], overwrite=False)
    if not has_snapshot:
        build(snapshot, Inputs(Source(servers, "ndjson"), [Source(observations, "csv")]))
        written.append(snapshot)
    if written:
        report(f"wrote {' and '.join(filter(None, (', '.join(written[:-1]), written[-1])))}")
    return snapshot


def _is_present(path: str, content: bytes) -> bool:
    """Return whether a file of the demo already exists.

    The access file may be longer, because users add keys to it.

    Raises UsageError if the file has other content, and OutputError if it can't be read.
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
            identifiers = list(snapshot.iter_identifiers("id"))
            is_ours = (snapshot.as_of, identifiers) == (AS_OF, list_ids())
    except SnapshotError:
        is_ours = False
    if not is_ours:
        raise _build_exists_error(path)


def _build_exists_error(path: str) -> UsageError:
    return UsageError(
        f"{path}: exists and is not of this version's demo; remove it, or name another directory"
    )
