"""An open snapshot, whose methods answer the questions of the command line."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from functools import partial
from itertools import chain, islice
from os import PathLike, fsdecode
from threading import RLock
from typing import Any, NoReturn, Self, TypedDict, TypeVar, Unpack, get_args

from srvstat.analysis import pictures, questions, selection
from srvstat.analysis.events import EventOptions, list_events
from srvstat.analysis.growth import compute_growth
from srvstat.analysis.history import aggregate_history, parse_steps, read_history
from srvstat.analysis.integrity import check_integrity
from srvstat.analysis.parameters import check_choice, check_text
from srvstat.analysis.report import build_report
from srvstat.analysis.series import Total
from srvstat.analysis.servers import list_servers
from srvstat.analysis.statistics import FigureOptions, compute_stats, rank_servers
from srvstat.analysis.today import compute_today
from srvstat.analysis.together import compute_together
from srvstat.contract import __version__
from srvstat.contract.errors import (
    ApiError,
    InvalidRequestError,
    ServerNotFoundError,
    SnapshotError,
    SrvstatError,
    UsageError,
)
from srvstat.contract.requests import (
    Namespace,
    ServerReference,
    build_compare_request,
    build_server_reference,
)
from srvstat.contract.responses import CompareResponse, ServerResponse
from srvstat.contract.time import format_instant, parse_instant
from srvstat.contract.windows import Range
from srvstat.documents import analysis as documents
from srvstat.documents.integrity import Integrity
from srvstat.documents.snapshot import Servers, SortKey
from srvstat.documents.today import Today
from srvstat.operations import answers as operations
from srvstat.snapshot.read import snapshot

__all__ = [
    "ApiError",
    "CompareResponse",
    "InvalidRequestError",
    "ServerNotFoundError",
    "ServerResponse",
    "Snapshot",
    "SnapshotError",
    "SrvstatError",
    "UsageError",
    "__version__",
    "open_snapshot",
]
"""The names of the package `srvstat`, which loads them from here."""

_ROWS_PER_TURN = 1000

_ALL_SERVERS = selection.FilterOptions()

_Value = TypeVar("_Value")


class WindowArguments(TypedDict, total=False):
    """The window of a question, and the time zone of its dates, hours and steps."""

    range: str | None
    start: str | None
    end: str | None
    tz: str


class QuestionArguments(WindowArguments, total=False):
    """The window of a question, the namespace of its identifiers, and whether to add servers up."""

    by: Namespace
    sum: bool


class Snapshot:
    """An open snapshot: the result of `open_snapshot`, and a context manager that closes it.

    Threads may share it; one call runs at a time. To answer in parallel, open one in each thread. A
    child process must open its own.

    A window is a range that ends at `end`, such as `36h`, `7d`, `1y` or `all`, or it is
    `(start, end]`. The default is the last 30 days of the snapshot. `start` and `end` are instants
    such as `2026-01-31T12:00Z`, or dates, which begin at midnight in the time zone `tz`.

    Identifiers are parsed as in `get`. Those of an analysis can be any number; None means all
    servers.

    An invalid value raises UsageError, a value of a wrong type may raise TypeError. After `close`,
    any use except another `close` raises ValueError.
    """

    def __init__(self, file: snapshot.Snapshot) -> None:
        self._file = file
        self._is_closed = False
        # Reentrant: a signal handler may close the snapshot during a call in the same thread.
        self._lock = RLock()

    def __enter__(self) -> Self:
        with self._use():
            return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a snapshot can't be copied or pickled; open it again")

    def close(self) -> None:
        """Close the file. Waits for a running call of another thread."""
        with self._lock:
            self._is_closed = True
            self._file.close()

    @contextmanager
    def _use(self) -> Iterator[snapshot.Snapshot]:
        """Lock the file for one call.

        Raises ValueError after `close`.
        """
        with self._lock:
            try:
                if not self._is_closed:
                    yield self._file
                    return
            except Exception:
                if not self._is_closed:  # otherwise a signal handler closed it during the call
                    raise
            raise ValueError("the snapshot is closed")

    @contextmanager
    def _ask(
        self,
        identifiers: Iterable[str] | None,
        *,
        by: Namespace = "id",
        sum: bool = False,
        group: Callable[..., questions.WindowQuery] = questions.WindowQuery,
        filters: selection.FilterOptions = _ALL_SERVERS,
        **window: Unpack[WindowArguments],
    ) -> Iterator[selection.Question]:
        """Lock the file, and find the servers and the window of a question."""
        # Outside the lock: an iterable may use this snapshot itself, even in another thread.
        names = None if identifiers is None else _list_values("identifiers", identifiers)
        query = group(**window)
        _check_texts(range=query.range, start=query.start, end=query.end, tz=query.tz)
        with self._use() as file:
            interval, zone = questions.choose_window(file, query), questions.find_zone(query.tz)
            servers: Any = (
                selection.MatchingServers(file, filters)
                if names is None
                else selection.find_references(file, selection.build_references(names, by))
            )
            if sum:
                servers = [Total(file, list(servers))]
            yield selection.Question(file, servers, interval, zone)

    @property
    def as_of(self) -> str:
        """The instant of the answers, such as `2026-03-01T12:00:00.000Z`."""
        with self._use() as file:
            return format_instant(file.as_of)

    @property
    def root(self) -> str:
        """The digest of the content, 64 hexadecimal digits. `srvstat snapshot verify` checks it."""
        with self._use() as file:
            return file.root

    def get(self, identifier: str, *, by: Namespace = "id") -> ServerResponse:
        """Answer Get Server: the public detail of one server.

        An identifier may carry its own namespace (`cfxId:abc123`), which overrides `by`, or be the
        name of a server.

        Raises InvalidRequestError, ServerNotFoundError, SnapshotError, also for a record without a
        game; ValueError after `close`.
        """

        def build(identifiers: Sequence[str]) -> ServerReference:
            return build_server_reference(identifiers[0], by=by)

        with self._use() as file:
            return operations.get_server(file, selection.build_named(file, build, [identifier], by))

    def compare(
        self,
        identifiers: Sequence[str],
        *,
        by: Namespace = "id",
        range: Range | None = None,
        at: str | None = None,
    ) -> CompareResponse:
        """Answer Compare Servers: exact statistics of 2 to 5 servers over one range.

        Identifiers are parsed as in `get`. The default range is `30d`. `at` overrides the instant
        of the snapshot (D3): a time such as `2026-01-31T12:00Z`, or Unix milliseconds as a str.

        Raises InvalidRequestError, ServerNotFoundError, SnapshotError; TypeError if `identifiers`
        is a single str or not iterable, or `at` not a str; ValueError if `at` is not an instant,
        and after `close`.
        """
        texts = _list_values("identifiers", identifiers)
        if at is not None and not isinstance(at, str):
            raise TypeError("at: must be a string such as 2026-01-31T12:00Z")
        with self._use() as file:
            build = partial(build_compare_request, by=by, range=range)
            request = selection.build_named(file, build, texts, by)
            instant = None if at is None else parse_instant(at)
            return operations.compare(file, request, at=instant)

    def servers(
        self,
        text: str | None = None,
        *,
        game: str | None = None,
        region: str | None = None,
        tags: Iterable[str] = (),
        offline: bool | None = None,
        sort: SortKey = "id",
        limit: int | None = None,
    ) -> Servers:
        """Find servers.

        All words of `text` must be in the identifiers, the hostname, the project, its description
        or the tags.

        Raises UsageError, SnapshotError.
        """
        filters = _build_filters(text, game, region, tags, offline)
        _check_count("limit", limit, least=1)
        key = check_choice("sort", sort, get_args(SortKey))
        with self._use() as file:
            return list_servers(file, filters, sort=key, limit=limit)

    def stats(
        self,
        identifiers: Iterable[str] | None = None,
        *,
        quantiles: Iterable[float | str] = (),
        above: int | None = None,
        versus: str | None = None,
        around: str | None = None,
        until_last_seen: bool = False,
        **arguments: Unpack[QuestionArguments],
    ) -> documents.Stats:
        """Compute the statistics of servers in a window.

        A quantile is the decimal of its text: 0.95 is 95/100. `above` adds the hours with more
        players. `versus` adds another window and compares with it: `previous`, the one of equal
        length before, `usual`, the same hours of the four weeks before, or one such as
        `2026-02-01..2026-02-08`. `around` is a date, whose days before and after are compared. With
        `until_last_seen`, each window ends at the last observation of its server.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        figures = _build_figures(quantiles, above)
        group = _build_query(versus, around, until_last_seen=until_last_seen)
        with self._ask(identifiers, group=group, **arguments) as question:
            return compute_stats(question, figures, group())

    def top(
        self,
        text: str | None = None,
        *,
        by: documents.TopKey = "average",
        reverse: bool = False,
        sum: bool = False,
        limit: int = 20,
        game: str | None = None,
        region: str | None = None,
        tags: Iterable[str] = (),
        offline: bool | None = None,
        quantiles: Iterable[float | str] = (),
        above: int | None = None,
        versus: str | None = None,
        around: str | None = None,
        until_last_seen: bool = False,
        **window: Unpack[WindowArguments],
    ) -> documents.Top:
        """Rank the servers that `servers` finds, and compute the statistics of the first ones.

        The greatest figure is first or, with `reverse`, the least; change and growth are those in
        players. With `sum`, `total` has the figures of the total of all servers found. The other
        arguments are those of `stats`.

        Raises UsageError, SnapshotError.
        """
        filters = _build_filters(text, game, region, tags, offline)
        figures = _build_figures(quantiles, above)
        group = _build_query(versus, around, until_last_seen=until_last_seen)
        _check_count("limit", limit, least=1)
        key = check_choice("by", by, get_args(documents.TopKey))
        with self._ask(None, group=group, filters=filters, **window) as question:
            query = group()
            return rank_servers(question, key, limit, figures, query, is_sum=sum, reverse=reverse)

    def growth(
        self,
        identifiers: Iterable[str] | None = None,
        *,
        step: documents.GrowthStepName = "day",
        after: str | None = None,
        **arguments: Unpack[QuestionArguments],
    ) -> documents.GrowthDocument:
        """Compute how servers grow, by calendar steps of the time zone `tz`.

        `after`, a date, adds what is left of the average of this day 7, 30 and 90 days later.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        _check_texts(after=after)
        name = check_choice("step", step, get_args(documents.GrowthStepName))
        with self._ask(identifiers, **arguments) as question:
            day = None if after is None else questions.parse_edge("after", after, question.zone)
            return compute_growth(question, name, day)

    def peak_hours(
        self,
        identifiers: Iterable[str] | None = None,
        *,
        by: documents.HourKey = "week-hour",
        sum: bool = False,
        **window: Unpack[WindowArguments],
    ) -> documents.PeakHours:
        """Compute the players of servers in each hour of the week of the time zone `tz`.

        `by` can also be the hour of the day or the weekday. Identifiers have their own namespace.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        key = check_choice("by", by, get_args(documents.HourKey))
        with self._ask(identifiers, sum=sum, **window) as question:
            return pictures.compute_peak_hours(question, key)

    def history(
        self,
        identifiers: Iterable[str] | None = None,
        *,
        step: str | None = None,
        aggregate: documents.Aggregate | None = None,
        **arguments: Unpack[QuestionArguments],
    ) -> documents.History:
        """Read observations or, with `step` such as `1h`, an aggregate of each step.

        Each iteration reads the rows from the snapshot, at most one server at a time.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        _check_texts(step=step, aggregate=aggregate)
        parsed, chosen = parse_steps(step, aggregate, is_sum=arguments.get("sum", False))
        with self._ask(identifiers, **arguments) as question:
            if parsed is None:
                history = read_history(question)
            else:
                steps = questions.divide_window(question, parsed)
                history = aggregate_history(question, steps, chosen)
            return replace(history, read_rows=partial(self._take_turns, history.read_rows))

    def together(
        self,
        identifiers: Iterable[str] | None = None,
        *,
        step: str = "1h",
        **arguments: Unpack[QuestionArguments],
    ) -> documents.Together:
        """Compute which of 2 to 20 servers move together, by rank correlations of steps.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        _check_texts(step=step)
        parsed = questions.parse_step(step)
        with self._ask(identifiers, **arguments) as question:
            return compute_together(question, parsed)

    def _take_turns(
        self, read_rows: Callable[[], Iterator[tuple[Any, ...]]]
    ) -> Iterator[tuple[Any, ...]]:
        """Read rows without keeping the snapshot from other threads for long."""
        rows = read_rows()

        def take() -> list[tuple[Any, ...]]:
            with self._use():
                return list(islice(rows, _ROWS_PER_TURN))

        return chain.from_iterable(iter(take, []))

    def integrity(
        self, identifiers: Iterable[str] | None = None, **arguments: Unpack[QuestionArguments]
    ) -> Integrity:
        """Find unusual patterns in player counts, which prove nothing. The default range is `90d`.

        `tz` also defines the hours of the day.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        with self._ask(identifiers, group=questions.LongWindowQuery, **arguments) as question:
            return check_integrity(question)

    def events(
        self,
        identifiers: Iterable[str] | None = None,
        *,
        since: str | None = None,
        kinds: Iterable[str] = (),
        longer: str | None = None,
        **arguments: Unpack[QuestionArguments],
    ) -> documents.Events:
        """List gaps, zeros, unusual days and changes of level. The default range is `90d`.

        `since`, such as `24h`, leaves out events that end before this last part of the window.
        `longer` is the length of the shortest gap, and of the shortest time without players.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        _check_texts(since=since, longer=longer)
        options = EventOptions(since, _list_values("kinds", kinds), longer)
        with self._ask(identifiers, group=questions.LongWindowQuery, **arguments) as question:
            return list_events(question, options)

    def today(
        self, identifiers: Iterable[str] | None = None, *, by: Namespace = "id", tz: str = "UTC"
    ) -> Today:
        """Summarize the servers at the end of the snapshot, for a page each morning.

        `tz` defines the same hour of other weeks, and yesterday.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        with self._ask(identifiers, by=by, range="all", tz=tz) as question:
            return compute_today(question)

    def timeline(
        self,
        identifiers: Iterable[str] | None = None,
        *,
        most_steps: int = 1000,
        **arguments: Unpack[QuestionArguments],
    ) -> documents.Timeline:
        """Compute the players of servers over time, in at most `most_steps` steps of `tz`.

        The steps are not much shorter than the usual interval of the observations.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        _check_count("most_steps", most_steps, least=2)
        with self._ask(identifiers, **arguments) as question:
            return pictures.compute_timeline(question, most_steps)

    def distribution(
        self,
        identifiers: Iterable[str] | None = None,
        *,
        most_bins: int = pictures.MOST_BINS,
        **arguments: Unpack[QuestionArguments],
    ) -> documents.Distribution:
        """Count how often servers had how many players, in at most `most_bins` equal bins.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        _check_count("most_bins", most_bins, least=1)
        with self._ask(identifiers, **arguments) as question:
            return pictures.compute_distribution(question, most_bins)

    def report(
        self,
        identifiers: Iterable[str] | None = None,
        *,
        title: str | None = None,
        **arguments: Unpack[QuestionArguments],
    ) -> documents.Report:
        """Collect what a report of one to five servers, or of their total, shows.

        The default range is `90d`.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        _check_texts(title=title)
        check_text("title", title)
        group = questions.LongWindowQuery
        window: Any = {
            name: value for name, value in arguments.items() if name not in {"by", "sum"}
        }
        with self._ask(identifiers, group=group, **arguments) as question:
            questions.check_server_count(len(list(question.servers)))
            return build_report(question, group(**window), title)


