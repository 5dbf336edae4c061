"""An open snapshot, whose methods answer the questions of the command line."""

import os
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
from srvstat.contract import requests, responses, time, windows
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
    """An open snapshot, whose methods answer questions about servers. `open_snapshot` returns it.

    It is a context manager that closes the file. Arguments that many methods take:

    - `identifiers`: a list of ids, names, `id:ID` or `cfxId:ID`. None means all servers.
    - `by`: the namespace of identifiers without a prefix, `id` or `cfxId`.
    - `range`: the length of the window, such as `36h`, `7d`, `1y` or `all`. Default: `30d`.
    - `start` and `end`: the window `(start, end]`. Default: the last `range` of the snapshot. Both
      are times: text such as `2026-01-31T12:00Z`, a datetime with a time zone, also of pandas, or a
      date, which begins at midnight of `tz`.
    - `tz`: the time zone of dates, hours and steps, such as `Europe/Berlin`. Default: `UTC`.
    - `sum`: whether to answer for the total of the servers.

    Counts are players. Attributes such as `as_of` are Unix milliseconds, except `Snapshot.as_of`.

    Threads may share a snapshot; one call runs at a time. To answer in parallel, open one in each
    thread. A child process must open its own: those of its parent raise RuntimeError.

    Methods raise UsageError for an invalid value, TypeError for a value of a wrong type,
    SnapshotError for damage in what they read, and ValueError after `close`. Methods with
    identifiers also raise InvalidRequestError and ServerNotFoundError.

    >>> snapshot.as_of
    '2026-03-01T12:00:00.000Z'
    """

    def __init__(self, file: snapshot.Snapshot) -> None:
        self._file = file
        self._is_closed = False
        self._process = os.getpid()
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
        """Close the file, after a running call of another thread. Closing twice is allowed.

        >>> snapshot.close()
        """
        if os.getpid() != self._process:
            return  # the file belongs to the parent
        with self._lock:
            self._is_closed = True
            self._file.close()

    @contextmanager
    def _use(self) -> Iterator[snapshot.Snapshot]:
        """Lock the file for one call.

        Raises ValueError after `close`, RuntimeError in a child process.
        """
        # Another thread may have held the lock at the fork, and does not exist here.
        if os.getpid() != self._process:
            raise RuntimeError("the snapshot was opened before a fork; open it in each process")
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
        by: requests.Namespace = "id",
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
        """The time of the responses, such as `2026-03-01T12:00:00.000Z`."""
        with self._use() as file:
            return time.format_instant(file.as_of)

    @property
    def root(self) -> str:
        """The hash of the content, 64 hexadecimal digits. `srvstat snapshot verify` checks it."""
        with self._use() as file:
            return file.root

    def get(self, identifier: str, *, by: requests.Namespace = "id") -> responses.ServerResponse:
        """Return the response of Get Server: the public details of one server.

        `identifier` is an id, a name, `id:ID` or `cfxId:ID`; a prefix overrides `by`. Names work
        only if the snapshot was built without a servers file.

        Raises InvalidRequestError, ServerNotFoundError; SnapshotError for damage, or a server
        without a game.

        >>> snapshot.get("night-shift").data.players.current
        34
        """

        def build(identifiers: Sequence[str]) -> requests.ServerReference:
            return requests.build_server_reference(identifiers[0], by=by)

        with self._use() as file:
            return operations.get_server(file, selection.build_named(file, build, [identifier], by))

    def compare(
        self,
        identifiers: Sequence[str],
        *,
        by: requests.Namespace = "id",
        range: windows.Range | None = None,
        at: Time | None = None,
    ) -> responses.CompareResponse:
        """Return the response of Compare Servers: exact statistics of 2 to 5 servers.

        `identifiers` are ids, names, `id:ID` or `cfxId:ID`. Names work only if the snapshot was
        built without a servers file. `range` is `24h`, `7d`, `30d`, `90d` or `1y`; default: `30d`.
        `at` is the time when the window ends; default: the end of the snapshot.

        Raises InvalidRequestError, ServerNotFoundError, SnapshotError; UsageError for an invalid
        `at`; TypeError if `identifiers` is a single string.

        >>> answer = snapshot.compare(["harbor-city", "cfxId:ns6r0b"], range="7d")
        >>> [one.median_players for one in answer.data]
        [113.0, 32.0]
        >>> answer.to_json()[:36]
        b'{"range":"7d","data":[{"serverId":"h'
        """
        texts = list_values("identifiers", identifiers)
        instant = parse_time("at", at)
        with self._use() as file:
            build = partial(requests.build_compare_request, by=by, range=range)
            request = selection.build_named(file, build, texts, by)
            return operations.compare(file, request, at=instant)

    def update(self, data: Any, **arguments: "Unpack[BuildArguments]") -> UpdateSummary:
        """Add a data frame to the file, as `srvstat snapshot update` does.

        The options of the build apply again, unless arguments replace them: `columns`, `wide`,
        `id`, `time_zone`, `time_unit`, `time_format`, `thousands`, `round`, `hold`, `slug_ids` and
        `game`. `servers`, `at`, `rejects`, `max_rejected` and `strict` are as in `srvstat.build`.
        The next question reads the new file. Warns of rows that are not kept.

        Returns the numbers of servers and rows. Raises SnapshotError, SourceError, UsageError,
        OutputError; TypeError if `data` is not a data frame.

        >>> polls = {"serverId": ["old-guard"], "observedAt": ["2026-03-01T13:00Z"], "players": [2]}
        >>> snapshot.update(polars.DataFrame(polls)).rows.kept
        1
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
        """Find servers by their words and properties.

        All words of `text` must be in the identifiers, the hostname, the project, its description
        or the tags. `sort` is `id`, `hostname`, `game`, `region`, `observations`, `last-seen`,
        `coverage` or `current`; `limit` is the most servers to return. `game`, `region`, `tags`
        (all of them) and `offline` select servers.

        Raises UsageError, SnapshotError.

        >>> [one.id for one in snapshot.servers(sort="current", limit=2).servers]
        ['harbor-city', 'new-frontier']
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

        - `quantiles` are parsed exactly: `"0.95"` and `0.95` mean 95/100.
        - `above` counts the hours with more than this many players.
        - `versus` compares with another window: `previous`, of equal length; `usual`, the same
          hours of the four weeks before; or a pair of times.
        - `around` compares the days from this date on with as many before it.
        - `until_last_seen` ends the window of each server at its last observation.
        - `by`, `range`, `start`, `end`, `tz` and `sum`: see `Snapshot`.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.

        >>> (server,) = snapshot.stats(["harbor-city"], range="7d", quantiles=[0.95]).servers
        >>> server.peak_players, server.quantiles[0].players
        (345, 300.0)
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
        """Rank servers by a statistic, in descending order.

        `rank_by` is `average`, `share`, `occupancy`, `median`, `peak`, `lowest`, `change`,
        `growth`, `samples` or `current`; `change` and `growth` rank by players, not by percentages.
        `reverse` ranks in ascending order, `limit` is the most servers to return, and `sum` adds
        the total of all servers found. `by` is the former name of `rank_by`.

        - `text`, `game`, `region`, `tags` and `offline` select servers, as in `servers`.
        - `quantiles`, `above`, `versus`, `around` and `until_last_seen`: see `stats`.
        - `range`, `start`, `end` and `tz`: see `Snapshot`.

        Raises UsageError, SnapshotError.

        >>> [one.server_id for one in snapshot.top(rank_by="peak", range="7d", limit=2).servers]
        ['harbor-city', 'new-frontier']
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
        """Compute how servers grow by calendar days, weeks or months of `tz`.

        `step` is `day`, `week` or `month`. `after`, a date, adds how much of the average of this
        day remains 7, 30 and 90 days later. The other arguments are `by`, `range`, `start`, `end`,
        `tz` and `sum` of `Snapshot`.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.

        >>> (server,) = snapshot.growth(["harbor-city"], range="7d").servers
        >>> server.growth.players, round(server.players_per_week, 1)
        (-4, 73.1)
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
        """Compute the average players in each hour of the week, of the day, or on each weekday.

        `group_by` is `week-hour`, `hour` or `weekday`. `by` is its former name and not a namespace,
        so write a cfxId as `cfxId:ID`. `range`, `start`, `end` and `tz` choose the window.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.

        >>> (server,) = snapshot.peak_hours(["harbor-city"], group_by="hour").servers
        >>> server.busiest.hour, server.quietest.hour
        (20, 5)
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
        """Read player counts, raw or per interval.

        `step`, such as `1h`, `day` or `week`, is the length of an interval; None reads raw counts.
        `aggregate` combines the counts of an interval: `mean` (default), `median`, `max`, `min` or
        `last`; `share` and `rank` compare the averages of servers. `by`, `range`, `start`, `end`,
        `tz` and `sum` are as in `Snapshot`.

        Iterating over the result reads rows from the snapshot: tuples in the order of its columns,
        with times in Unix milliseconds.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.

        >>> history = snapshot.history(["harbor-city"], range="24h", step="6h", aggregate="max")
        >>> history.to_polars()["players"].to_list()
        [268, 336, 123, 147]
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
        """Compute rank correlations between 2 to 20 servers: which ones move together.

        `step` is the interval whose averages are compared. `by`, `range`, `start`, `end` and `tz`
        select the servers and the window.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.

        >>> together = snapshot.together(["harbor-city", "new-frontier"])
        >>> [round(pair.correlation, 2) for pair in together.pairs]
        [-0.02]
        """
        check_texts(step=step)
        parsed = questions.parse_step(step)
        with self._ask_within(identifiers, arguments) as question:
            return compute_together(question, parsed)

    def integrity(
        self, identifiers: Iterable[str] | None = None, **arguments: Unpack[QuestionArguments]
    ) -> Integrity:
        """Check the player counts of servers for unusual patterns.

        Each rule has its evidence and benign explanations. A suspect result proves nothing and is
        not a probability. `by`, `range`, `start`, `end` and `tz` are optional; the default range is
        `90d`.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.

        >>> (server,) = snapshot.integrity(["harbor-city"]).servers
        >>> [one.rule for one in server.rules if one.result == "suspect"]
        []
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
        """List gaps, times without players, unusual days and level changes.

        `since`, such as `24h`, omits events that end before this last part of the window. `kinds`
        selects from `gap`, `zeros`, `unusualDay`, `stepChange` and `belowUsual`. `longer`, such as
        `6h`, is the shortest gap, and the shortest time without players. `by`, `range`, `start`,
        `end`, `tz` and `sum` are as in `Snapshot`, but the default range is `90d`.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.

        >>> events = snapshot.events(["night-shift"], kinds=["gap"], longer="12h").events
        >>> len(events), {one.kind for one in events}
        (3, {'gap'})
        """
        check_texts(since=since, longer=longer)
        options = EventOptions(since, list_values("kinds", kinds), longer)
        with self._ask_within(identifiers, arguments, questions.LongWindowQuery) as question:
            return list_events(question, options)

    def today(
        self,
        identifiers: Iterable[str] | None = None,
        *,
        by: requests.Namespace = "id",
        tz: str = "UTC",
    ) -> Today:
        """Summarize servers at the end of the snapshot.

        Compares the total players with the same hour of the four weeks before, and lists silent
        servers, the largest changes and yesterday's peak. `tz` is the time zone of hours and days.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.

        >>> total = snapshot.today().total
        >>> total.players, total.same_hour_median
        (333, 268.0)
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
        """Compute players over time, in at most `most_steps` intervals of equal length.

        Intervals are not much shorter than the polling interval. Optional are also `by`, `range`,
        `start`, `end`, `tz` and `sum`.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.

        >>> (server,) = snapshot.timeline(["harbor-city"], range="7d", most_steps=2).servers
        >>> server.peak
        (345, 336)
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
        """Count how often servers had how many players, in at most `most_bins` bins of equal width.

        The arguments `by`, `range`, `start`, `end`, `tz` and `sum` of `Snapshot` are optional.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.

        >>> (server,) = snapshot.distribution(["harbor-city"], range="7d", most_bins=4).servers
        >>> server.counts
        (77, 54, 29, 9)
        """
        check_count("most_bins", most_bins, least=1)
        with self._ask_within(identifiers, arguments) as question:
            return pictures.compute_distribution(question, most_bins)

    def plot(
        self, identifiers: Iterable[str] | None = None, **arguments: Unpack[PlotArguments]
    ) -> "Picture":
        """Draw one to five servers, or their total.

        - `kind`: `players`, `growth`, `hours`, `distribution`, `share` or `compare`.
        - `step`: the interval, such as `1h`, `day` or `week`.
        - `mark`: labels of times, `["2026-03-01=Update 5"]` or `{date(2026, 3, 1): "Update 5"}`.
        - `title`, `subtitle`, `caption`: texts. By default, they are chosen, and the caption names
          the snapshot.
        - `width`, `height`: pixels of an SVG; a PNG has twice as many. `scale` enlarges both.
        - `theme`: `light`, `dark` or, for an SVG, `auto`.
        - `by`, `range`, `start`, `end`, `tz` and `sum`: see `Snapshot`. `source` is the former name
          of `caption`.

        Returns a Picture, which a notebook shows; `save` writes an SVG or a PNG. Warns of a mark
        outside the window.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.

        >>> snapshot.plot(["harbor-city"], range="90d").save("players.svg")
        """
        # Whoever only asks needs no pictures.
        from srvstat.api.pages import LookOptions, PictureOptions, draw_picture  # noqa: PLC0415

        caption = warn_of_old_name("source", arguments.pop("source", None), "caption")
        given = Arguments({**arguments, "caption": caption or arguments.get("caption")})
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
        """Write a report about one to five servers, or their total, as one HTML page.

        `title` replaces the names of the servers. `mark` adds labeled lines, as in `plot`. `by`,
        `range` (default: `90d`), `start`, `end`, `tz` and `sum` select what the report covers.

        Returns a Report, which a notebook shows; `save` writes the page.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.

        >>> snapshot.report(["harbor-city"]).save("report.html")
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
    """Open a snapshot for reading: a file, or a folder of shards. It is never changed.

    Raises SnapshotError if `path` is missing, damaged or not a snapshot; TypeError if it is not a
    path.

    >>> with srvstat.open_snapshot("srvstat-demo/snapshot.db") as snapshot:
    ...     snapshot.get("harbor-city").data.hostname
    'Harbor City Roleplay'
    """
    return Snapshot(snapshot.open_snapshot(fsdecode(path)))
