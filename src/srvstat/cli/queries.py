"""`get` and `compare`: the two questions of the contract."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from srvstat import operations
from srvstat.cli.options import (
    AccessOption,
    AtOption,
    BatchOption,
    ByOption,
    IdentifierArgument,
    IdentifiersArgument,
    JsonOption,
    PlanOption,
    RangeOption,
    RequestOption,
    SnapshotOption,
    TableOption,
    find_plan,
    parse_instant_option,
    snapshot_path,
)
from srvstat.cli.output import Form, Outcome, choose_form, json_output, report
from srvstat.contract.errors import ApiError, ServerNotFoundError, UsageError
from srvstat.contract.requests import (
    CompareRequest,
    ServerReference,
    build_compare_request,
    build_server_reference,
    parse_compare_request,
)
from srvstat.contract.responses import ErrorResponse
from srvstat.render.text import instant_text
from srvstat.snapshot.read.reader import SnapshotFile, open_file

if TYPE_CHECKING:
    from srvstat.access import Plan


def get(
    identifier: IdentifierArgument,
    by: ByOption = None,
    snapshot: SnapshotOption = None,
    at: AtOption = None,
    plan: PlanOption = None,
    access: AccessOption = None,
    json: JsonOption = False,
    table: TableOption = False,
) -> Outcome:
    """Show one server's public detail.

    Example: srvstat get --by cfxId abc123
    """
    form = choose_form(json=json, table=table)
    instant = parse_instant_option("--at", at)
    asking = find_plan(plan, access)

    def answer() -> bytes:
        request = build_server_reference(identifier, by=by)
        _judge(asking, request)
        with _asked(snapshot, instant, [request]) as file:
            if form is Form.JSON:
                return json_output(operations.get_server(file, request).to_json())
            from srvstat.cli.tables import server_table

            return server_table(file, request, at=instant)

    return _outcome(form, answer)


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
    json: JsonOption = False,
    table: TableOption = False,
) -> Outcome:
    """Compare 2 to 5 servers over one range.

    Example: srvstat compare srv-1 srv-2 cfxId:abc123 --range 7d
    """
    form = choose_form(json=json, table=table)
    instant = parse_instant_option("--at", at)
    for option, given in (("--request", request), ("--batch", batch)):
        if given is not None and (identifiers or by is not None or range is not None):
            raise UsageError(f"{option} holds all there is to ask: no identifiers, --by or --range")
    if batch is not None:
        if request is not None or table:
            raise UsageError("--batch answers in JSON, and excludes --request and --table")
        return Outcome(_answers(batch, snapshot, instant, find_plan(plan, access)))
    asking = find_plan(plan, access)
    body = None
    if request is not None:
        from srvstat.cli.bodies import read_body

        body = read_body(request)

    def answer() -> bytes:
        asked = (
            build_compare_request(identifiers or [], by=by, range=range)
            if body is None
            else parse_compare_request(body)
        )
        _judge(asking, asked)
        with _asked(snapshot, instant, asked.servers) as file:
            if form is Form.JSON:
                return json_output(operations.compare(file, asked, at=instant).to_json())
            from srvstat.cli.tables import comparison_table

            return comparison_table(file, asked, at=instant)

    return _outcome(form, answer)


def _judge(plan: "Plan | None", request: ServerReference | CompareRequest) -> None:
    """Refuse a request that the plan does not allow. Without a plan it is the operator's."""
    if plan is not None:
        plan.check_request(request)


def _outcome(form: Form, answer: Callable[[], bytes]) -> Outcome:
    """Answer, or give the API's error in the form that was asked for."""
    try:
        return Outcome([answer()])
    except ApiError as error:
        if form is Form.JSON:
            report(error.reason)
            return Outcome(
                [json_output(ErrorResponse.from_error(error).to_json())], error.exit_code
            )
        report(f"error: {error.code}: {error.message}", error.reason)
        return Outcome(exit_code=error.exit_code)


def _answers(batch: str, given: str | None, at: int | None, plan: "Plan | None") -> Iterator[bytes]:
    """Answer each line of a batch with a line, as soon as it is there."""
    from srvstat.cli.bodies import arriving, bodies

    with arriving(batch) as chunks, _opened(given, at) as snapshot:
        for line, body in enumerate(bodies(chunks), 1):
            yield _answer(snapshot, body, at, plan, line)


def _answer(
    snapshot: SnapshotFile, body: bytes, at: int | None, plan: "Plan | None", line: int
) -> bytes:
    try:
        request = parse_compare_request(body)
        _judge(plan, request)
        answer = operations.compare(snapshot, request, at=at).to_json()
    except ApiError as error:
        report(f"line {line}: {error.reason}")
        answer = ErrorResponse.from_error(error).to_json()
    return json_output(answer)


@contextmanager
def _opened(given: str | None, at: int | None) -> Iterator[SnapshotFile]:
    """Open the snapshot, and warn whoever asks it beyond what it holds."""
    with closing(open_file(snapshot_path(given))) as snapshot:
        if at is not None and at > snapshot.as_of:
            end = instant_text(snapshot.as_of)
            report(f"warning: --at is later than the snapshot, which ends {end}")
        yield snapshot


@contextmanager
def _asked(
    given: str | None, at: int | None, references: Sequence[ServerReference]
) -> Iterator[SnapshotFile]:
    """Open the snapshot to ask, and help whoever names a server that it does not hold."""
    with _opened(given, at) as snapshot:
        try:
            yield snapshot
        except ServerNotFoundError as error:
            hint = operations.suggest_servers(snapshot, references)
            raise ServerNotFoundError(f"{error.reason}; {hint}" if hint else error.reason) from None
