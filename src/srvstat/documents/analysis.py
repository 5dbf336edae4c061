"""The results of analyses: statistics, growth, hours of the week and others."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from srvstat.contract import wire
from srvstat.contract.windows import Window
from srvstat.documents import document as base
from srvstat.documents.integrity import Integrity
from srvstat.documents.rows import Column, RowDocument, Rows, build_rows, derive_columns

TopKey = Literal[
    "average",
    "share",
    "occupancy",
    "median",
    "peak",
    "lowest",
    "change",
    "growth",
    "samples",
    "current",
]
"""The statistics by which servers can be ranked. `change` and `growth` are in players."""

Versus = Literal["previous", "usual", "other"]
"""The preceding window of equal length, the same hours in the four weeks before, or another
window.
"""

_Asked = Field(exclude_if=lambda value: value is None or value is False)
"""A field that is omitted unless it was requested."""


@dataclass(frozen=True, slots=True)
class QuantilePart:
    """A quantile (Hyndman-Fan type 2). `quantile` is in [0, 1]."""

    quantile: float
    players: float | None


@dataclass(frozen=True, slots=True)
class AbovePart:
    """The total time of observations with strictly more than `players`, in hours."""

    players: int
    hours: float | None


@dataclass(frozen=True, kw_only=True)
class FiguresPart:
    """Statistics of one server in a window; None where undefined.

    - `average_players`: the mean of the counts.
    - `median_players`: the median of the counts.
    - `peak_players`, `lowest_players`: the highest and the lowest count.
    - `growth`: the last observation minus the first.
    - `sample_count`: the number of observations.
    - `peak_first_at`, `peak_last_at`: the first and the last time of the peak.
    - `lowest_first_at`, `lowest_last_at`: the first and the last time of the lowest count.
    - `quantiles`: the requested quantiles.
    - `time_weighted_average`: the mean weighted by durations. An observation lasts until the next
      observation or the end of the window, but at most three polling intervals. With `hold`, each
      count lasts until the next count or `as_of`.
    - `above`: the hours with more than the requested players, by durations; None unless requested.
    - `usual_interval_seconds`: the polling interval; None for fewer than two observations and with
      `hold`.
    - `coverage`: the share of the window covered by durations. A window of all observations begins
      with the first one.
    - `first_players`, `last_players`: the first and the last count.
    - `occupancy`: the average divided by the maximum in the record; None without a maximum.
    - `full_hours`: the hours with at least the maximum, by durations; None without a maximum.
    - `average_when_open`: the mean of the counts above 0.
    """

    average_players: float | None
    median_players: float | None
    peak_players: int | None
    lowest_players: int | None
    growth: base.GrowthPart
    sample_count: int
    peak_first_at: base.Instant | None
    peak_last_at: base.Instant | None
    lowest_first_at: base.Instant | None
    lowest_last_at: base.Instant | None
    quantiles: tuple[QuantilePart, ...]
    time_weighted_average: float | None
    above: AbovePart | None
    usual_interval_seconds: float | None
    coverage: float | None
    first_players: int | None
    last_players: int | None
    occupancy: float | None
    full_hours: float | None
    average_when_open: float | None


@dataclass(frozen=True, kw_only=True)
class _IdentityPart:
    """A server: the current count in its record, and its last observation in the snapshot.

    - `last_observed_at`: can be after the window; None if there is no observation.
    - `servers`: the ids of a total's servers. The current count of a total is the sum of their
      current counts, except for silent servers.
    """

    server_id: str | None
    cfx_id: str
    hostname: str
    servers: base.Members = None
    current_players: int
    last_observed_at: base.Instant | None


class StepCell(NamedTuple):
    """The aggregate of a step, with its numbers of observations and servers.

    - `players`: None if there are no observations.
    - `observed_share`: the share of the step's calendar length that observations cover.
    """

    observations: int
    servers: int
    players: float | None
    observed_share: float

    @property
    def is_partial(self) -> bool:
        """Whether too little of the step was observed for a comparable value."""
        return self.observed_share < base.WHOLE_SHARE


@dataclass(frozen=True, kw_only=True)
class ServerStatistics(FiguresPart, _IdentityPart):
    """The statistics of one server, and its comparison with another window.

    - `cells`: the average of each step of the window, for tables. `observations` of a cell is the
      weight of its average.
    - `window`: the server's own window, if it ends when the server was last observed.
    - `share`: the average divided by the sum of the averages of all compared servers. Omitted
      unless servers are ranked by share.
    - `change`: the average minus the average of the other window, by default the preceding window
      of equal length. None if there is no such window, or if observations cover less than 80 % of
      either window.
    - `previous_coverage`: the coverage of the other window, or None if there is none.
    - `previous`: the statistics of the other window, if requested.
    """

    cells: Annotated[SkipJsonSchema[tuple[StepCell, ...]], Field(exclude=True)] = ()
    window: Annotated[base.WindowPart | None, _Asked] = None
    share: Annotated[float | None, _Asked] = None
    change: base.ChangePart | None
    previous_coverage: float | None
    previous: FiguresPart | None


NamedServer = base.ServerPart | base.ServerName | ServerStatistics
"""A server in any document."""


class _Statistics(base.CountsDocument, RowDocument):
    """Statistics of servers in a window, and how to show them.

    - `time_zone`: the time zone of the query. Tables show times in it.
    - `previous_window`: the comparison window, if its statistics were requested and it is the same
      for all servers. If `versus` is `usual`, it spans the four weeks; only the same hours of each
      week count.
    - `versus`: the kind of the comparison window.
    - `until_last_seen`: whether each server's window ends at its last observation.
    - `shows_occupancy`: whether tables show the occupancy.
    - `cell_step`: the name of the steps of `cells`.
    - `is_answer`: whether the statistics are from an API response.
    """

    _details = (
        "cfxId|growth.*|.*LastAt|lowest.*At|timeWeightedAverage|usualInterval.*|firstPlayers"
        "|lastPlayers|occupancy|fullHours|averageWhenOpen|previous(?!Average|Peak).*"
    )

    time_zone: str
    window: base.WindowPart
    previous_window: base.WindowPart | None
    versus: Annotated[Versus | None, _Asked] = None
    until_last_seen: Annotated[bool, _Asked] = False
    shows_occupancy: SkipJsonSchema[bool] = Field(default=False, exclude=True)
    cell_step: SkipJsonSchema[str] = Field(default="", exclude=True)
    is_answer: SkipJsonSchema[bool] = Field(default=False, exclude=True)
    servers: tuple[ServerStatistics, ...]

    def to_rows(self) -> Rows:
        """Return a row for each server, with columns for the requested statistics."""
        columns = [*derive_columns(_IdentityPart), *derive_columns(base.ChangePart, "change")]
        if self.until_last_seen:
            columns.append(Column("windowFrom", "instant", ("window", "from_")))
            columns.append(Column("windowTo", "instant", ("window", "to")))
        if any(one.share is not None for one in self.servers):
            columns.append(Column("share", "number", ("share",)))
        if self.versus is None:
            columns.append(Column("previousCoverage", "number", ("previous_coverage",)))
        columns += self._iter_figures()
        if self.versus is not None:
            columns += self._iter_figures("previous")
        return build_rows(columns, self.list_series())

    def list_series(self) -> tuple[ServerStatistics, ...]:
        """Return the servers, followed by the total if requested."""
        return self.servers

    def _iter_figures(self, *path: str) -> Iterator[Column]:
        """Yield the columns of one window's statistics, with requested additions last."""
        figures = list(derive_columns(FiguresPart, *path))
        yield from (column for column in figures if "above" not in column.path)
        for first in self.servers[:1]:
            for number, one in enumerate(first.quantiles):
                name = base.name_member(
                    "_".join((*path, f"quantile{wire.format_number(one.quantile)}"))
                )
                yield Column(name, "number", (*path, "quantiles", number, "players"))
            if first.above is not None:
                yield from (column for column in figures if "above" in column.path)


