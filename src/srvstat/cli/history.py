"""`history`: the observations of servers, or aggregates of steps."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Annotated, NamedTuple
from zoneinfo import ZoneInfo

import typer

from srvstat.analysis.history import (
    AGGREGATES,
    aggregate_history,
    parse_steps,
    read_history,
)
from srvstat.analysis.history_tables import describe_observations, describe_steps
from srvstat.analysis.local_time import Step
from srvstat.analysis.selection import build_references, find_references
from srvstat.analysis.step_chart import compute_step_chart
from srvstat.analysis.steps import divide_window
from srvstat.analysis.windows import WindowQuery, choose_window, find_zone
from srvstat.cli.analyzer_options import (
    FromOption,
    ServersArgument,
    StepZoneOption,
    ToOption,
    WindowRangeOption,
    build_window_query,
    report_missing_data,
)
from srvstat.cli.hints import add_hint
from srvstat.cli.options import (
    AccessOption,
    ByOption,
    FormatOption,
    JsonOption,
    PlanOption,
    SnapshotOption,
    TableOption,
    find_plan,
    find_snapshot,
)
from srvstat.cli.output import Form, Outcome, choose_form
from srvstat.cli.show import count_chart_values, show, show_error, show_tables
from srvstat.contract.errors import ApiError, UsageError
from srvstat.contract.ranges import Window
from srvstat.documents.analysis import Aggregate, HistoryNotes, HistoryQuery
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.snapshot import Snapshot, open_snapshot

StepOption = Annotated[
    str | None,
    typer.Option(
        metavar="STEP",
        help="Print one row for each step: minutes or hours that divide 24 hours, days, a week or a"
        " month, such as 15m, 1h, 1d, week.",
    ),
]


def _complete_aggregate(incomplete: str) -> list[str]:
    return [name for name in AGGREGATES if name.startswith(incomplete)]


AggregateOption = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(AGGREGATES),
        help=f"What represents the observations of a step [default: {AGGREGATES[0]}].",
        autocompletion=_complete_aggregate,
    ),
]
SumOption = Annotated[
    bool, typer.Option("--sum", help="Add the servers up in each step; needs --step or --chart.")
]

StepChartOption = Annotated[
    bool,
    typer.Option(
        "--chart",
        help="Draw the steps as a chart, not as rows; without --step, the shortest that fit.",
    ),
]


def history(
    identifiers: ServersArgument = None,
    by: ByOption = None,
    range: WindowRangeOption = None,
    start: FromOption = None,
    end: ToOption = None,
    tz: StepZoneOption = "UTC",
    step: StepOption = None,
    aggregate: AggregateOption = None,
    sum: SumOption = False,
    snapshot: SnapshotOption = None,
    plan: PlanOption = None,
    access: AccessOption = None,
    json: JsonOption = False,
    table: TableOption = False,
    format: FormatOption = None,
    chart: StepChartOption = False,
) -> Outcome:
    """List observations or aggregates of steps.

    JSON is one line per row. A gap in the observations has no row; with --step, it has rows without
    players. A table shows the first and the last rows.

    Example: srvstat history srv-1 srv-2 --range 7d --step 1h --format csv
    """
    form = choose_form(json=json, table=table, format=format, chart=chart)
    question = _parse_question(
        build_window_query(range, start, end, tz), step, aggregate, is_sum=sum, is_chart=chart
    )
    if not identifiers:
        raise UsageError("no server; give IDENTIFIER…")
    permissions = find_plan(plan, access)
    try:
        references = build_references(identifiers, by)
        if permissions is not None:
            permissions.check_raw_history()
        with ExitStack() as stack:
            file = stack.enter_context(closing(open_snapshot(find_snapshot(snapshot))))
            window = choose_window(file, question.window)
            if permissions is not None:
                permissions.check_history(window, file.as_of)
            with add_hint(file):
                servers = find_references(file, references)
            report_missing_data(file, window, servers, tz)
            outcome = _answer(file, servers, window, question, form)
            return outcome._replace(pieces=_close_after(outcome.pieces, stack.pop_all()))
    except ApiError as error:
        return show_error(error, form)


class _Question(NamedTuple):
    """The values of the options; `step` is None for observations."""

    window: WindowQuery
    zone: ZoneInfo
    step: Step | None
    aggregate: Aggregate
    is_sum: bool
    is_chart: bool


def _parse_question(
    window: WindowQuery,
    step: str | None,
    aggregate: str | None,
    *,
    is_sum: bool,
    is_chart: bool,
) -> _Question:
    """Check and parse the options that need no snapshot.

    Raises UsageError.
    """
    parsed, chosen = parse_steps(step, aggregate, is_sum=is_sum, is_chart=is_chart)
    return _Question(window, find_zone(window.zone), parsed, chosen, is_sum, is_chart)


def _answer(
    snapshot: Snapshot,
    servers: Sequence[ServerRow],
    window: Window,
    question: _Question,
    form: Form,
) -> Outcome:
    """Return the outcome; its pieces are read from the snapshot while they are written."""
    query = HistoryQuery(
        window,
        question.window.zone,
        question.aggregate,
        question.is_sum,
        question.step and question.step.name,
    )
    if question.is_chart:
        chart = compute_step_chart(snapshot, servers, query, question.step, count_chart_values())
        # The rows of a table would move the chart off the screen.
        notes = HistoryNotes(chart.query, snapshot.as_of, has_omitted=False)
        return show(notes, form, chart=chart)
    if question.step is None:
        if form is Form.TABLE:
            return show_tables(describe_observations(snapshot, servers, query))
        return show(read_history(snapshot, servers, window), _choose_row_form(form))
    steps = divide_window(snapshot, servers, window, question.step, question.zone)
    if form is Form.TABLE:
        return show_tables(describe_steps(snapshot, servers, steps, query))
    rows = aggregate_history(snapshot, servers, steps, question.aggregate, is_sum=question.is_sum)
    return show(rows, _choose_row_form(form))


def _choose_row_form(form: Form) -> Form:
    return Form.NDJSON if form is Form.JSON else form


def _close_after(pieces: Iterable[bytes], resources: ExitStack) -> Iterator[bytes]:
    with resources:
        yield from pieces
