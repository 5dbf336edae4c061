"""Serve the API, create its keys, and print the files from which clients are generated."""

import hashlib
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from heapq import nlargest
from importlib import import_module
from itertools import islice
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from srvstat.analysis.parameters import Parameter
from srvstat.asgi import EVERY_ORIGIN, LogFormat, Settings, SimulationSettings
from srvstat.cli.options import (
    ACCESS,
    PLAN,
    AccessOption,
    AtOption,
    SnapshotOption,
    find_snapshot,
    parse_instant_option,
)
from srvstat.cli.output import (
    STDERR,
    Outcome,
    PlainForm,
    ReaderGoneError,
    is_colored,
    report,
    show,
    write,
)
from srvstat.cli.process import allow_cleanup, start_serving
from srvstat.contract import wire
from srvstat.contract.errors import (
    OutputError,
    ParameterError,
    SnapshotError,
    SourceError,
    UsageError,
)
from srvstat.contract.http import read_openapi
from srvstat.contract.requests import ServerReference
from srvstat.contract.time import format_instant
from srvstat.contract.wire import MAX_SAFE_INTEGER, quote_value
from srvstat.documents import load_documents
from srvstat.documents.document import remove_color_codes
from srvstat.documents.support import AccessCheck, PlanPermissions
from srvstat.files.paths import convert_write_errors
from srvstat.files.writing import write_atomically
from srvstat.operations.access import add_key, generate_key, read_access
from srvstat.operations.answers import resolve_servers
from srvstat.operations.faults import MAX_DELAY_SECONDS
from srvstat.render.text import escape_text
from srvstat.snapshot.read.file import MissingGameError
from srvstat.snapshot.read.snapshot import open_snapshot

if TYPE_CHECKING:
    import socket

    from srvstat.snapshot.rows import ServerRow