class Stats(_Statistics):
    """The statistics of servers.

    Servers are in the order in which they were given.
    """

    document: Literal["stats"] = "stats"


class Top(_Statistics):
    """Servers ranked by a statistic.

    - `by`: the statistic.
    - `reverse`: whether servers are in ascending order.
    - `server_count`: the number of compared servers; `servers` are the first of them. Ties are
      ordered by id, and servers without the statistic are last.
    - `total`: the statistics of the total of all compared servers, if requested.
    """

    document: Literal["top"] = "top"
    by: TopKey
    reverse: Annotated[bool, _Asked] = False
    server_count: int
    total: Annotated[ServerStatistics | None, _Asked] = None

    def list_series(self) -> tuple[ServerStatistics, ...]:
        """Return the servers, followed by the total if requested."""
        return self.servers if self.total is None else (*self.servers, self.total)


GrowthStepName = Literal["day", "week", "month"]
"""Calendar days, ISO weeks and months in a time zone."""


@dataclass(frozen=True, slots=True)
class GrowthStepPart:
    """The growth in the interval `[from, to)`; the last step of a window includes its end.

    - `is_partial`: whether observations cover less than 0.9 of the step's calendar length.
    - `observed_share`: the covered share of the step's calendar length.
    - `average_players`: None if there are no observations.
    - `change`: the average minus the average of the previous step. None if either step is partial
      or has no observations.
    - `growth`: the last observation in the step minus the first.
    """

    from_: base.Instant
    to: base.Instant
    is_partial: bool
    observed_share: float
    sample_count: int
    average_players: float | None
    change: base.ChangePart | None
    growth: base.GrowthPart


