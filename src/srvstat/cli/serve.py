"""`serve`: the API over HTTP."""

from typing import TYPE_CHECKING

import typer

from srvstat.access import read_access
from srvstat.cli.cors_options import CorsOption, describe_origins, parse_origins
from srvstat.cli.inherited_socket import take_inherited_descriptor
from srvstat.cli.options import SnapshotOption, find_snapshot
from srvstat.cli.output import Outcome, write
from srvstat.cli.rehearsal_options import (
    AllowPreferOption,
    DelayOption,
    DropOption,
    FailOption,
    SeedOption,
    describe_rehearsal,
    parse_rehearsal,
)
from srvstat.cli.serve_options import (
    ExplainErrorsOption,
    ExploreOption,
    HostOption,
    OptionalAccessFileOption,
    PortOption,
    RecordOption,
    parse_port,
)
from srvstat.cli.start_up import start_serving
from srvstat.cli.variables import has_flag, name_variables
from srvstat.contract.errors import SnapshotError, UsageError
from srvstat.render.text import escape_text

if TYPE_CHECKING:
    from srvstat.asgi.listeners import Listener
    from srvstat.asgi.settings import Settings


@name_variables
def serve(
    ctx: typer.Context,
    snapshot: SnapshotOption = None,
    access: OptionalAccessFileOption = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = "8000",
    record: RecordOption = None,
    explore: ExploreOption = False,
    cors: CorsOption = None,
    explain_errors: ExplainErrorsOption = False,
    delay: DelayOption = None,
    fail: FailOption = None,
    drop: DropOption = None,
    seed: SeedOption = None,
    allow_prefer: AllowPreferOption = False,
) -> Outcome:
    """Serve the API over HTTP.

    The page /docs shows the API in a browser. Logs to standard error, one JSON object per line.
    When another snapshot replaces the file, the service switches to it. Ctrl-C or SIGTERM stops the
    service after the requests in progress. A listening socket can be inherited from systemd.

    Example: srvstat serve --cors http://localhost:5173 --explain-errors

    Example: srvstat serve --snapshot snapshot.db --access access.toml
    """
    if record == "-":
        raise UsageError("--record -: not a file; name a new file or a recording")
    origins = parse_origins(cors or (), needs_keys=access is not None)
    rehearsal = parse_rehearsal(delay, fail, drop, seed, allow_prefer=allow_prefer)
    try:
        # These packages are optional, and the list of commands must work without them.
        from srvstat.asgi import server, settings  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise UsageError(
            f"serve: the package {error.name} is missing; run pip install 'srvstat[serve]'"
        ) from None
    with _listen(ctx, host, port, loopback_only=access is None) as listener:
        path = _find_snapshot(snapshot, access)
        chosen = settings.Settings(
            path,
            access,
            record,
            explore,
            origins,
            explains_errors=explain_errors,
            rehearsal=rehearsal,
        )
        text = _describe_service(chosen, listener.description)
        start_serving()
        server.serve(chosen, listener, lambda: write(text))
    return Outcome()


def _listen(ctx: typer.Context, host: str, port: str, *, loopback_only: bool) -> "Listener":
    """Return the socket of the parent process if there is one, or open one."""
    from srvstat.asgi import listeners  # noqa: PLC0415 - as above

    descriptor = take_inherited_descriptor()
    if descriptor is None:
        return listeners.open_listener(host, parse_port(port), loopback_only=loopback_only)
    for name in ("host", "port"):
        if has_flag(ctx, name):
            raise UsageError(f"--{name}: can't be combined with an inherited socket (LISTEN_FDS)")
    return listeners.inherit_listener(descriptor, loopback_only=loopback_only)


def _describe_service(settings: "Settings", address: str) -> bytes:
    lines = [f"serving {escape_text(settings.snapshot)} at {escape_text(address)}"]
    if settings.explore and address.startswith("http"):  # browsers know no UNIX sockets
        lines.append(f"explore page at {escape_text(address)}/")
    if settings.access is None:
        lines.append("without --access, any key is valid, and only this machine can connect")
    if settings.cors:
        lines.append(describe_origins(settings.cors))
    if settings.rehearsal:
        lines.append(
            f"rehearses failures, not for production: {describe_rehearsal(settings.rehearsal)}"
        )
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


def _find_snapshot(given: str | None, access: str | None) -> str:
    """Return the snapshot to serve.

    Raises SnapshotError if there is none; SourceError instead if the access file is invalid too.
    """
    try:
        return find_snapshot(given)
    except SnapshotError:
        if access is not None:
            read_access(access)  # its errors take precedence
        raise
