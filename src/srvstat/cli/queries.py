"""`get` and `compare`: the two questions of the contract."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

from srvstat import operations
from srvstat.cli.options import (
    AtOption,
    ByOption,
    IdentifierArgument,
    IdentifiersArgument,
    JsonOption,
    RangeOption,
    RequestOption,
    SnapshotOption,
    TableOption,
    instant_of,
    snapshot_path,
)
from srvstat.cli.output import Form, Outcome, form_of, json_output, tell
from srvstat.contract.errors import ApiError, ServerNotFoundError, SourceError, UsageError
from srvstat.contract.requests import (
    MAX_BODY_BYTES,
    ServerReference,
    compare_request,
    read_compare_request,
    server_reference,
)
from srvstat.contract.responses import ErrorResponse
from srvstat.render.text import instant_text
from srvstat.snapshot.read import SnapshotFile, open_file
from srvstat.sources.source import STDIN


def get(
    identifier: IdentifierArgument,
    by: ByOption = None,
    snapshot: SnapshotOption = None,
    at: AtOption = None,
    json: JsonOption = False,
    table: TableOption = False,
) -> Outcome:
    """Show one server's public detail.

    Example: srvstat get --by cfxId abc123
    """
    form = form_of(json=json, table=table)
    instant = instant_of("--at", at)

    def answer() -> bytes:
        request = server_reference(identifier, by=by)
        with _asked(snapshot, instant, [request]) as file:
            if form is Form.JSON:
                return json_output(operations.get_server(file, request).to_json())
            from srvstat.cli.tables import server_table  # noqa: PLC0415 - rich only for a table

            return server_table(file, request)

    return _outcome(form, answer)


def compare(
    identifiers: IdentifiersArgument = None,
    by: ByOption = None,
    range: RangeOption = None,
    request: RequestOption = None,
    snapshot: SnapshotOption = None,
    at: AtOption = None,
    json: JsonOption = False,
    table: TableOption = False,
) -> Outcome:
    """Compare 2 to 5 servers over one range.

    Example: srvstat compare srv-1 srv-2 cfxId:abc123 --range 7d
    """
    form = form_of(json=json, table=table)
    instant = instant_of("--at", at)
    if request is not None and (identifiers or by is not None or range is not None):
        raise UsageError("--request holds the whole request: no identifiers, --by or --range")
    body = None if request is None else _read_body(request)

    def answer() -> bytes:
        asked = (
            compare_request(identifiers or [], by=by, range=range)
            if body is None
            else read_compare_request(body)
        )
        with _asked(snapshot, instant, asked.servers) as file:
            if form is Form.JSON:
                return json_output(operations.compare(file, asked, at=instant).to_json())
            from srvstat.cli.tables import comparison_table  # noqa: PLC0415 - rich only for a table

            return comparison_table(file, asked, at=instant)

    return _outcome(form, answer)


def _outcome(form: Form, answer: Callable[[], bytes]) -> Outcome:
    """Answer, or give the API's error in the form that was asked for."""
    try:
        return Outcome(answer())
    except ApiError as error:
        if form is Form.JSON:
            tell(error.reason)
            return Outcome(json_output(ErrorResponse.of(error).to_json()), error.exit_code)
        tell(f"error: {error.code}: {error.message}", error.reason)
        return Outcome(b"", error.exit_code)


@contextmanager
def _asked(
    given: str | None, at: int | None, references: Sequence[ServerReference]
) -> Iterator[SnapshotFile]:
    """Open the snapshot to ask, and help whoever asks it beyond what it holds."""
    with closing(open_file(snapshot_path(given))) as snapshot:
        if at is not None and at > snapshot.as_of:
            end = instant_text(snapshot.as_of)
            tell(f"warning: --at is later than the snapshot, which ends {end}")
        try:
            yield snapshot
        except ServerNotFoundError as error:
            hint = operations.suggestion(snapshot, references)
            raise ServerNotFoundError(f"{error.reason}; {hint}" if hint else error.reason) from None


def _read_body(name: str) -> bytes:
    """Read a request body, up to one byte more than it may have."""
    is_stdin = name == STDIN
    try:
        with open(0 if is_stdin else name, "rb", closefd=not is_stdin) as file:
            return file.read(MAX_BODY_BYTES + 1)
    except OSError as error:
        title = "standard input" if is_stdin else name
        raise SourceError(f"{title}: {error.strerror or 'cannot be read'}") from None