@dataclass(frozen=True, slots=True)
class RemainingPart:
    """The average of a local day, and its ratio to the average of the requested day.

    - `days`: the number of days after the requested day.
    - `average_players`: None if observations cover less than 80 % of the day.
    - `share`: None if either average is None or the requested day's average is 0.
    """

    days: int
    from_: base.Instant
    to: base.Instant
    average_players: float | None
    share: float | None


class ServerGrowth(base.ServerPart):
    """The growth of one server.

    - `change`, `coverage`, `previous_coverage`, `first_players`, `last_players`: as in the document
      `stats`.
    - `growth`: the growth over the window.
    - `previous_growth`: the growth over the previous window.
    - `players_per_week`: the trend, as the Theil-Sen slope: the median slope between the averages
      of all pairs of whole days, at their midpoints. It does not depend on `step`. None for fewer
      than three whole days.
    - `remaining`: the requested day, and the days 7, 30 and 90 days later.
    - `steps`: the growth in each step.
    """

    sample_count: int
    average_players: float | None
    change: base.ChangePart | None
    coverage: float | None
    previous_coverage: float | None
    first_players: int | None
    last_players: int | None
    growth: base.GrowthPart
    previous_growth: base.GrowthPart | None
    players_per_week: float | None
    remaining: tuple[RemainingPart, ...] | None = Field(
        default=None, exclude_if=lambda parts: parts is None
    )
    steps: tuple[GrowthStepPart, ...]


class GrowthDocument(base.CountsDocument, RowDocument):
    """The growth of servers per interval.

    `previous_window` is the preceding window of equal length. It is None, and so is each
    `previous_growth`, if the window has no start or a bundle does not cover the preceding window.
    """

    long_field = "servers"

    document: Literal["growth"] = "growth"
    step: GrowthStepName
    time_zone: str
    window: base.WindowPart
    previous_window: base.WindowPart | None
    servers: tuple[ServerGrowth, ...]

    def to_rows(self) -> Rows:
        """Return a row for each step of each server."""
        return _build_rows(GrowthStepPart, ((one.server_id, one.steps) for one in self.servers))


def _build_rows(part: type[Any], servers: Iterable[tuple[str | None, Sequence[Any]]]) -> Rows:
    """Return a row for each part, with the identifier of its server."""
    columns = tuple(derive_columns(part))
    rows = (
        (server_id, *row) for server_id, parts in servers for row in build_rows(columns, parts).rows
    )
    return Rows((Column("serverId", "text"), *columns), rows)


HourKey = Literal["week-hour", "hour", "weekday"]
"""The cells of peak hours: the 168 hours of the week, the 24 hours of the day, or 7 weekdays."""


@dataclass(frozen=True, slots=True)
class HourPart:
    """An hour of the week on a local clock.

    - `weekday`: 1 (Monday) to 7; None for an hour of any day.
    - `hour`: 0 to 23; None for a whole weekday.
    """

    weekday: int | None
    hour: int | None


