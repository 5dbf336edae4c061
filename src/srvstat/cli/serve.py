"""`serve`: the answers over HTTP."""

import re
from typing import Annotated

import typer

from srvstat.cli.options import SnapshotOption, snapshot_path
from srvstat.cli.output import Outcome, write
from srvstat.cli.start_up import start_serving
from srvstat.contract import wire
from srvstat.contract.errors import SnapshotError, UsageError
from srvstat.render.text import safe_text

_LAST_PORT = 65_535


def serve(
    snapshot: SnapshotOption = None,
    access: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The plans and keys that are good. Without it any key is, and only this machine"
            " can ask.",
        ),
    ] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen at.")] = (
        "127.0.0.1"
    ),
    port: Annotated[
        str, typer.Option(metavar="PORT", help="Its port; 0 takes a free one.")
    ] = "8000",
) -> Outcome:
    """Serve the API over HTTP.

    Paths, keys and errors are the API's. Standard error is the log, one JSON object a line. A file
    that takes the snapshot's place is used from then on. Ctrl-C or SIGTERM finishes what is under
    way.

    Example: srvstat serve --snapshot snapshot.db --access access.toml
    """
    number = _port_of(port)
    try:
        from srvstat.asgi import server
    except ModuleNotFoundError as error:
        raise UsageError(
            f"serve needs the package {error.name}: install srvstat with its extra, srvstat[serve]"
        ) from None
    listener = server.open_listener(host, number, loopback_only=access is None)
    path = _snapshot_path(snapshot, access)
    address = listener.getsockname()
    at = f"[{address[0]}]" if ":" in address[0] else address[0]
    lines = [f"serving {safe_text(path)} at http://{at}:{address[1]}"]
    if access is None:
        lines.append("without --access every key is good, and only this machine can ask")
    text = "".join(f"{line}\n" for line in lines).encode("utf-8")
    start_serving()
    server.serve(path, access, listener, lambda: write(text))
    return Outcome()


def _port_of(text: str) -> int:
    """Return the port that --port names; Python's own conversion would take `1_0` and `+10`, too.

    Raises UsageError.
    """
    if not re.fullmatch("0|[1-9][0-9]{0,4}", text) or int(text) > _LAST_PORT:
        raise UsageError(f"--port: {wire.quote_value(text)} is not a number from 0 to {_LAST_PORT}")
    return int(text)


def _snapshot_path(given: str | None, access: str | None) -> str:
    """Return the snapshot to serve.

    Raises SourceError where the access file is refused, else SnapshotError where there is none.
    """
    try:
        return snapshot_path(given)
    except SnapshotError:
        from srvstat.access import read_access

        if access is not None:
            read_access(access)  # what is wrong with it is told first
        raise
