"""`demo`: a snapshot to play with."""

import os
import shlex
from contextlib import closing
from typing import Annotated

import typer

from srvstat import demo as fleet
from srvstat.cli.output import Outcome, tell
from srvstat.contract.errors import OutputError, SnapshotError, UsageError
from srvstat.contract.requests import compare_request
from srvstat.snapshot.publish import published, writing
from srvstat.snapshot.read import open_file
from srvstat.sources.source import Source


def demo(
    directory: Annotated[
        str, typer.Argument(metavar="DIRECTORY", help="Where to write the demo's three files.")
    ] = "srvstat-demo",
) -> Outcome:
    """Make a small snapshot to play with.

    Three of its servers are compared, and what to try next is said. Nothing is replaced.

    Example: srvstat demo && export SRVSTAT_SNAPSHOT=srvstat-demo/snapshot.db
    """
    from srvstat.cli.tables import comparison_table  # noqa: PLC0415 - rich only for a table

    path = _written(directory)
    with closing(open_file(path)) as snapshot:
        request = compare_request(
            ["harbor-city", "new-frontier", "night-shift"], by="id", range="7d"
        )
        table = comparison_table(snapshot, request)
    at = shlex.quote(path)
    text = (
        "\nTry next:\n"
        f"  export SRVSTAT_SNAPSHOT={at}\n"
        "  srvstat get flaky-arena\n"
        "  srvstat compare harbor-city old-guard cfxId:nf8q1z --range 90d\n"
        "  srvstat compare harbor-city new-frontier --json | jq '.data[].medianPlayers'\n"
    )
    return Outcome(table + text.encode("utf-8", "backslashreplace"))


def _written(directory: str) -> str:
    """Write the demo's files unless they stand there already, and return the snapshot's path.

    Raises UsageError where another file has one of their names; nothing is ever replaced.
    """
    from srvstat.snapshot.build import build  # noqa: PLC0415 - sqlite-utils only for a build

    with writing(directory):
        os.makedirs(directory, exist_ok=True)
    servers, observations, snapshot = (
        os.path.join(directory, name)
        for name in ("servers.ndjson", "observations.csv", "snapshot.db")
    )
    sources = {servers: fleet.servers_ndjson(), observations: fleet.observations_csv()}
    missing = [path for path, content in sources.items() if not _stands(path, content)]
    if os.path.lexists(snapshot):
        _check_snapshot(snapshot)
    for path in missing:
        with published(path, overwrite=False) as draft, writing(path), open(draft, "wb") as file:
            file.write(sources[path])
    if not os.path.lexists(snapshot):
        build(
            snapshot,
            servers_source=Source(servers, "ndjson"),
            observation_sources=[Source(observations, "csv")],
        )
        tell(f"wrote {servers}, {observations} and {snapshot}")
    return snapshot


def _stands(path: str, content: bytes) -> bool:
    """Say whether a file stands there already; one with other content is refused."""
    if not os.path.lexists(path):
        return False
    try:
        with open(path, "rb") as file:
            found = file.read(len(content) + 1)
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or 'cannot be read'}") from None
    if found != content:
        raise _foreign(path)
    return True


def _check_snapshot(path: str) -> None:
    try:
        with closing(open_file(path)) as snapshot:
            is_ours = snapshot.as_of == fleet.AS_OF and snapshot.identifiers("id") == fleet.IDS
    except SnapshotError:
        is_ours = False
    if not is_ours:
        raise _foreign(path)


def _foreign(path: str) -> UsageError:
    return UsageError(f"{path}: exists and is not the demo's; name another directory")
