"""The query commands: servers, stats, top, growth, peak_hours, history, …, events and today."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal
from zoneinfo import ZoneInfo

from typer.main import get_current_context  # type: ignore[attr-defined] # imported there without `as`

from srvstat.analysis import questions, selection
from srvstat.analysis.events import EventOptions, list_events
from srvstat.analysis.growth import compute_growth
from srvstat.analysis.history import (
    aggregate_history,
    compute_step_chart,
    describe_observations,
    describe_steps,
    parse_steps,
    read_history,
)
from srvstat.analysis.parameters import Parameter, Without
from srvstat.analysis.pictures import compute_peak_hours
from srvstat.analysis.questions import divide_window
from srvstat.analysis.series import Total
from srvstat.analysis.servers import list_servers
from srvstat.analysis.statistics import FigureOptions, compute_stats, rank_servers
from srvstat.analysis.today import compute_today
from srvstat.analysis.together import compute_together
from srvstat.cli import options, output
from srvstat.cli.hints import report_no_match
from srvstat.cli.output import STDERR, Form, HistoryForm, Outcome, PlainForm, RowForm, report, show
from srvstat.contract.errors import ParameterError
from srvstat.contract.requests import MAX_SERVERS
from srvstat.contract.windows import Window
from srvstat.documents.analysis import (
    Aggregate,
    GrowthStepName,
    HistoryNotes,
    HistoryQuery,
    HourKey,
    MarkPart,
    TopKey,
)
from srvstat.documents.document import Document
from srvstat.documents.snapshot import SortKey
from srvstat.render.text import escape_text, format_count, format_span, format_zoned_time
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.snapshot.read.statistics import compute_window_totals
from srvstat.snapshot.rows import ServerRow

if TYPE_CHECKING:
    from srvstat.operations.access import Plan

_WORDS_HELP = "Only servers matching all of these words; same as the TEXT argument."
_MAX_LISTED = 10
_MAX_PICKED = 20


@dataclass(frozen=True)
class _SearchOptions(selection.FilterOptions):
    text: Annotated[list[str] | None, Parameter(selection.TEXT_HELP, "TEXT", is_argument=True)] = (
        None
    )
    words: Annotated[list[str] | None, Parameter(_WORDS_HELP, "TEXT", ("--text",))] = None
    all: Annotated[bool, Parameter("Changes nothing.", is_hidden=True)] = False

    def list_words(self) -> list[str]:
        return [*(self.text or ()), *(self.words or ())]


def servers(
    filters: _SearchOptions,
    form: RowForm,
    sort: Annotated[
        SortKey, Parameter("The field to sort by; numbers and times in descending order.", "FIELD")
    ] = "id",
    limit: options.LimitOption = None,
    snapshot: options.SnapshotOption = None,
) -> Outcome:
    """Find servers in a snapshot.

    List the servers that contain all words and match all options, with their polling interval and
    their coverage. Case does not matter.

    Example: srvstat servers roleplay --region EU --sort current
    """
    chosen = form.choose()
    with options.open_chosen(snapshot) as file:
        found = list_servers(file, filters, sort=sort, limit=options.choose_limit(limit, chosen))
        if not found.matched:
            report_no_match(file, filters)
        return show(found, chosen)


def stats(
    selected: selection.SelectedServers,
    window: questions.ComparedQuery,
    figures: FigureOptions,
    form: RowForm,
    snapshot: options.SnapshotOption = None,
) -> Outcome:
    """Show statistics of servers in any window.

    Show compare's statistics, plus the change since the previous window, the time of the peak,
    quantiles, hours above a threshold, and coverage.

    Example: srvstat stats harbor-city --range 7d --quantile 0.95 --versus previous
    """
    chosen = form.choose()
    check_window(window)
    selected = choose_servers(selected, most=_MAX_PICKED)
    with open_question(snapshot, selected, window) as question:
        document = compute_stats(question, figures, window, has_cells=chosen is Form.TABLE)
    return show(document, chosen)


def top(
    filters: _SearchOptions,
    window: questions.ComparedQuery,
    figures: FigureOptions,
    form: RowForm,
    rank_by: Annotated[
        TopKey,
        Parameter(
            "The statistic to rank by; change and growth are in players.",
            "STATISTIC",
            names=("--rank-by", "--by"),
        ),
    ] = "average",
    reverse: Annotated[bool, Parameter("Show the lowest first.")] = False,
    sum: Annotated[bool, Parameter("Also show the total of all matching servers.")] = False,
    limit: Annotated[options.LimitOption, "The number of servers to show."] = 20,
    snapshot: options.SnapshotOption = None,
) -> Outcome:
    """Rank servers by a statistic.

    Rank all servers that match, the highest first, and show their statistics. A server's share is
    its average divided by the sum of all matching servers' averages.

    Example: srvstat top --rank-by peak --range 7d -n 10
    """
    chosen, zone = form.choose(), check_window(window)
    with options.open_chosen(snapshot) as file:
        interval = questions.choose_window(file, window)
        report_missing_data(file, interval, zone)
        matches = selection.MatchingServers(file, filters)
        question = selection.Question(file, matches, interval, zone)
        found = rank_servers(
            question,
            rank_by,
            limit or 0,
            figures,
            window,
            is_sum=sum,
            reverse=reverse,
            has_cells=chosen is Form.TABLE,
        )
        if not found.server_count:
            report_no_match(file, filters)
    return show(found, chosen)


def growth(
    selected: selection.SelectedServers,
    window: questions.WindowQuery,
    form: RowForm,
    step: Annotated[
        GrowthStepName, Parameter("The interval: a calendar day, an ISO week or a month.")
    ] = "day",
    after: Annotated[
        str | None,
        Parameter("Show how much of this day's average remains after 7, 30 and 90 days.", "DATE"),
    ] = None,
    snapshot: options.SnapshotOption = None,
) -> Outcome:
    """Show growth by day, week or month.

    Show the change since the previous window, the trend in players per week, and the average of
    each interval with its change.

    Example: srvstat growth harbor-city --step week --range 90d
    """
    zone = questions.find_zone(window.tz)
    day = None if after is None else questions.parse_edge("after", after, zone)
    return _answer(snapshot, selected, window, form, partial(compute_growth, step=step, after=day))


def peak_hours(
    selected: Annotated[selection.SelectedServers, Without("by")],
    window: questions.WindowQuery,
    form: RowForm,
    group_by: Annotated[
        HourKey,
        Parameter(
            "Show each hour of the week, each hour of the day, or each weekday.",
            names=("--group-by", "--by"),
        ),
    ] = "week-hour",
    snapshot: options.SnapshotOption = None,
) -> Outcome:
    """Show the busiest hours of the week.

    Show the average and median of each hour of the week, the busiest and quietest hours, and how
    many players a restart in the quietest hour affects.

    Example: srvstat peak-hours harbor-city --tz Europe/Berlin --range 90d
    """
    return _answer(snapshot, selected, window, form, partial(compute_peak_hours, by=group_by))


def _answer(
    snapshot: str | None,
    selected: selection.SelectedServers,
    window: questions.WindowQuery,
    form: RowForm,
    compute: Callable[[selection.Question], Document],
    *,
    least: int = 1,
) -> Outcome:
    """Compute the document for the selected servers, and show it."""
    chosen = form.choose()
    check_window(window)
    selected = choose_servers(selected, least=least, most=_MAX_PICKED)
    with open_question(snapshot, selected, window) as question:
        document = compute(question)
    return show(document, chosen)


@dataclass(frozen=True)
class StepOptions:
    """Options that divide a history into steps."""

    panel = "Output"

    step: Annotated[
        str | None,
        Parameter(
            "Print one row per interval, such as 15m, 1h, day, week or month. Minutes and hours"
            " must divide 24 hours [default for --chart: the shortest that fits].",
            "STEP",
        ),
    ] = None
    aggregate: Annotated[
        Aggregate | None,
        Parameter(
            "How to combine an interval's counts; share and rank compare the servers' averages"
            " [default: mean]."
        ),
    ] = None


def history(
    selected: selection.SelectedServers,
    window: questions.WindowQuery,
    form: HistoryForm,
    steps: StepOptions,
    customer: options.PlanOptions,
    snapshot: options.SnapshotOption = None,
) -> Outcome:
    """Print player counts, raw or per interval.

    JSON output has one line per row. A gap has no rows; with --step, its rows have null players. A
    table shows only the first and last rows.

    Example: srvstat history harbor-city new-frontier --range 7d --step 1h --format csv
    """
    chosen = form.choose()
    check_window(window)
    step, aggregate = parse_steps(
        steps.step, steps.aggregate, is_sum=selected.sum, is_chart=form.chart
    )
    selected = choose_servers(selected, most=MAX_SERVERS if form.chart else _MAX_PICKED)
    plan = customer.find_plan()
    with ExitStack() as stack:
        question = stack.enter_context(open_question(snapshot, selected, window, plan))
        query = HistoryQuery(
            question.window, window.tz, aggregate, selected.sum, step and step.name
        )
        if form.chart:
            screen = output.create_screen()
            most = output.count_chart_values(screen)
            chart = compute_step_chart(question, query, step, most)
            # The rows of a table would scroll the chart off the screen.
            notes = HistoryNotes(has_omitted=False, hold=question.snapshot.is_held)
            return show(notes, chosen, chart=chart, screen=screen)
        if step is None:
            tables = describe_observations(question, query)
            rows = read_history(question)
        else:
            divided = divide_window(question, step)
            tables = describe_steps(question, divided, query)
            rows = aggregate_history(question, divided, aggregate)
        if chosen is Form.TABLE:
            outcome = output.show_tables(tables)
        else:
            outcome = show(rows, Form.NDJSON if chosen is Form.JSON else chosen)
        # The pieces are read from the snapshot while they are written.
        return outcome._replace(pieces=_close_after(outcome.pieces, stack.pop_all()))


def _close_after(pieces: Iterable[bytes], resources: ExitStack) -> Iterator[bytes]:
    with resources:
        yield from pieces


def together(
    selected: Annotated[selection.SelectedServers, Without("sum")],
    window: questions.WindowQuery,
    form: RowForm,
    step: Annotated[
        str, Parameter("The interval to compare, such as 15m, 1h, 6h, day or week.", "STEP")
    ] = "1h",
    snapshot: options.SnapshotOption = None,
) -> Outcome:
    """Correlate the player counts of 2 to 20 servers.

    Show the correlation of each pair of servers, after removing each server's weekly pattern.
    Correlation does not show cause.

    Example: srvstat together harbor-city new-frontier night-shift --range 90d
    """
    compute = partial(compute_together, step=questions.parse_step(step))
    return _answer(snapshot, selected, window, form, compute, least=2)


def integrity(
    selected: Annotated[selection.SelectedServers, Without("sum")],
    window: questions.LongWindowQuery,
    form: RowForm,
    snapshot: options.SnapshotOption = None,
) -> Outcome:
    """Find unusual patterns in player counts.

    For each rule, show whether it passes, is suspect or lacks data, with the evidence, the
    threshold and benign explanations. A suspect result proves nothing and is not a probability. The
    exit code is 0 even if a result is suspect.

    Example: srvstat integrity harbor-city --range 30d
    """
    # Imported here, because its models take a quarter of the start-up time of the other queries.
    from srvstat.analysis.integrity import check_integrity  # noqa: PLC0415

    return _answer(snapshot, selected, window, form, check_integrity)


def events(
    selected: selection.SelectedServers,
    window: questions.LongWindowQuery,
    chosen_events: EventOptions,
    form: RowForm,
    exit_code: Annotated[bool, Parameter("Exit with 5 if there is an event.")] = False,
    snapshot: options.SnapshotOption = None,
) -> Outcome:
    """List gaps, unusual days and level changes.

    Show each event's start and end, and the expected and observed players. Without identifiers,
    cover all servers. An event says nothing about its cause.

    Example: srvstat events --all --since 24h --exit-code
    """
    form_chosen = form.choose()
    check_window(window)
    if not selected.identifiers:
        selected = replace(selected, all=True)
    selected.check()
    with open_question(snapshot, selected, window) as question:
        document = list_events(question, chosen_events)
    return show(document, form_chosen, exit_code=5 if exit_code and document.events else 0)


def today(
    selected: Annotated[selection.SelectedServers, Without("sum")],
    window: Annotated[questions.WindowQuery, Without("range", "start", "end")],
    form: PlainForm,
    format: Annotated[
        Literal["json", "table", "markdown"] | None,
        Parameter("Print this format; markdown suits chat."),
    ] = None,
    snapshot: options.SnapshotOption = None,
) -> Outcome:
    """Summarize the network's current state.

    Compare the total players at the end of the snapshot with the same hour of the four weeks
    before. List silent servers, the largest changes, yesterday's peak, and gaps and empty periods
    since yesterday. Without identifiers, cover all servers.

    Example: srvstat today --tz Europe/Berlin --format markdown
    """
    chosen = replace(form, format=format).choose()
    check_window(window)
    if not selected.identifiers:
        selected = replace(selected, all=True)
    selected.check()
    with open_question(snapshot, selected, replace(window, range="all")) as question:
        document = compute_today(question)
    if chosen is Form.MARKDOWN:
        from srvstat.render.tables.today import render_markdown  # noqa: PLC0415 - it needs Rich

        return Outcome([render_markdown(document).encode()])
    return show(document, chosen)


def choose_servers(
    selected: selection.SelectedServers, *, least: int = 1, most: int
) -> selection.SelectedServers:
    """Return the selected servers. If there are none, let the user pick servers.

    Raises UsageError if no server is selected, and SystemExit if the user cancels.
    """
    if selected.is_missing:
        selected = replace(selected, identifiers=options.pick_servers(least, most))
    if selected.is_missing:
        raise ParameterError(
            "no server given; name one, or add {all} or a filter such as {text}; {servers}",
            servers=options.name_servers(),
        )
    selected.check()
    return selected


@contextmanager
def open_question(
    snapshot: str | None,
    selected: selection.SelectedServers,
    window: questions.WindowQuery,
    plan: "Plan | None" = None,
) -> Iterator[selection.Question]:
    """Open the snapshot, and find the servers and the window of a query.

    Reports on standard error if the window lacks data or no server matches a filter. If there is a
    plan, it must allow the history of the window.

    Raises ApiError for an unknown server or a limit of the plan, and SnapshotError if data are
    damaged.
    """
    references = selected.build_references()
    if plan is not None:
        plan.check_raw_history()
    with options.open_chosen(snapshot) as file:
        interval, zone = questions.choose_window(file, window), questions.find_zone(window.tz)
        if plan is not None:
            plan.check_history(interval, file.as_of)
        if references:
            found: Any = selection.find_references(file, references)
            report_missing_data(file, interval, zone, found)
        else:
            found = selection.MatchingServers(file, selected)
            report_missing_data(file, interval, zone)
            if next(iter(found), None) is None:
                report_no_match(file, selected)
        if selected.sum:
            found = [Total(file, list(found))]
        yield selection.Question(file, found, interval, zone)


def check_window(query: questions.WindowQuery) -> ZoneInfo:
    """Check a window as far as possible without a snapshot, and return its time zone.

    Warns about times that look like seconds.

    Raises ParameterError if an option is invalid.
    """
    questions.parse_query(query)
    for option, text in (("--from", query.start), ("--to", query.end)):
        if text is not None and text.isdecimal():
            options.parse_instant_option(option, text)
    return questions.find_zone(query.tz)


def report_missing_marks(marks: Iterable[MarkPart], window: Window, clock: ZoneInfo) -> None:
    """Report on standard error which marks are outside the window, and so not drawn."""
    for one in marks:
        if not window.start <= one.at <= window.end:
            shown = escape_text(one.label)
            report(
                f'note: mark "{shown}" at {format_zoned_time(one.at, clock)} is outside the window'
            )


def _report_zone(snapshot: Snapshot) -> None:
    """Tell an interactive user how to see times in the zone that the snapshot was built with."""
    zone = str(snapshot.reading.get("time-zone", "")).partition(":")[0]
    source = get_current_context().get_parameter_source("tz")
    is_default = source is not None and source.name == "DEFAULT"
    if zone not in ("", "UTC") and is_default and os.isatty(STDERR):
        report(f"note: times are UTC; add --tz {escape_text(zone)} for local times")


def report_missing_data(
    snapshot: Snapshot, window: Window, clock: ZoneInfo, servers: Iterable[ServerRow] = ()
) -> None:
    """Report on standard error if a window has no observations, or ends after all data.

    `servers`: the servers that the user named; reports the first servers without observations.

    Raises SnapshotError if data are damaged.
    """
    _report_zone(snapshot)
    first, last = snapshot.file_row.first_observed_at, snapshot.file_row.last_observed_at
    if first is None or last is None:
        report("note: the snapshot has no observations")
        return
    is_held = snapshot.is_held
    if window.end < first or (last < window.first and not is_held):
        span = format_span(first, last, clock)
        report(f"note: no observations in the window; the snapshot has {span}")
        return
    if window.end > snapshot.as_of:
        end = format_zoned_time(snapshot.as_of, clock)
        report(f"note: the window ends after the snapshot, which ends {end}")
    named = list(servers)
    counts = compute_window_totals(snapshot, named, window)
    empty = [server for server, (count, _) in zip(named, counts, strict=True) if not count]
    if is_held:
        empty = [
            one
            for one in empty
            if one.first_observed_at is None or one.first_observed_at > window.end
        ]
    for server in empty[:_MAX_LISTED]:
        first, last = server.first_observed_at, server.last_observed_at
        if first is None or last is None:
            file = "snapshot" if snapshot.parent_root is None else "bundle"
            report(f"note: {server.title}: no observations in the {file}")
            continue
        with snapshot.convert_decode_errors(server.title):
            span = format_span(first, last, clock)
        report(f"note: {server.title}: no observations in the window; it has {span}")
    if len(empty) > _MAX_LISTED:
        more = format_count(len(empty) - _MAX_LISTED, "more server")
        report(f"note: {more} without observations in the window")