_MAX_PORT = 65_535
_MAX_NAMED = 3
"""The number of example servers in the startup text."""
_MAX_READ = 10_000
"""The maximum number of servers read for the startup text (about 0.1 s)."""
_MAX_NAME = 40
_ORIGIN = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<host>[a-z0-9._-]+|\[[0-9a-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?(?:[/?#].*)?",
    re.IGNORECASE,
)
"""An origin, or a page's address. A browser's origin has no user, and only ASCII characters."""
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_EXAMPLE = "http://localhost:5173"
_DEFAULT_SEED = 1
_MAX_SPEED = 86_400
"""The maximum speed: one day per second."""

_TIME = "([0-9]{1,6}(?:[.][0-9]{1,3})?)(ms|s)"
_DELAY = re.compile(rf"{_TIME}(?:[.][.]{_TIME})?")
_PER_SECOND = {"ms": 1_000, "s": 1}
_SHARE = re.compile("([0-9]{1,3}(?:[.][0-9]{1,3})?)%")
_FIRST_DESCRIPTOR = 3


@dataclass(frozen=True)
class SimulationOptions:
    """Options that simulate failures, before parsing."""

    delay: Annotated[
        str | None,
        Parameter(
            "Delay each request to at least this time, such as 200ms, or a random time, such as"
            " 50ms..2s.",
            "TIME[..TIME]",
        ),
    ] = None
    fail: Annotated[
        str | None, Parameter("Answer this percentage of requests with status 500.", "P%")
    ] = None
    drop: Annotated[
        str | None,
        Parameter("Close the connection instead of answering this share of the requests.", "P%"),
    ] = None
    seed: Annotated[
        int | None,
        Parameter(
            "The seed of random delays, failures and drops; the same seed repeats them"
            f" [default: {_DEFAULT_SEED}].",
            "N",
            least=0,
            most=MAX_SAFE_INTEGER,
        ),
    ] = None
    allow_prefer: Annotated[
        bool, Parameter("Let a request choose its error with a header such as Prefer: code=429.")
    ] = False
    faults: Annotated[
        str | None, Parameter("Simulate failures from the rules in this TOML file.", "FILE")
    ] = None
    control: Annotated[
        bool,
        Parameter(
            "Add /__srvstat/, where tests on this machine can read received requests and replace"
            " the --faults rules."
        ),
    ] = False
    at: AtOption = None
    speed: Annotated[
        int | None,
        Parameter(
            "Advance the --at time N times as fast as real time [default: the time stays fixed].",
            "N",
            least=1,
            most=_MAX_SPEED,
        ),
    ] = None
    set: Annotated[
        list[str] | None,
        Parameter(
            "Override a field in Get Server responses, such as harbor-city.offline=true.",
            "ID.FIELD=VALUE",
            has_spaces=True,
        ),
    ] = None

    def parse(self, *, explore: bool) -> SimulationSettings:
        """Return the settings. Raises UsageError if an option is invalid or can't be combined."""
        if self.at is None and self.speed is not None:
            raise ParameterError("{speed} requires {at} TIME")
        if self.at is not None and explore:
            raise ParameterError("{at} can't be combined with {explore}, which shows all data")
        at = parse_instant_option("--at", self.at)
        if self.seed is not None and (self.delay, self.fail, self.drop) == (None, None, None):
            raise ParameterError("{seed}: nothing to draw; add {delay}, {fail} or {drop}")
        return SimulationSettings(
            delay=None if self.delay is None else _parse_delay(self.delay),
            fail=_parse_share("fail", self.fail),
            drop=_parse_share("drop", self.drop),
            seed=_DEFAULT_SEED if self.seed is None else self.seed,
            allows_prefer=self.allow_prefer,
            rules=self.faults,
            control=self.control,
            at=None if at is None else (at, self.speed or 0),
        )

    def describe(self) -> str:
        """Return the options as on a command line, or empty text if there are none."""
        drawn = {"delay": self.delay, "fail": self.fail, "drop": self.drop}
        parts = [f"--{name} {value}" for name, value in drawn.items() if value is not None]
        if parts:
            parts.append(f"--seed {_DEFAULT_SEED if self.seed is None else self.seed}")
        if self.allow_prefer:
            parts.append("--allow-prefer")
        if self.faults is not None:
            parts.append(f"--faults {escape_text(self.faults)}")
        return " ".join(parts)


@dataclass(frozen=True)
class AddressOptions:
    """Options for the address that a service listens on."""

    panel = "Address"

    host: Annotated[str, Parameter("The address to listen on.", "ADDRESS")] = "127.0.0.1"
    port: Annotated[
        int,
        Parameter("The port to listen on; 0 picks a free port.", "PORT", least=0, most=_MAX_PORT),
    ] = 8000
    allow_host: Annotated[
        list[str] | None,
        Parameter(
            "Without --access, also respond to requests for this host name, such as a proxy's;"
            " repeatable. Other names are refused, to prevent DNS rebinding.",
            "NAME",
        ),
    ] = None


@dataclass(frozen=True)
class PageOptions:
    """Options for the pages of a service, and for pages of other sites that may call it."""

    panel = "Pages"

    explore: Annotated[
        bool, Parameter("Serve a page at / to search, compare and chart servers in a browser.")
    ] = False
    cors: Annotated[
        list[str] | None,
        Parameter(
            "Allow web pages of this origin, such as http://localhost:5173, to call the API;"
            " repeatable. Without --access, * allows all.",
            "ORIGIN",
        ),
    ] = None

    def parse_origins(self, *, needs_keys: bool) -> tuple[str, ...]:
        """Return the origins of --cors. `needs_keys`: whether there is an access file.

        Raises ParameterError if an origin is invalid.
        """
        origins = tuple(self.cors or ())
        if needs_keys and EVERY_ORIGIN in origins:
            raise ParameterError(
                "{cors}: `*` is not allowed with {access}, because any website could use a leaked"
                f" key; name the origins, such as {_EXAMPLE}"
            )
        for value in origins:
            if value != EVERY_ORIGIN:
                _check_origin(value)
        return origins


_CHANGE = re.compile(r"([A-Za-z0-9-]{1,128})\.(players\.)?(\w+)=(.*)", re.DOTALL)


@contextmanager
def _change_servers(path: str, changes: Sequence[str]) -> Iterator[str]:
    """Yield the path of a snapshot with the changes of --set: an updated copy, if there are any.

    Raises UsageError for an invalid change, ServerNotFoundError for an unknown server,
    SnapshotError if the snapshot is unusable, and OutputError if the copy can't be written.
    """
    if not changes:
        yield path
        return
    if os.path.isdir(path):
        raise ParameterError("{set}: needs a snapshot in one file; {path} is a folder", path=path)
    # Imported here, because most services need neither, and importing numpy takes longer than
    # starting.
    from srvstat.snapshot.write.intake import Inputs  # noqa: PLC0415
    from srvstat.snapshot.write.update import update  # noqa: PLC0415
    from srvstat.sources.source import Source  # noqa: PLC0415

    records: dict[str, Any] = {}
    with closing(open_snapshot(path)) as snapshot:
        for change in changes:
            match = _CHANGE.fullmatch(change)
            if match is None:
                problem = "{set}: {value} is not ID.FIELD=VALUE, such as harbor-city.offline=true"
                raise ParameterError(problem, value=quote_value(change))
            name, is_nested, field, value = match.groups()
            [server] = resolve_servers(snapshot, [ServerReference(identifier=name, by="id")])
            given = {key: one for key, one in snapshot.describe_record(server).items() if one != ""}
            record = records.setdefault(name, given)
            try:
                decoded = wire.decode(value.encode("utf-8", "replace"))
            except wire.JsonError:
                decoded = value
            part = record["players"] if is_nested else record
            if not isinstance(part, dict):
                raise ParameterError("{set}: players: must be an object")
            part[field] = decoded
    with TemporaryDirectory() as directory:
        copy, changed = (os.path.join(directory, name) for name in ("snapshot.db", "set.ndjson"))
        with convert_write_errors(copy):
            shutil.copyfile(path, copy)
        lines = [wire.encode(record) + b"\n" for record in records.values()]
        write_atomically(changed, b"".join(lines), overwrite=False)
        try:
            update(copy, Inputs(Source(changed, "ndjson"), ()))
        except SourceError as error:
            reason = error.reason.rpartition(f"{changed}, line ")[2].partition(": ")[2]
            raise ParameterError("{set}: {problem}", problem=reason) from None
        yield copy


RecordOption = Annotated[
    str | None,
    Parameter(
        "Append each request and its response to this file, without keys, for srvstat replay.",
        "FILE",
    ),
]


def serve(
    ctx: typer.Context,
    *,
    snapshot: SnapshotOption = None,
    access: Annotated[
        AccessOption,
        "The access file, with plans and keys. Without it, any key is valid, and the service"
        " listens only on this machine.",
    ] = None,
    address: AddressOptions,
    record: RecordOption = None,
    pages: PageOptions,
    explain_errors: Annotated[
        bool, Parameter("Add an X-Srvstat-Reason header with the reason for each error.")
    ] = False,
    log_format: Annotated[
        Literal["text", "json"] | None,
        Parameter("Log short text lines (default on a terminal) or JSON lines."),
    ] = None,
    simulation: SimulationOptions,
) -> Outcome:
    """Serve the API over HTTP.

    The page /docs shows the API in a browser. Each request is logged to standard error. When
    another snapshot replaces the file, the service switches to it. Ctrl-C or SIGTERM stops the
    service after the requests in progress. Supports systemd socket activation.

    Example: srvstat serve --cors http://localhost:5173 --explain-errors
    """
    if record == "-":
        raise ParameterError("{record} -: not a file; name a new file or a recording")
    origins = pages.parse_origins(needs_keys=access is not None)
    simulated = simulation.parse(explore=pages.explore)
    server = _load_server()
    with ExitStack() as stack:
        listener = stack.enter_context(_listen(ctx, address, loopback_only=access is None))
        if access is not None:
            read_access(access)  # its errors must precede errors of the snapshot
        path = find_snapshot(snapshot)
        chosen = Settings(
            stack.enter_context(_change_servers(path, simulation.set or ())),
            access,
            record,
            pages.explore,
            origins,
            explains_errors=explain_errors,
            hosts=_list_hosts(listener, address),
            simulation=simulated,
            log_format=_choose_log(log_format),
        )
        url = server.describe_address(listener)
        text = _describe_service(chosen, simulation, url, path)
        steps = list(_list_steps(chosen, url))
        start_serving()
        server.serve(chosen, listener, partial(_announce, text, steps))
    return Outcome()


def _announce(text: bytes, steps: Sequence[str]) -> None:
    write(text)
    report(*steps)


def _list_hosts(listener: "socket.socket", address: AddressOptions) -> tuple[str, ...] | None:
    """Return the allowed names, or None for a UNIX socket, which browsers can't reach."""
    if not isinstance(
        listener.getsockname(), tuple
    ):  # the address of an abstract UNIX socket is bytes
        return None
    for name in address.allow_host or ():
        if "/" in name:
            host = name.rpartition("://")[2].partition("/")[0]
            problem = "{allow_host}: {value} is not a host name; write {host}"
            raise ParameterError(problem, value=quote_value(name), host=host)
    return tuple(address.allow_host or ())


def _load_server() -> ModuleType:
    """Return the module of the server. Raises UsageError if its optional packages are missing."""
    try:
        return import_module("srvstat.asgi.server")
    except ModuleNotFoundError as error:
        raise UsageError(
            f"serve: the package {error.name} is missing; run pip install 'srvstat[serve]'"
        ) from None


def _choose_log(given: Literal["text", "json"] | None) -> LogFormat:
    is_terminal = os.isatty(STDERR)
    if given == "json" or not (given or is_terminal):
        return "json"
    return "color" if is_colored(is_terminal=is_terminal) else "text"


def _list_steps(settings: Settings, address: str) -> Iterator[str]:
    """Yield the startup hints for interactive use."""
    if settings.log_format == "json" or not address.startswith("http"):
        return  # for a program, or at a UNIX socket, which browsers can't open
    servers: list[ServerRow] = []
    with suppress(SnapshotError), closing(open_snapshot(settings.snapshot)) as snapshot:
        read = islice(snapshot.iter_servers(), _MAX_READ)
        servers = nlargest(_MAX_NAMED, read, key=lambda server: server.players_current)
    key = f"-H 'X-Gateway-Key: {'any' if settings.access is None else 'YOUR_KEY'}'"
    ids = [server.id for server in servers]
    example = f"{address}/healthz"
    if complete := next((server.id for server in servers if server.game), None):
        example = f"{address}/gateway/v1/servers/{complete} {key}"
    elif len(ids) > 1:
        asked = {"servers": [{"identifier": one, "by": "id"} for one in ids[:2]]}
        example = f"{address}/gateway/v1/compare {key} --json '{wire.encode(asked).decode()}'"
    yield ""
    yield f"  docs     {address}/docs"
    if settings.explore:
        yield f"  explore  {address}/"
    yield f"  try      curl {example}"
    for at, server in enumerate(servers):
        title = "" if at else "servers"
        name = escape_text(remove_color_codes(server.hostname), max_length=_MAX_NAME)
        name = "" if name == server.id else name
        yield f"  {title:7}  {server.id:{max(map(len, ids))}}  {name}".rstrip()
    yield "  Ctrl+C stops the service"
    yield ""


def _listen(ctx: typer.Context, address: AddressOptions, *, loopback_only: bool) -> "socket.socket":
    """Return the socket inherited from the parent process, if any, or open a socket."""
    from srvstat.asgi import server  # noqa: PLC0415 - takes 150 ms

    descriptor = take_inherited_descriptor()
    if descriptor is None:
        return server.open_listener(address.host, address.port, loopback_only=loopback_only)
    for name in ("host", "port"):
        source = ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise UsageError(f"--{name}: can't be combined with an inherited socket (LISTEN_FDS)")
    return server.inherit_listener(descriptor, loopback_only=loopback_only)


def _describe_service(
    settings: Settings, simulation: SimulationOptions, address: str, path: str
) -> bytes:
    """Describe the started service. `path` is the snapshot that the user named."""
    lines = [f"serving {escape_text(path)} at {escape_text(address)}"]
    if settings.explore and address.startswith("http") and settings.log_format == "json":
        lines.append(f"explore page at {escape_text(address)}/")
    if settings.access is None:
        lines.append("without --access, any key is valid, and only this machine can connect")
    # The service itself reports errors of the snapshot, after errors of the access file.
    with suppress(SnapshotError), closing(open_snapshot(settings.snapshot)) as snapshot:
        lacking = (file.find_without_game() for file in snapshot.iter_files())
        if server_id := next(filter(None, lacking), None):
            reason = escape_text(MissingGameError(path, server_id).reason)
            lines.append(f"Get Server is an error for servers without a game: {reason}")
        at, first = settings.simulation.at, snapshot.file_row.first_observed_at
        if at and at[0] > snapshot.as_of:
            end = format_instant(snapshot.as_of)
            lines.append(f"--at is after the end of the snapshot, {end}")
        elif at and first is not None and at[0] < first:
            lines.append(f"--at is before the first observation, {format_instant(first)}")
    if EVERY_ORIGIN in settings.cors:
        lines.append("any web page that is open in a browser on this machine can call the API")
    elif settings.cors:
        lines.append(f"web pages of {', '.join(settings.cors)} can call the API")
    lines += _list_simulations(settings.simulation, simulation)
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


def _list_simulations(settings: SimulationSettings, given: SimulationOptions) -> Iterator[str]:
    """Yield lines that describe how the service differs from the API in production."""
    if given.set:
        yield f"serves a copy of the snapshot with {escape_text(', '.join(given.set))}"
    if settings.at:
        start, speed = settings.at
        passes = f", and {speed:,} times as fast as real time" if speed else ""
        yield f"answers as of {format_instant(start)}{passes}"
    if settings.control:
        yield "--control: any program on this machine can read requests and set responses"
    if simulated := given.describe():
        yield f"simulating failures (not for production): {simulated}"


def take_inherited_descriptor() -> int | None:
    """Return the descriptor of the socket that the parent process passed, or None.

    Removes the environment variables, which are not intended for child processes.

    Raises UsageError for more than one socket.
    """
    names = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID")
    passed = {name: os.environ.pop(name, "") for name in names}
    if passed["LISTEN_PID"] != str(os.getpid()) or passed["LISTEN_FDS"] in ("", "0"):
        return None
    if passed["LISTEN_FDS"] != "1":
        count = quote_value(passed["LISTEN_FDS"])
        raise UsageError(f"LISTEN_FDS: {count} sockets; pass exactly one, with one ListenStream=")
    return _FIRST_DESCRIPTOR


def _check_origin(value: str) -> None:
    """Check that a value is an origin exactly as browsers send it."""
    if value == "null":
        raise ParameterError(
            "{cors}: null is the origin of sandboxed pages of any website, and of files; serve the"
            " file over HTTP, for example with python3 -m http.server, and name that origin"
        )
    shown = quote_value(value.rpartition("@")[2])  # without a password
    match = _ORIGIN.fullmatch(value)
    if not match or int(match["port"] or 0) > _MAX_PORT:
        raise ParameterError(
            "{cors}: {value} is not an origin; write scheme://host[:port], such as " + _EXAMPLE,
            value=shown,
        )
    scheme, host, port = (part and part.lower() for part in match.groups())
    has_port = port and port != _DEFAULT_PORTS.get(scheme)
    origin = f"{scheme}://{host}" + (f":{int(port)}" if has_port else "")
    if value != origin:
        raise ParameterError(
            "{cors}: {value} is not an origin; write {origin}", origin=origin, value=shown
        )


def _parse_delay(text: str) -> tuple[float, float] | None:
    """Return the shortest and the longest delay in seconds, or None if both are 0."""
    found = _DELAY.fullmatch(text)
    if not found:
        raise ParameterError(
            "{delay}: {value} is not a time with a unit, such as 200ms, 1.5s or 50ms..2s",
            value=quote_value(text),
        )
    times = [float(found[at]) / _PER_SECOND[found[at + 1]] for at in (1, 3) if found[at]]
    shortest, longest = min(times), max(times)
    if longest > MAX_DELAY_SECONDS:
        raise ParameterError(
            f"{{delay}}: {{value}} is too long; at most {MAX_DELAY_SECONDS}s, so that the response"
            " arrives before the service closes the connection",
            value=quote_value(text),
        )
    return (shortest, longest) if longest else None


def _parse_share(name: str, text: str | None) -> float:
    """Return a share from 0 to 1, which is 0 without the option."""
    if text is None:
        return 0.0
    found = _SHARE.fullmatch(text)
    share = float(found[1]) / 100 if found else None
    if share is None or share > 1:
        raise ParameterError(
            f"{{{name}}}: {{value}} is not a share from 0% to 100%, such as 20%",
            value=quote_value(text),
        )
    return share


_ACCESS_FILE = "access.toml"
_DOCUMENTS = load_documents()


def new_key(
    plan: Annotated[str, PLAN, "The plan to assign to the key."],
    access: Annotated[str, ACCESS] = _ACCESS_FILE,
) -> Outcome:
    """Create a key and print it once.

    Append the hash of the key and its plan to the access file.

    Example: srvstat access new-key --plan starter
    """
    read_access(access).get_plan(plan)
    key = generate_key()
    with allow_cleanup():
        add_key(access, plan, key)
    try:
        write(f"{key}\n".encode())
    except (OutputError, ReaderGoneError):
        digest = f'sha256 = "{hashlib.sha256(key.encode()).hexdigest()}"'
        report(f"{access}: the key was added but not printed; remove the one with {digest}")
        raise
    report(f"new key for plan {plan}; copy it now: {access} stores only its hash")
    return Outcome()


def check(form: PlainForm, access: Annotated[str, ACCESS] = _ACCESS_FILE) -> Outcome:
    """Show what each plan of an access file allows.

    Example: srvstat access check --access access.toml
    """
    found = read_access(access)
    keys = Counter(plan.name for plan in found.keys.values())
    plans = [
        PlanPermissions(**plan.model_dump(), keys=keys[name]) for name, plan in found.plans.items()
    ]
    return show(AccessCheck(plans=tuple(plans), keys=keys.total()), form.choose())


def schema(
    name: Annotated[
        str,
        Parameter(
            f"A document: {', '.join(_DOCUMENTS)}.",
            "NAME",
            completes=tuple(_DOCUMENTS),
            is_argument=True,
        ),
    ],
) -> Outcome:
    """Print the JSON Schema of a document.

    A document is a command's JSON output. For get and compare, see `srvstat openapi`.

    Example: srvstat schema replay
    """
    if name not in _DOCUMENTS:
        raise UsageError(
            f"no document {quote_value(name)}; use one of {', '.join(_DOCUMENTS)}; for API schemas,"
            " run srvstat openapi"
        )
    return Outcome([_DOCUMENTS[name].encode_schema() + b"\n"])


def openapi() -> Outcome:
    """Print the OpenAPI document of the service.

    Its examples are responses from the demo snapshot.

    Example: srvstat openapi > openapi.json
    """
    return Outcome([read_openapi()])
