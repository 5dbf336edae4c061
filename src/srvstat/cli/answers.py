"""`get` and `compare`: the contract's two questions, and hints for errors of all questions."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from io import BufferedReader
from typing import TYPE_CHECKING, Annotated

from srvstat.analysis.parameters import By, Parameter
from srvstat.cli import options
from srvstat.cli.output import (
    ChartForm,
    Form,
    Outcome,
    PlainForm,
    count_chart_values,
    encode_line,
    report,
    show,
)
from srvstat.contract.errors import (
    ApiError,
    InvalidRequestError,
    ParameterError,
    ServerNotFoundError,
    SourceError,
    SrvstatError,
)
from srvstat.contract.requests import (
    MAX_BODY_BYTES,
    CompareRequest,
    Namespace,
    ServerReference,
    build_compare_request,
    build_server_reference,
    parse_compare_request,
)
from srvstat.contract.responses import CompareResponse, ErrorResponse, Response, ServerResponse
from srvstat.contract.time import find_window
from srvstat.files.reading import open_input, split_lines
from srvstat.operations import answers as operations
from srvstat.operations.answers import UnknownServerError
from srvstat.render.text import format_time
from srvstat.snapshot.read.snapshot import Snapshot, open_snapshot

if TYPE_CHECKING:
    from srvstat.documents.analysis import Comparison, StepTable
    from srvstat.documents.snapshot import ServerTable
    from srvstat.documents.support import Explanation
    from srvstat.operations.access import Plan

_CHUNK_BYTES = 1 << 16

_RequestFile = Annotated[
    str | None,
    Parameter("Answer a JSON request body, exactly as a customer sent it.", "FILE|-"),
]


def get(
    identifier: Annotated[
        str,
        Parameter(
            "A server: ID, id:ID or cfxId:ID.",
            "IDENTIFIER",
            completes="identifier",
            is_argument=True,
        ),
    ],
    form: PlainForm,
    by: By = None,
    at: options.AtOption = None,
    snapshot: options.SnapshotOption = None,
    plan: options.PlanOption = None,
    access: options.AccessOption = None,
    explain: options.ExplainOption = False,
) -> Outcome:
    """Show the public detail of one server.

    Example: srvstat get --by cfxId abc123
    """
    chosen = form.choose()
    instant = options.parse_instant_option("--at", at)
    permissions = options.find_plan(plan, access)
    with add_name_hint([identifier], by, snapshot):
        request = build_server_reference(identifier, by=by)
    options.check_plan(permissions, request)
    with _open_snapshot(snapshot, instant) as file, add_hint(file):
        return show(_get(file, request, chosen, instant, explain=explain), chosen)


def compare(
    form: ChartForm,
    identifiers: Annotated[
        list[str] | None,
        Parameter(
            "2 to 5 servers: ID, id:ID or cfxId:ID.",
            "IDENTIFIER",
            completes="identifier",
            is_argument=True,
        ),
    ] = None,
    by: By = None,
    range: options.RangeOption = None,
    request: _RequestFile = None,
    batch: Annotated[
        _RequestFile,
        "Answer JSON requests, one per line; print one answer or API error per line, and exit with"
        " 0 if all lines were answered.",
    ] = None,
    at: options.AtOption = None,
    snapshot: options.SnapshotOption = None,
    plan: options.PlanOption = None,
    access: options.AccessOption = None,
    explain: options.ExplainOption = False,
) -> Outcome:
    """Compare 2 to 5 servers over one range.

    Example: srvstat compare srv-1 srv-2 cfxId:abc123 --range 7d
    """
    chosen = form.choose()
    instant = options.parse_instant_option("--at", at)
    for name, value in (("request", request), ("batch", batch)):
        if value is not None and (identifiers or by is not None or range is not None):
            raise ParameterError(
                f"{{{name}}} can't be combined with identifiers, {{by}} or {{range}}"
            )
    if batch is not None and (request is not None or form.table or explain or form.chart):
        raise ParameterError(
            "{batch} can't be combined with {request}, {table}, {explain} or {chart}"
        )
    permissions = options.find_plan(plan, access)
    if batch is not None:
        return Outcome(_answer_batch(batch, snapshot, instant, permissions))
    body = None
    if request is not None:
        with _open_requests(request) as opened:
            body = opened.read(MAX_BODY_BYTES + 1)
    with add_name_hint(identifiers or [], by, snapshot):
        asked = (
            build_compare_request(identifiers or [], by=by, range=range)
            if body is None
            else parse_compare_request(body)
        )
    options.check_plan(permissions, asked)
    with _open_snapshot(snapshot, instant) as file, add_hint(file):
        answer = _compare(file, asked, chosen, instant, explain=explain)
        return show(answer, chosen, chart=_draw(file, asked, instant) if form.chart else None)


def _get(
    snapshot: Snapshot, request: ServerReference, form: Form, at: int | None, *, explain: bool
) -> "ServerResponse | ServerTable | Explanation":
    # Importing what only tables need takes 3 ms, and 40 ms with Rich.
    if explain:
        from srvstat.support.explain import explain_server  # noqa: PLC0415 - see above

        return explain_server(snapshot, request, at)
    if form is Form.JSON:
        return operations.get_server(snapshot, request)
    from srvstat.analysis.servers import describe_server  # noqa: PLC0415 - see above

    return describe_server(snapshot, request, at=at)


def _compare(
    snapshot: Snapshot, request: CompareRequest, form: Form, at: int | None, *, explain: bool
) -> "CompareResponse | Comparison | Explanation":
    if explain:
        from srvstat.support.explain import explain_comparison  # noqa: PLC0415 - see _get

        return explain_comparison(snapshot, request, at)
    if form is Form.JSON:
        return operations.compare(snapshot, request, at=at)
    from srvstat.analysis.servers import describe_comparison  # noqa: PLC0415 - see _get

    return describe_comparison(snapshot, request, at=at)


def _draw(snapshot: Snapshot, request: CompareRequest, at: int | None) -> "StepTable":
    """Return the averages of the window in steps, as many as fit the screen."""
    from srvstat.analysis.history import compute_step_chart  # noqa: PLC0415 - see _get
    from srvstat.documents.analysis import HistoryQuery  # noqa: PLC0415 - see _get

    servers = operations.resolve_servers(snapshot, request.servers)
    window = find_window(request.range, snapshot.as_of if at is None else at)
    query = HistoryQuery(window, zone="UTC")
    return compute_step_chart(snapshot, servers, query, None, count_chart_values())


def _answer_batch(
    name: str, snapshot: str | None, at: int | None, plan: "Plan | None"
) -> Iterator[bytes]:
    """Yield an answer for each line of a batch, as soon as it is computed."""
    with _open_requests(name) as opened, _open_snapshot(snapshot, at) as file:
        chunks = iter(lambda: opened.read1(_CHUNK_BYTES), b"")
        for line, body in enumerate(split_lines(chunks, MAX_BODY_BYTES), 1):
            yield encode_line(_answer_line(file, body, at, plan, line))


def _answer_line(
    snapshot: Snapshot, body: bytes, at: int | None, plan: "Plan | None", line: int
) -> Response:
    try:
        request = parse_compare_request(body)
        options.check_plan(plan, request)
        return operations.compare(snapshot, request, at=at)
    except ApiError as error:
        report(f"line {line}: {error.reason}")
        return ErrorResponse.from_error(error)


@contextmanager
def _open_snapshot(name: str | None, at: int | None) -> Iterator[Snapshot]:
    """Open the snapshot, and warn if `at` is later than its data."""
    with closing(open_snapshot(options.find_snapshot(name))) as snapshot:
        if at is not None and at > snapshot.as_of:
            end = format_time(snapshot.as_of)
            report(f"warning: --at is later than the snapshot, which ends {end}")
        yield snapshot


@contextmanager
def _open_requests(name: str) -> Iterator[BufferedReader]:
    if not name:
        raise SourceError("request file: the name is empty; name a file, or - for standard input")
    with open_input(name) as file:
        yield BufferedReader(file)


@contextmanager
def add_hint(*snapshots: Snapshot) -> Iterator[None]:
    """Add a hint to the error of an unknown server or name that the block raises.

    The first snapshot that has a hint gives it.
    """
    try:
        yield
    except UnknownServerError as error:
        reference = error.reference
        hint = _find_hint(snapshots, reference.identifier, reference.by)
        raise ServerNotFoundError(error.reason + hint) from None
    except InvalidRequestError as error:
        from srvstat.analysis.selection import UnknownNameError  # noqa: PLC0415 - see _find_hint

        if not isinstance(error, UnknownNameError):
            raise
        hint = _find_hint(snapshots, error.name, "id")
        raise InvalidRequestError(error.reason + hint) from None


@contextmanager
def add_name_hint(
    identifiers: Sequence[str], by: str | None, snapshot: str | None
) -> Iterator[None]:
    """Add a hint to the error of an identifier that can't be one, but may be the name of a server.

    The request is invalid, whatever the state of the snapshot.
    """
    try:
        yield
    except InvalidRequestError as error:
        from srvstat.analysis.selection import Name, build_references  # noqa: PLC0415 - see _find_hint

        hint = ""
        with suppress(SrvstatError):
            references = build_references(identifiers, by)
            names = [one.text for one in references if isinstance(one, Name) and not one.reference]
            if names:
                with closing(open_snapshot(options.find_snapshot(snapshot))) as file:
                    hint = _find_hint([file], names[0], "id")
        raise InvalidRequestError(error.reason + hint) from None


def _find_hint(snapshots: Iterable[Snapshot], unknown: str, by: Namespace) -> str:
    """Return a hint after a semicolon, or nothing."""
    # Only an error pays for this import.
    from srvstat.cli.hints import suggest_servers  # noqa: PLC0415 - see above

    hints = (suggest_servers(snapshot, unknown, by) for snapshot in snapshots)
    return next((f"; {hint}" for hint in hints if hint), "")
