"""The history of servers as rows, and what its tables show."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from srvstat.contract.ranges import Window
from srvstat.documents.document import WHOLE_SHARE
from srvstat.documents.rows import Column, RowDocument, Rows

Aggregate = Literal["mean", "median", "max", "min", "last"]
"""What represents the observations of a step."""


@dataclass(frozen=True, slots=True)
class History(RowDocument):
    """The observations of servers, or aggregates of steps. Iterating over it reads the rows."""

    as_of: int
    root: str
    columns: tuple[Column, ...]
    read_rows: Callable[[], Iterator[tuple[Any, ...]]] = field(repr=False)
    document: str = field(default="history", init=False)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self.read_rows()

    def to_rows(self) -> Rows:
        """Return the rows, which are read from the snapshot while they are iterated over."""
        return Rows(self.columns, self.read_rows())


class ServerName(NamedTuple):
    """The names of a server."""

    server_id: str
    cfx_id: str
    hostname: str


class Observation(NamedTuple):
    """An observation; its instant is in Unix milliseconds."""

    observed_at: int
    players: int


class StepCell(NamedTuple):
    """The observations of a step, the number of servers they are of, and their aggregate.

    `players` is None without observations. `observed_share` is the part of the step's calendar
    length that observations cover.
    """

    observations: int
    servers: int
    players: float | None
    observed_share: float

    @property
    def is_partial(self) -> bool:
        """Whether the value may mislead beside others: much of the step was not observed."""
        return self.observed_share < WHOLE_SHARE


class StepLine(NamedTuple):
    """A step `[start, end)`, cut to the window, with a cell for each column."""

    start: int
    end: int
    cells: tuple[StepCell, ...]


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """What a history was asked for; observations have no aggregate.

    `window.start` can be BEFORE_ALL. `zone` is the time zone of steps, and of the times shown.
    `step` is the name of the steps, such as `1h` or `day`.
    """

    window: Window
    zone: str
    aggregate: Aggregate = "mean"
    is_sum: bool = False
    step: str | None = None


@dataclass(frozen=True, slots=True)
class ObservationTable:
    """The first and the last observations of a server, of `count` in all.

    `usual_interval` is in milliseconds, and None for fewer than two observations.
    """

    query: HistoryQuery
    server: ServerName
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
    """The first and the last steps of a window, of `count` in all.

    There is a column for each server, or a single one for their sum.
    """

    query: HistoryQuery
    servers: tuple[ServerName, ...]
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
    """What the tables of a history have in common.

    `has_omitted` if one of them omits rows, and `has_partial` if one shows a partial step.
    """

    query: HistoryQuery
    as_of: int
    has_omitted: bool
    has_partial: bool = False


HistoryPart = ObservationTable | StepTable | HistoryNotes
