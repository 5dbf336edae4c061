"""`get` and `compare`: the contract's two questions."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from srvstat import operations
from srvstat.cli.hints import add_hint, add_name_hint
from srvstat.cli.options import (
    AccessOption,
    AtOption,
    BatchOption,
    ByOption,
    ChartOption,
    ExactJsonOption,
    ExplainOption,
    IdentifierArgument,
    IdentifiersArgument,
    PlanOption,
    RangeOption,
    RequestOption,
    SnapshotOption,
    TableOption,
    check_plan,
    find_plan,
    find_snapshot,
    parse_instant_option,
)
from srvstat.cli.output import Form, Outcome, choose_form, report
from srvstat.cli.request_files import read_body, read_lines
from srvstat.cli.show import count_chart_values, encode_line, show, show_error
from srvstat.contract.errors import ApiError, UsageError
from srvstat.contract.ranges import find_window
from srvstat.contract.requests import (
    CompareRequest,
    ServerReference,
    build_compare_request,
    build_server_reference,
    parse_compare_request,
)
from srvstat.contract.responses import CompareResponse, ErrorResponse, Response, ServerResponse
from srvstat.render.text import format_time
from srvstat.snapshot.read.snapshot import Snapshot, open_snapshot

if TYPE_CHECKING:
    from srvstat.access import Plan
    from srvstat.documents.analysis import Comparison, StepTable
    from srvstat.documents.servers import ServerTable
    from srvstat.documents.support import Explanation


def get(
    identifier: IdentifierArgument,
    by: ByOption = None,
    snapshot: SnapshotOption = None,
    at: AtOption = None,
    plan: PlanOption = None,
    access: AccessOption = None,
    explain: ExplainOption = False,
    json: ExactJsonOption = False,
    table: TableOption = False,
) -> Outcome:
    """Show the public detail of one server.

    Example: srvstat get --by cfxId abc123
    """
    form = choose_form(json=json, table=table)
    instant = parse_instant_option("--at", at)
    permissions = find_plan(plan, access)
    try:
        with add_name_hint([identifier], by, snapshot):
            request = build_server_reference(identifier, by=by)
        check_plan(permissions, request)
        with _open_with_hints(snapshot, instant) as file:
            return show(_get(file, request, form, instant, explain=explain), form)
    except ApiError as error:
        return show_error(error, form)


def compare(
    identifiers: IdentifiersArgument = None,
    by: ByOption = None,
    range: RangeOption = None,
    request: RequestOption = None,
    batch: BatchOption = None,
    snapshot: SnapshotOption = None,
    at: AtOption = None,
    plan: PlanOption = None,
    access: AccessOption = None,
    explain: ExplainOption = False,
    json: ExactJsonOption = False,
    table: TableOption = False,
    chart: ChartOption = False,
) -> Outcome:
    """Compare 2 to 5 servers over one range.

    Example: srvstat compare srv-1 srv-2 cfxId:abc123 --range 7d
    """
    form = choose_form(json=json, table=table, chart=chart)
    instant = parse_instant_option("--at", at)
    for option, name in (("--request", request), ("--batch", batch)):
        if name is not None and (identifiers or by is not None or range is not None):
            raise UsageError(f"{option} can't be combined with identifiers, --by or --range")
    if batch is not None and (request is not None or table or explain or chart):
        raise UsageError("--batch can't be combined with --request, --table, --explain or --chart")
    permissions = find_plan(plan, access)
    if batch is not None:
        return Outcome(_answer_batch(batch, snapshot, instant, permissions))
    body = None if request is None else read_body(request)
    try:
        with add_name_hint(identifiers or [], by, snapshot):
            asked = (
                build_compare_request(identifiers or [], by=by, range=range)
                if body is None
                else parse_compare_request(body)
            )
        check_plan(permissions, asked)
        with _open_with_hints(snapshot, instant) as file:
            answer = _compare(file, asked, form, instant, explain=explain)
            return show(answer, form, chart=_draw(file, asked, instant) if chart else None)
    except ApiError as error:
        return show_error(error, form)


def _get(
    snapshot: Snapshot, request: ServerReference, form: Form, at: int | None, *, explain: bool
) -> "ServerResponse | ServerTable | Explanation":
    # Importing what only tables need takes 3 ms, and 40 ms with Rich.
    if explain:
        from srvstat.support.explain import explain_server  # noqa: PLC0415 - see above

        return explain_server(snapshot, request, at)
    if form is Form.JSON:
        return operations.get_server(snapshot, request)
    from srvstat.analysis.server_detail import describe_server  # noqa: PLC0415 - see above

    return describe_server(snapshot, request, at=at)


def _compare(
    snapshot: Snapshot, request: CompareRequest, form: Form, at: int | None, *, explain: bool
) -> "CompareResponse | Comparison | Explanation":
    if explain:
        from srvstat.support.explain import explain_comparison  # noqa: PLC0415 - see _get

        return explain_comparison(snapshot, request, at)
    if form is Form.JSON:
        return operations.compare(snapshot, request, at=at)
    from srvstat.analysis.comparison import describe_comparison  # noqa: PLC0415 - see _get

    return describe_comparison(snapshot, request, at=at)


def _draw(snapshot: Snapshot, request: CompareRequest, at: int | None) -> "StepTable":
    """Return the averages of the window in steps, as many as fit the screen."""
    from srvstat.analysis.step_chart import compute_step_chart  # noqa: PLC0415 - see _get
    from srvstat.documents.analysis import HistoryQuery  # noqa: PLC0415 - see _get

    servers = operations.resolve_servers(snapshot, request.servers)
    window = find_window(request.range, snapshot.as_of if at is None else at)
    query = HistoryQuery(window, zone="UTC")
    return compute_step_chart(snapshot, servers, query, None, count_chart_values())


def _answer_batch(
    name: str, snapshot: str | None, at: int | None, plan: "Plan | None"
) -> Iterator[bytes]:
    """Yield an answer for each line of a batch, as soon as it is computed."""
    with read_lines(name) as bodies, _open_snapshot(snapshot, at) as file:
        for line, body in enumerate(bodies, 1):
            yield encode_line(_answer_line(file, body, at, plan, line))


def _answer_line(
    snapshot: Snapshot, body: bytes, at: int | None, plan: "Plan | None", line: int
) -> Response:
    try:
        request = parse_compare_request(body)
        check_plan(plan, request)
        return operations.compare(snapshot, request, at=at)
    except ApiError as error:
        report(f"line {line}: {error.reason}")
        return ErrorResponse.from_error(error)


@contextmanager
def _open_snapshot(name: str | None, at: int | None) -> Iterator[Snapshot]:
    """Open the snapshot, and warn if `at` is later than its data."""
    with closing(open_snapshot(find_snapshot(name))) as snapshot:
        if at is not None and at > snapshot.as_of:
            end = format_time(snapshot.as_of)
            report(f"warning: --at is later than the snapshot, which ends {end}")
        yield snapshot


@contextmanager
def _open_with_hints(name: str | None, at: int | None) -> Iterator[Snapshot]:
    """Open the snapshot, and add a hint to the error of an unknown server."""
    with _open_snapshot(name, at) as snapshot, add_hint(snapshot):
        yield snapshot