@dataclass(frozen=True, slots=True)
class HourCellPart(HourPart):
    """The observations in an hour of the week. With fewer than 4, the statistics are None."""

    sample_count: int
    average_players: float | None
    median_players: float | None


def has_known_hours(cells: Sequence[HourCellPart]) -> bool:
    """Return whether at least 80 % of the cells have an average, so that they can be compared."""
    known = sum(cell.average_players is not None for cell in cells)
    return known >= base.LEAST_COVERAGE * len(cells)


class ServerPeakHours(base.ServerPart):
    """The hours of one server.

    - `busiest`, `quietest`: the cells with the highest and the lowest average, the earliest of
      equal cells; None if no cell has an average.
    - `restart_player_hours`: the player hours lost if the server is down for the quietest hour,
      which is the average of this hour. None for weekdays, and if too few hours have an average.
    - `cells`: in the order of time, from Monday or 0:00.
    """

    sample_count: int
    busiest: HourPart | None
    quietest: HourPart | None
    restart_player_hours: float | None
    cells: tuple[HourCellPart, ...]

    @property
    def has_hours(self) -> bool:
        """Whether at least 80 % of the hours have an average, so that they can be compared."""
        return has_known_hours(self.cells)

    def get_cell(self, hour: HourPart) -> HourCellPart:
        """Return the cell of an hour, such as the busiest hour."""
        wanted = hour.weekday, hour.hour
        return next(cell for cell in self.cells if (cell.weekday, cell.hour) == wanted)


class PeakHours(base.CountsDocument, RowDocument):
    """The players in each hour or weekday.

    `by` selects the cells, on the clock of `time_zone`.
    """

    long_field = "servers"

    document: Literal["peakHours"] = "peakHours"
    by: HourKey
    time_zone: str
    window: base.WindowPart
    servers: tuple[ServerPeakHours, ...]

    def to_rows(self) -> Rows:
        """Return a row for each cell of each server."""
        return _build_rows(HourCellPart, ((one.server_id, one.cells) for one in self.servers))


EventKind = Literal["gap", "zeros", "unusualDay", "stepChange", "belowUsual"]
"""Kinds of events: no observations, no players, an unusual day, a level change, a low last hour."""


@dataclass(frozen=True, slots=True)
class EventPart:
    """An event from one time to another. A total has no `server_id`.

    `expected` and `seen` are averages or medians of players, and None for a gap. For a level
    change, they are the medians before and after it.
    """

    server_id: str | None
    kind: EventKind
    from_: base.Instant
    to: base.Instant
    seconds: float
    expected: float | None
    seen: float | None


class Events(base.CountsDocument, RowDocument):
    """The unusual events, newest first.

    Events describe numbers. They say nothing about causes, and they are not probabilities.
    `servers` are the servers of a total.
    """

    long_field = "events"

    document: Literal["events"] = "events"
    time_zone: str
    window: base.WindowPart
    servers: base.Members = None
    events: tuple[EventPart, ...]

    def to_rows(self) -> Rows:
        """Return a row for each event."""
        columns = list(derive_columns(EventPart))
        columns.insert(1, Column("kind", "text", ("kind",)))
        return build_rows(columns, self.events)


class ServerDistribution(base.ServerPart):
    """The distribution of one server.

    - `lower_quartile`, `upper_quartile`: Hyndman-Fan type 2.
    - `counts`: the number of observations in each bin; with `hold`, milliseconds.

    Without observations, all statistics are None.
    """

    sample_count: int
    lowest_players: int | None
    lower_quartile: float | None
    median_players: float | None
    upper_quartile: float | None
    peak_players: int | None
    counts: tuple[int, ...]


class Distribution(base.CountsDocument, RowDocument):
    """The distribution of player counts.

    All servers have the same bins. Bin `i` contains the counts from `first_players + i *
    bin_players` up to, but not including, the start of the next bin.
    """

    document: Literal["distribution"] = "distribution"
    window: base.WindowPart
    first_players: int
    bin_players: int
    servers: tuple[ServerDistribution, ...]

    def to_rows(self) -> Rows:
        """Return a row for each bin of each server."""
        names = ("fromPlayers", "beforePlayers", "count")
        columns = (Column("serverId", "text"), *(Column(name, "integer") for name in names))
        first, width = self.first_players, self.bin_players
        rows = (
            (one.server_id, first + at * width, first + (at + 1) * width, count)
            for one in self.servers
            for at, count in enumerate(one.counts)
        )
        return Rows(columns, rows)


