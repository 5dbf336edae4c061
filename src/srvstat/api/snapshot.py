"""An open snapshot, whose methods answer the questions of the command line."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from os import PathLike, fsdecode
from threading import RLock
from typing import TYPE_CHECKING, Any, NoReturn, Self, Unpack, get_args

from srvstat.analysis import pictures, questions, selection
from srvstat.analysis.events import EventOptions, list_events
from srvstat.analysis.growth import compute_growth
from srvstat.analysis.history import aggregate_history, parse_steps, read_history
from srvstat.analysis.integrity import check_integrity
from srvstat.analysis.parameters import MarkOption, check_choice, check_text
from srvstat.analysis.report import build_report
from srvstat.analysis.series import Total
from srvstat.analysis.servers import list_servers
from srvstat.analysis.statistics import FigureOptions, compute_stats, rank_servers
from srvstat.analysis.today import compute_today
from srvstat.analysis.together import compute_together
from srvstat.api.arguments import (
    Arguments,
    FilterArguments,
    PlotArguments,
    QuestionArguments,
    StatsArguments,
    Time,
    TopArguments,
    WindowArguments,
    check_count,
    check_texts,
    list_values,
    parse_time,
    warn_of_old_name,
)
from srvstat.contract.requests import (
    Namespace,
    ServerReference,
    build_compare_request,
    build_server_reference,
)
from srvstat.contract.responses import CompareResponse, ServerResponse
from srvstat.contract.time import format_instant
from srvstat.contract.windows import Range
from srvstat.documents import analysis as documents
from srvstat.documents.integrity import Integrity
from srvstat.documents.snapshot import Servers, SortKey, UpdateSummary
from srvstat.documents.today import Today
from srvstat.operations import answers as operations
from srvstat.snapshot.read import snapshot

if TYPE_CHECKING:
    from srvstat.api.frames import BuildArguments
    from srvstat.api.pages import Picture, Report

_ROWS_PER_TURN = 1000

_ALL_SERVERS = selection.FilterOptions()


class Snapshot:
    """An open snapshot: the result of `open_snapshot`, and a context manager that closes it.

    Threads may share it; one call runs at a time. To answer in parallel, open one in each thread. A
    child process must open its own.

    A window is a range that ends at `end`, such as `36h`, `7d`, `1y` or `all`, or it is
    `(start, end]`. The default is the last 30 days of the snapshot. `start` and `end` are times: an
    instant such as `2026-01-31T12:00Z`, a datetime with a time zone, also of pandas, or a date,
    which begins at midnight in the time zone `tz`.

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
        query: questions.WindowQuery,
        filters: selection.FilterOptions = _ALL_SERVERS,
        *,
        by: Namespace = "id",
        sum: bool = False,
    ) -> Iterator[selection.Question]:
        """Lock the file, and find the servers and the window of a question."""
        # Outside the lock: an iterable may use this snapshot itself, even in another thread.
        names = None if identifiers is None else list_values("identifiers", identifiers)
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

    @contextmanager
    def _ask_within(
        self,
        identifiers: Iterable[str] | None,
        arguments: Mapping[str, Any],
        group: type[questions.WindowQuery] = questions.WindowQuery,
    ) -> Iterator[selection.Question]:
        """Do what `_ask` does, for a question without parameters of its own."""
        given = Arguments(arguments)
        with self._ask(identifiers, given.take(group), **given.take_rest()) as question:
            yield question

    @property
    def as_of(self) -> str:
        """The instant of the answers, such as `2026-03-01T12:00:00.000Z`."""
        with self._use() as file:
            return format_instant(file.as_of)

    @property
    def root(self) -> str:
        """The root hash of the content: 64 hexadecimal digits."""
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
        at: Time | None = None,
    ) -> CompareResponse:
        """Answer Compare Servers: exact statistics of 2 to 5 servers over one range.

        Identifiers are parsed as in `get`. The default range is `30d`. `at` overrides the instant
        of the snapshot (D3); a date begins at midnight, UTC.

        Raises InvalidRequestError, ServerNotFoundError, SnapshotError; TypeError if `identifiers`
        is a single str or not iterable, or `at` not a time; UsageError if `at` is not an instant,
        and ValueError after `close`.
        """
        texts = list_values("identifiers", identifiers)
        instant = parse_time("at", at)
        with self._use() as file:
            build = partial(build_compare_request, by=by, range=range)
            request = selection.build_named(file, build, texts, by)
            return operations.compare(file, request, at=instant)

    def update(self, data: Any, **arguments: "Unpack[BuildArguments]") -> UpdateSummary:
        """Add a data frame to the file, by the rules of `srvstat snapshot update`.

        Columns and forms are those of the build, unless others are given; the arguments are those
        of `srvstat.build`. The next question reads the new file.

        Raises SnapshotError, SourceError, UsageError, OutputError; TypeError if `data` is not a
        data frame; ValueError after `close`.
        """
        # Whoever only asks needs none of what reads sources.
        from srvstat.api.frames import update  # noqa: PLC0415

        with self._use() as file:
            summary = update(file.path, file.reading, data, arguments)
            self._file = snapshot.open_snapshot(file.path)
            file.close()
            return summary

    def servers(
        self,
        text: str | None = None,
        *,
        sort: SortKey = "id",
        limit: int | None = None,
        **filters: Unpack[FilterArguments],
    ) -> Servers:
        """Find servers.

        All words of `text` must be in the identifiers, the hostname, the project, its description
        or the tags.

        Raises UsageError, SnapshotError.
        """
        given = Arguments({"text": text, "limit": limit, **filters})
        key = check_choice("sort", sort, get_args(SortKey))
        wanted = given.take(selection.FilterOptions)
        with self._use() as file:
            return list_servers(file, wanted, sort=key, **given.take_rest())

    def stats(
        self, identifiers: Iterable[str] | None = None, **arguments: Unpack[StatsArguments]
    ) -> documents.Stats:
        """Compute the statistics of servers in a window.

        Quantiles are parsed exactly: 0.95 means 95/100. `above` adds the hours with more players.
        `versus` adds another window and compares with it: `previous`, the one of equal
        length before, `usual`, the same hours of the four weeks before, or the one between two
        times. `around` is a date, whose days before and after are compared. With `until_last_seen`,
        each window ends at the last observation of its server.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        given = Arguments(arguments)
        figures, query = given.take(FigureOptions), given.take(questions.ComparedQuery)
        with self._ask(identifiers, query, **given.take_rest()) as question:
            return compute_stats(question, figures, query)

    def top(
        self,
        text: str | None = None,
        *,
        rank_by: documents.TopKey = "average",
        by: documents.TopKey | None = None,
        reverse: bool = False,
        sum: bool = False,
        limit: int = 20,
        **arguments: Unpack[TopArguments],
    ) -> documents.Top:
        """Rank the servers that `servers` finds, and compute the statistics of the first ones.

        Sorts by `rank_by` in descending order, or ascending with `reverse`; "growth" and "change"
        are in players. `sum` adds `total`, the statistics of all servers found together. The other
        arguments are those of `stats`. `by` is the former name of `rank_by`.

        Raises UsageError, SnapshotError.
        """
        given = Arguments({"text": text, **arguments})
        figures, query = given.take(FigureOptions), given.take(questions.ComparedQuery)
        filters = given.take(selection.FilterOptions)
        check_count("limit", limit, least=1)
        key = check_choice(
            "rank_by", warn_of_old_name("by", by, "rank_by") or rank_by, get_args(documents.TopKey)
        )
        with self._ask(None, query, filters, **given.take_rest()) as question:
            return rank_servers(question, key, limit, figures, query, is_sum=sum, reverse=reverse)

    def growth(
        self,
        identifiers: Iterable[str] | None = None,
        *,
        step: documents.GrowthStepName = "day",
        after: Time | None = None,
        **arguments: Unpack[QuestionArguments],
    ) -> documents.GrowthDocument:
        """Compute how servers grow, by calendar steps of the time zone `tz`.

        `after`, a date, adds what is left of the average of this day 7, 30 and 90 days later.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        given = Arguments(arguments)
        name = check_choice("step", step, get_args(documents.GrowthStepName))
        query = given.take(questions.WindowQuery)
        day = parse_time("after", after, questions.find_zone(query.tz))
        with self._ask(identifiers, query, **given.take_rest()) as question:
            return compute_growth(question, name, day)

    def peak_hours(
        self,
        identifiers: Iterable[str] | None = None,
        *,
        group_by: documents.HourKey = "week-hour",
        by: documents.HourKey | None = None,
        sum: bool = False,
        **window: Unpack[WindowArguments],
    ) -> documents.PeakHours:
        """Compute the players of servers in each hour of the week of the time zone `tz`.

        `group_by` can also be "hour", of the day, or "weekday". Identifiers have their own
        namespace. `by` is the former name of `group_by`.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        chosen = warn_of_old_name("by", by, "group_by") or group_by
        key = check_choice("group_by", chosen, get_args(documents.HourKey))
        with self._ask_within(identifiers, {"sum": sum, **window}) as question:
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
        check_texts(step=step, aggregate=aggregate)
        parsed, chosen = parse_steps(step, aggregate, is_sum=arguments.get("sum", False))
        with self._ask_within(identifiers, arguments) as question:
            if parsed is None:
                history = read_history(question)
            else:
                steps = questions.divide_window(question, parsed)
                history = aggregate_history(question, steps, chosen)
            return replace(history, read_rows=partial(self._take_turns, history.read_rows))

    def _take_turns(
        self, read_rows: Callable[[], Iterator[tuple[Any, ...]]]
    ) -> Iterator[tuple[Any, ...]]:
        """Read rows without keeping the snapshot from other threads for long."""
        rows = read_rows()

        def take() -> list[tuple[Any, ...]]:
            with self._use():
                return list(islice(rows, _ROWS_PER_TURN))

        return chain.from_iterable(iter(take, []))

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
        check_texts(step=step)
        parsed = questions.parse_step(step)
        with self._ask_within(identifiers, arguments) as question:
            return compute_together(question, parsed)

    def integrity(
        self, identifiers: Iterable[str] | None = None, **arguments: Unpack[QuestionArguments]
    ) -> Integrity:
        """Find unusual patterns in player counts, which prove nothing. The default range is `90d`.

        `tz` also defines the hours of the day.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        with self._ask_within(identifiers, arguments, questions.LongWindowQuery) as question:
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
        check_texts(since=since, longer=longer)
        options = EventOptions(since, list_values("kinds", kinds), longer)
        with self._ask_within(identifiers, arguments, questions.LongWindowQuery) as question:
            return list_events(question, options)

    def today(
        self, identifiers: Iterable[str] | None = None, *, by: Namespace = "id", tz: str = "UTC"
    ) -> Today:
        """Summarize the servers at the end of the snapshot, for a page each morning.

        `tz` defines the same hour of other weeks, and yesterday.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        with self._ask_within(identifiers, {"by": by, "range": "all", "tz": tz}) as question:
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
        check_count("most_steps", most_steps, least=2)
        with self._ask_within(identifiers, arguments) as question:
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
        check_count("most_bins", most_bins, least=1)
        with self._ask_within(identifiers, arguments) as question:
            return pictures.compute_distribution(question, most_bins)

    def plot(
        self, identifiers: Iterable[str] | None = None, **arguments: Unpack[PlotArguments]
    ) -> "Picture":
        """Draw one to five servers, or their total, as `srvstat plot` does.

        `mark` has labels of times: `["2026-03-01=Update 5"]` or `{date(2026, 3, 1): "Update 5"}`.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        # Whoever only asks needs no pictures.
        from srvstat.api.pages import LookOptions, PictureOptions, draw_picture  # noqa: PLC0415

        given = Arguments(arguments)
        options, look = given.take(PictureOptions), given.take(LookOptions)
        look.check(is_png=False)
        query = given.take(questions.WindowQuery)
        marks = questions.parse_marks(options.mark, questions.find_zone(query.tz))
        compute = options.choose_question(marks)
        with self._ask(identifiers, query, **given.take_rest()) as question:
            questions.check_server_count(len(list(question.servers)))
            for one in marks:
                if not question.window.includes(one.at):
                    warnings.warn(f"mark: {one.label}: outside the window", stacklevel=2)
            return draw_picture(
                compute(question), options, look, question.snapshot.path, question.zone
            )

    def report(
        self,
        identifiers: Iterable[str] | None = None,
        *,
        title: str | None = None,
        mark: Iterable[str] | Mapping[Time, str] = (),
        **arguments: Unpack[QuestionArguments],
    ) -> "Report":
        """Collect what a report of one to five servers, or of their total, shows.

        A notebook shows the page. The default range is `90d`. `mark` is that of `plot`.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        # Whoever only asks needs no pages.
        from srvstat.api.pages import Report  # noqa: PLC0415

        check_texts(title=title)
        check_text("title", title)
        given = Arguments({"mark": mark, **arguments})
        query, marks = given.take(questions.LongWindowQuery), given.take(MarkOption).mark or ()
        with self._ask(identifiers, query, **given.take_rest()) as question:
            questions.check_server_count(len(list(question.servers)))
            return Report(**dict(build_report(question, query, title, marks)))


def open_snapshot(path: str | bytes | PathLike[str] | PathLike[bytes]) -> Snapshot:
    """Open a snapshot for reading: a file or a folder of shards, which is never changed.

    Raises SnapshotError; TypeError if `path` is not a path.
    """
    return Snapshot(snapshot.open_snapshot(fsdecode(path)))
