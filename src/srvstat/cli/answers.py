"""The commands `get` and `compare`, for the API's two operations."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader
from typing import TYPE_CHECKING, Annotated, TypeVar

from srvstat.analysis.parameters import IDENTIFIER, By, Parameter
from srvstat.cli import options, output
from srvstat.cli.output import ChartForm, Form, Outcome, PlainForm, encode_line, report, show
from srvstat.contract import errors, requests
from srvstat.contract.requests import CompareRequest, ServerReference
from srvstat.contract.responses import CompareResponse, ErrorResponse, Response
from srvstat.contract.windows import find_window
from srvstat.files.reading import open_input, split_lines
from srvstat.operations import answers as operations
from srvstat.render.text import format_time
from srvstat.snapshot.read.snapshot import Snapshot

if TYPE_CHECKING:
    from srvstat.documents.analysis import Stats, StepTable
    from srvstat.documents.support import Explanation
    from srvstat.operations.access import Plan

_CHUNK_BYTES = 1 << 16

_RequestFile = Annotated[
    str | None, Parameter("A file with one JSON request body, as a customer sent it.", "FILE|-")
]


def get(
    form: PlainForm,
    *,
    identifier: Annotated[str | None, IDENTIFIER, "A server: an id, id:ID or cfxId:ID."] = None,
    by: By = None,
    at: options.AtOption = None,
    snapshot: options.SnapshotOption = None,
    customer: options.PlanOptions,
    explain: options.ExplainOption = False,
) -> Outcome:
    """Show the public details of one server.

    Example: srvstat get harbor-city
    """
    chosen = form.choose()
    instant = options.parse_instant_option("--at", at)
    plan = customer.find_plan()
    named = options.pick_servers(1, 1) if identifier is None else [identifier]
    if not named:
        raise errors.UsageError(f"no server given; {options.name_servers()}")

    def build(identifiers: Sequence[str]) -> ServerReference:
        return requests.build_server_reference(identifiers[0], by=by)

    # Importing the modules that only tables need takes 3 ms, and 40 ms with Rich.
    with _open_named(snapshot, instant, plan, build, named, by) as (file, request):
        if explain:
            from srvstat.support.explain import explain as describe  # noqa: PLC0415 - see above

            return show(describe(file, request, instant), chosen)
        if chosen is Form.JSON:
            return show(operations.get_server(file, request), chosen)
        from srvstat.analysis.servers import describe_server  # noqa: PLC0415 - see above

        return show(describe_server(file, request, at=instant), chosen)


def compare(
    form: ChartForm,
    *,
    identifiers: Annotated[
        list[str] | None, IDENTIFIER, "2 to 5 servers: an id, id:ID or cfxId:ID."
    ] = None,
    by: By = None,
    range: options.RangeOption = None,
    request: _RequestFile = None,
    batch: Annotated[
        _RequestFile,
        "A file with one JSON request per line. Prints one response or API error per line, and"
        " exits with 0 even if some are errors.",
    ] = None,
    at: options.AtOption = None,
    snapshot: options.SnapshotOption = None,
    customer: options.PlanOptions,
    explain: options.ExplainOption = False,
) -> Outcome:
    """Compare 2 to 5 servers over one range.

    Example: srvstat compare harbor-city new-frontier cfxId:ns6r0b --range 7d
    """
    chosen = form.choose()
    instant = options.parse_instant_option("--at", at)
    for name, value in (("request", request), ("batch", batch)):
        if value is not None and (identifiers or by is not None or range is not None):
            raise errors.ParameterError(
                f"{{{name}}} can't be combined with identifiers, {{by}} or {{range}}"
            )
    if batch is not None and (request is not None or form.table or explain or form.chart):
        raise errors.ParameterError(
            "{batch} can't be combined with {request}, {table}, {explain} or {chart}"
        )
    plan = customer.find_plan()
    if batch is not None:
        return Outcome(_answer_batch(batch, snapshot, instant, plan))
    if request is None and not identifiers:
        identifiers = options.pick_servers(requests.MIN_SERVERS, requests.MAX_SERVERS)

    def build(named: Sequence[str]) -> CompareRequest:
        if request is None:
            return requests.build_compare_request(named, by=by, range=range)
        with _open_requests(request) as opened:
            return requests.parse_compare_request(opened.read(requests.MAX_BODY_BYTES + 1))

    with _open_named(snapshot, instant, plan, build, identifiers or [], by) as (file, asked):
        answer = _compare(file, asked, chosen, instant, explain=explain)
        if not form.chart:
            return show(answer, chosen)
        screen = output.create_screen()
        chart = _compute_chart(file, asked, instant, output.count_chart_values(screen))
        return show(answer, chosen, chart=chart, screen=screen)


def _compare(
    snapshot: Snapshot, request: CompareRequest, form: Form, at: int | None, *, explain: bool
) -> "CompareResponse | Stats | Explanation":
    if explain:
        from srvstat.support.explain import explain as describe  # noqa: PLC0415 - see get

        return describe(snapshot, request, at)
    if form is Form.JSON:
        return operations.compare(snapshot, request, at=at)
    from srvstat.analysis.servers import describe_comparison  # noqa: PLC0415 - see get

    return describe_comparison(snapshot, request, at=at)


def _compute_chart(
    snapshot: Snapshot, request: CompareRequest, at: int | None, most: int
) -> "StepTable":
    """Return the averages of the window in at most `most` steps."""
    from srvstat.analysis.history import compute_step_chart  # noqa: PLC0415 - see get
    from srvstat.analysis.selection import Question  # noqa: PLC0415 - see get
    from srvstat.documents.analysis import HistoryQuery  # noqa: PLC0415 - see get

    servers = operations.resolve_servers(snapshot, request.servers)
    window = find_window(request.range, snapshot.as_of if at is None else at)
    question, query = Question(snapshot, servers, window), HistoryQuery(window, zone="UTC")
    return compute_step_chart(question, query, None, most)


def _answer_batch(
    name: str, snapshot: str | None, at: int | None, plan: "Plan | None"
) -> Iterator[bytes]:
    """Yield the response to each line of a batch, as soon as it is computed."""
    with _open_requests(name) as opened, _open_snapshot(snapshot, at) as file:
        chunks = iter(lambda: opened.read1(_CHUNK_BYTES), b"")
        for line, body in enumerate(split_lines(chunks, requests.MAX_BODY_BYTES), 1):
            answer: Response
            try:
                request = requests.parse_compare_request(body)
                if plan is not None:
                    plan.check_request(request)
                answer = operations.compare(file, request, at=at)
            except errors.ApiError as error:
                # Without a hint: with 100,000 servers, finding a hint takes hundreds of times as
                # long as computing a response.
                report(f"line {line}: {error.reason}")
                answer = ErrorResponse.from_error(error)
            yield encode_line(answer)


_Request = TypeVar("_Request", bound=ServerReference | CompareRequest)


@contextmanager
def _open_named(
    name: str | None,
    at: int | None,
    plan: "Plan | None",
    build: Callable[[Sequence[str]], _Request],
    identifiers: Sequence[str],
    by: str | None,
) -> Iterator[tuple[Snapshot, _Request]]:
    """Open the snapshot and build the request, with names of servers replaced by their ids.

    If the snapshot can't be opened, an invalid identifier is reported instead.
    """
    try:
        request = build(identifiers)
    except errors.InvalidRequestError:
        if not identifiers:
            raise
        named: _Request | None = None
        with suppress(errors.SnapshotError, errors.UsageError), options.open_chosen(name) as file:
            named = _build_named(file, build, identifiers, by)
        if named is None:
            raise
        request, identifiers = named, ()
    if plan is not None:
        plan.check_request(request)
    with _open_snapshot(name, at) as file:
        asked = request.servers if isinstance(request, CompareRequest) else [request]
        if file.file_row.is_open and identifiers and not all(file.find_servers(asked)):
            request = _build_named(file, build, identifiers, by)
        yield file, request


def _build_named(
    file: Snapshot,
    build: Callable[[Sequence[str]], _Request],
    identifiers: Sequence[str],
    by: str | None,
) -> _Request:
    from srvstat.analysis.selection import build_named  # noqa: PLC0415 - see get

    return build_named(file, build, identifiers, by)


@contextmanager
def _open_snapshot(name: str | None, at: int | None) -> Iterator[Snapshot]:
    """Open the snapshot, and warn if `at` is outside the time of its data."""
    with options.open_chosen(name) as snapshot:
        if at is not None and at > snapshot.as_of:
            end = format_time(snapshot.as_of)
            report(f"warning: --at is after the end of the snapshot, {end}")
        first = snapshot.file_row.first_observed_at
        if at is not None and first is not None and at < first:
            report(f"warning: --at is before the first observation, {format_time(first)}")
        yield snapshot


@contextmanager
def _open_requests(name: str) -> Iterator[BufferedReader]:
    if not name:
        raise errors.SourceError(
            "request file: the name is empty; name a file, or - for standard input"
        )
    with open_input(name) as file:
        yield BufferedReader(file)