class StepRun(base.Part):
    """Successive steps of equal length, starting at a time."""

    from_: base.Instant
    seconds: int
    count: int


class ServerTimeline(base.ServerPart):
    """One server over time. Each array has one value per step, or None for an empty step.

    - `observed_shares`: the shares of the steps' calendar lengths that observations cover. An
      observation lasts until the next one, at most three polling intervals. A step with a share
      below 0.9 is partial.
    - `gaps`: periods of more than three polling intervals between observations, or between an
      observation and an edge of the window. The polling interval is the median interval between
      successive observations. The time after `as_of` belongs to no gap.
    """

    sample_counts: tuple[int, ...]
    averages: tuple[float | None, ...]
    lowest: tuple[int | None, ...]
    peak: tuple[int | None, ...]
    observed_shares: tuple[float, ...]
    gaps: tuple[base.GapPart, ...]


@dataclass(frozen=True, slots=True)
class MarkPart:
    """A time that a picture marks with a label."""

    at: base.Instant
    label: str


_STEP_COLUMNS = (
    Column("serverId", "text"),
    Column("from", "instant"),
    Column("to", "instant"),
    Column("sampleCount", "integer"),
    Column("averagePlayers", "number"),
    Column("lowestPlayers", "integer"),
    Column("peakPlayers", "integer"),
    Column("observedShare", "number"),
)


class Timeline(base.CountsDocument, RowDocument):
    """Players over time.

    - `step`: the name of the steps, such as `1h` or `day`. A step includes its start and excludes
      its end; the last step also includes the end of the window.
    - `steps`: whole steps: the first can begin before the window, and the last can end after it.
    """

    document: Literal["timeline"] = "timeline"
    window: base.WindowPart
    time_zone: str
    step: str
    steps: tuple[StepRun, ...]
    marks: tuple[MarkPart, ...] = Field(default=(), exclude_if=lambda marks: not marks)
    servers: tuple[ServerTimeline, ...]

    def list_edges(self) -> list[int]:
        """Return the start of each step, and the end of the last step."""
        edges: list[int] = []
        for run in self.steps:
            length = run.seconds * 1000
            end = run.from_ + run.count * length
            edges += range(run.from_, end, length)
        return [*edges, end]

    def to_rows(self) -> Rows:
        """Return a row for each step of each server."""
        names = ("sample_counts", "averages", "lowest", "peak", "observed_shares")
        steps = list(pairwise(self.list_edges()))
        rows = (
            (one.server_id, *step, *values)
            for one in self.servers
            for step, *values in zip(steps, *(getattr(one, name) for name in names), strict=True)
        )
        return Rows(_STEP_COLUMNS, rows)