def open_snapshot(path: str | bytes | PathLike[str] | PathLike[bytes]) -> Snapshot:
    """Open a snapshot for reading: a file or a folder of shards, which is never changed.

    Raises SnapshotError; TypeError if `path` is not a path.
    """
    return Snapshot(snapshot.open_snapshot(fsdecode(path)))


def _list_values(name: str, values: Iterable[_Value]) -> list[_Value]:
    """Return the values of an argument.

    Raises TypeError for a single string, whose characters would be used otherwise.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{name}: must be a list")
    return list(values)


def _check_texts(**arguments: Any) -> None:
    """Check that arguments are None or strings.

    Raises TypeError, which names the argument.
    """
    for name, value in arguments.items():
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name}: must be a string")


def _check_count(name: str, value: Any, *, least: int) -> None:
    """Check that an argument is None or a number from `least` on.

    Raises TypeError, UsageError.
    """
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name}: must be an integer")
    if value < least:
        raise UsageError(f"{name}: {value} is less than {least}")


def _build_filters(
    text: str | None,
    game: str | None,
    region: str | None,
    tags: Iterable[str],
    offline: bool | None,
) -> selection.FilterOptions:
    """Return a filter of servers.

    Raises UsageError, TypeError.
    """
    _check_texts(text=text, game=game, region=region)
    wanted = _list_values("tags", tags)
    if not all(isinstance(tag, str) for tag in wanted):
        raise TypeError("tags: must be a list of strings")
    words = None if text is None else [text]
    return selection.FilterOptions(words, game, region, wanted, offline)


def _build_figures(quantiles: Iterable[float | str], above: int | None) -> FigureOptions:
    """Return the figures that are added to the usual ones.

    Raises UsageError, TypeError.
    """
    _check_count("above", above, least=0)
    # The text of a small float has an exponent.
    texts = [
        f"{Decimal(str(one)):f}" if isinstance(one, float) else str(one)
        for one in _list_values("quantiles", quantiles)
    ]
    return FigureOptions(texts, above)


def _build_query(
    versus: str | None, around: str | None, *, until_last_seen: bool
) -> Callable[..., questions.ComparedQuery]:
    """Return what builds the query for a window that is compared with another one."""
    _check_texts(versus=versus, around=around)
    return partial(
        questions.ComparedQuery, versus=versus, around=around, until_last_seen=until_last_seen
    )