def build_runs(edges: Sequence[int]) -> tuple[StepRun, ...]:
    """Return the steps between edges as runs of equal length."""
    runs: list[StepRun] = []
    for length, steps in groupby(pairwise(edges), key=lambda step: step[1] - step[0]):
        starts = [start for start, _ in steps]
        runs.append(StepRun(from_=starts[0], seconds=length // 1000, count=len(starts)))
    return tuple(runs)


MissingCorrelation = Literal["coverage", "steps", "constant"]
"""Reasons for a missing correlation: low coverage, too few steps, or a server that never
changes.
"""


@dataclass(frozen=True, slots=True)
class PairPart:
    """Spearman's rank correlation of two servers over `steps` steps, from -1 to 1.

    It compares the averages of steps in which both servers are whole, after subtracting each
    server's mean for the hour of the week. Equal values share their average rank.

    `correlation` is None and `reason` is set if observations of either server cover less than 80 %
    of the window, for fewer than 30 steps, and if a server always equals its means.
    """

    servers: tuple[str, str]
    steps: int
    correlation: float | None
    reason: MissingCorrelation | None


class Together(base.CountsDocument, RowDocument):
    """The rank correlations of servers.

    The highest correlation is first, and missing correlations are last.
    """

    document: Literal["together"] = "together"
    step: str
    time_zone: str
    window: base.WindowPart
    pairs: tuple[PairPart, ...]

    def to_rows(self) -> Rows:
        """Return a row for each pair."""
        names = ("serverId", "otherServerId")
        ids = [Column(name, "text", ("servers", at)) for at, name in enumerate(names)]
        reason = Column("reason", "text", ("reason",))
        return build_rows([*ids, *derive_columns(PairPart), reason], self.pairs)


Aggregate = Literal["mean", "median", "max", "min", "last", "share", "rank"]
"""The aggregates of a step's observations. `share` and `rank` compare the means of servers."""


@dataclass(frozen=True, slots=True, repr=False)
class History(RowDocument):
    """The observations of servers, or aggregates of steps. Iterate over it to read the rows."""

    as_of: int
    root: str
    time_zone: str
    window: base.WindowPart
    columns: tuple[Column, ...]
    read_rows: Callable[[], Iterator[tuple[Any, ...]]]
    document: str = field(default="history", init=False)

    def __repr__(self) -> str:
        return f"<{base.describe(self)}>"

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self.read_rows()

    def to_rows(self) -> Rows:
        """Return the rows. They are read from the snapshot during iteration."""
        return Rows(self.columns, self.read_rows())


class Observation(NamedTuple):
    """An observation. `observed_at` is in Unix milliseconds."""

    observed_at: int
    players: int


class StepLine(NamedTuple):
    """A step `[start, end)`, clipped to the window, with a cell for each column."""

    start: int
    end: int
    cells: tuple[StepCell, ...]


def name_figure(aggregate: Aggregate) -> str:
    """Return the column name of an aggregate: `share`, `rank` or `players`."""
    return aggregate if aggregate in {"share", "rank"} else "players"


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """A query for a history. Raw observations have no aggregate.

    - `window`: `window.start` can be BEFORE_ALL.
    - `zone`: the time zone of steps and of displayed times.
    - `step`: the name of the steps, such as `1h` or `day`, or None for raw observations.
    """

    window: Window
    zone: str
    aggregate: Aggregate = "mean"
    is_sum: bool = False
    step: str | None = None

    @property
    def figure(self) -> str:
        """The column name of the steps' values."""
        return name_figure(self.aggregate)


@dataclass(frozen=True, slots=True)
class ObservationTable:
    """The first and the last observations of a server.

    - `count`: the number of all observations.
    - `usual_interval`: the polling interval in milliseconds; None for fewer than two observations.
    """

    query: HistoryQuery
    server: base.ServerName
    first: tuple[Observation, ...]
    last: tuple[Observation, ...]
    count: int
    usual_interval: float | None

    @property
    def omitted_count(self) -> int:
        """The number of observations that are not shown."""
        return self.count - len(self.first) - len(self.last)


@dataclass(frozen=True, slots=True)
class StepTable:
    """The first and the last steps of a window. `count` is the number of all steps.

    There is a column for each server, or a single column for their sum.
    """

    query: HistoryQuery
    servers: tuple[base.ServerName, ...]
    first: tuple[StepLine, ...]
    last: tuple[StepLine, ...]
    count: int

    @property
    def omitted_count(self) -> int:
        """The number of steps that are not shown."""
        return self.count - len(self.first) - len(self.last)

    @property
    def has_partial(self) -> bool:
        """Whether a step with observations is partial."""
        cells = (cell for line in (*self.first, *self.last) for cell in line.cells)
        return any(cell.observations and cell.is_partial for cell in cells)


@dataclass(frozen=True, slots=True)
class HistoryNotes:
    """Notes on all tables of a history. `has_omitted`: whether any table omits rows."""

    has_omitted: bool
    hold: bool = False


HistoryPart = HistoryQuery | ObservationTable | StepTable | HistoryNotes


class Report(base.CountsDocument):
    """The data of a report.

    Its documents describe the same servers in the same order, over the same window.

    - `program`: the name and version of the program.
    - `command`: the command that repeats the report.
    """

    document: Literal["report"] = "report"
    title: str
    program: str
    command: str
    time_zone: str
    window: base.WindowPart
    stats: Stats
    timeline: Timeline
    peak_hours: PeakHours
    distribution: Distribution
    growth: GrowthDocument
    integrity: Integrity
