"""Define the Snapshot class, with a method for each query command."""

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
    """An open snapshot, with methods to query its servers. Create it with `open_snapshot`.

    Use it in a `with` statement to close the file. Many methods share these arguments:

    - `identifiers`: a list of servers, each an id, a name, `id:ID` or `cfxId:ID`. None means all
      servers.
    - `by`: the namespace of identifiers without a prefix, `id` (default) or `cfxId`.
    - `range`: the length of the window, such as `36h`, `7d`, `1y` or `all`. Default: `30d`.
    - `start` and `end`: the window `(start, end]`. Default: the last `range` before the end of the
      snapshot. Both are times: text such as `2026-01-31T12:00Z`, an aware datetime or pandas
      Timestamp, or a date (midnight in `tz`).
    - `tz`: the time zone of dates, hours and steps, such as `Europe/Berlin`. Default: `UTC`.
    - `sum`: if true, return the total of the servers. Default: false.

    Counts are numbers of players. Time attributes of results are Unix milliseconds, except in the
    responses of `get` and `compare` and in `Snapshot.as_of`, which use text. JSON always uses text,
    and data frames have UTC datetimes.

    A snapshot is thread-safe, but runs one call at a time; open a separate snapshot in each thread
    to run queries in parallel. A snapshot that was opened before a fork raises RuntimeError in the
    child process.

    Methods raise UsageError for an invalid value, TypeError for most values of a wrong type,
    SnapshotError if the data are damaged or a bundle does not contain the requested servers or
    times, and ValueError after `close`. Methods with identifiers also raise InvalidRequestError for
    an invalid identifier or `by`, and ServerNotFoundError for an unknown server or an ambiguous
    name.

    >>> snapshot.as_of
    '2026-03-01T12:00:00.000Z'
    """

    def __init__(self, file: snapshot.Snapshot) -> None:
        self._file = file
        self._is_closed = False
        self._process = os.getpid()
        # Reentrant, because a signal handler can close the snapshot while its own thread is inside
        # a call.
        self._lock = RLock()

    def __enter__(self) -> Self:
        with self._use():
            return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a snapshot can't be copied or pickled; open it again")

    def close(self) -> None:
        """Close the file, after any running calls in other threads.

        Closing it again has no effect, nor has closing it in a child process.

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

        Raises ValueError after `close`, and RuntimeError in a child process.
        """
        # A lock that another thread held at the time of the fork would never be released here.
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
        """Lock the file, and find the servers and the window of a query."""
        # Outside the lock, because an iterable may itself use this snapshot, even in another
        # thread.
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
        """Call `_ask` with a window query built from keyword arguments."""
        given = Arguments(arguments)
        with self._ask(identifiers, given.take(group), **given.take_rest()) as question:
            yield question

    @property
    def as_of(self) -> str:
        """The end of the snapshot, such as `2026-03-01T12:00:00.000Z`.

        By default, windows end at this time.
        """
        with self._use() as file:
            return time.format_instant(file.as_of)

    @property
    def root(self) -> str:
        """The SHA-256 root hash of the content, as 64 hexadecimal digits.

        `srvstat snapshot verify` checks it.
        """
        with self._use() as file:
            return file.root

    def get(self, identifier: str, *, by: requests.Namespace = "id") -> responses.ServerResponse:
        """Return the response of Get Server: the public details of one server.

        - `identifier`: an id, a name, `id:ID` or `cfxId:ID`. Names work only if the snapshot was
          built without a servers file.
        - `by`: the namespace of an identifier without a prefix, `id` (default) or `cfxId`.

        Returns a ServerResponse; `data` is a ServerDetail with fields such as `id`, `hostname` and
        `players`.

        Raises InvalidRequestError for a malformed identifier or namespace, ServerNotFoundError for
        an unknown server, and SnapshotError if data are damaged, a bundle lacks the server, or its
        record has no game.

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

        - `identifiers`: ids, names, `id:ID` or `cfxId:ID`. Names work only if the snapshot was
          built without a servers file.
        - `by`: the namespace of identifiers without a prefix, `id` (default) or `cfxId`.
        - `range`: `24h`, `7d`, `30d`, `90d` or `1y`. Default: `30d`.
        - `at`: the end of the window. Default: the end of the snapshot.

        Returns a CompareResponse; `data` has one ServerResult per server, in the order given.

        Raises InvalidRequestError for an invalid identifier, namespace or range or for a wrong
        number of servers, ServerNotFoundError for an unknown server, SnapshotError if data are
        damaged or a bundle does not cover the window, UsageError for an invalid `at`, and TypeError
        if `identifiers` is a single string.

        >>> response = snapshot.compare(["harbor-city", "cfxId:ns6r0b"], range="7d")
        >>> [server.median_players for server in response.data]
        [113.0, 32.0]
        >>> response.to_json()[:36]
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

        - `data`: a data frame, as in `srvstat.build`.
        - `columns`, `wide`, `id`, `time_zone`, `time_unit`, `time_format`, `thousands`, `round`,
          `hold`, `slug_ids`, `game`: see `srvstat.build`. Default: the options of the original
          build.
        - `servers`, `at`, `rejects`, `max_rejected`, `strict`: see `srvstat.build`.

        Later queries use the updated file. Issues a warning if rows are not kept.

        Returns an UpdateSummary: `rows.kept` is the number of added rows, and `observations` is the
        total number of observations.

        Raises SnapshotError if the snapshot is damaged, SourceError if the data can't be read or
        too many rows are rejected, UsageError for an invalid argument, OutputError if the file
        can't be written, ImportError if pyarrow is not installed, and TypeError if `data` is not a
        data frame.

        >>> polls = {"serverId": ["old-guard"], "observedAt": ["2026-03-01T13:00Z"], "players": [2]}
        >>> snapshot.update(polars.DataFrame(polls)).rows.kept
        1
        """
        # Imported here because queries do not need the readers.
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
        """Find servers by text and properties.

        - `text`: words that must all be in the identifiers, the hostname, the project, its
          description or the tags.
        - `sort`: `id` (default), `hostname`, `game`, `region`, `observations`, `last-seen`,
          `coverage` or `current`.
        - `limit`: the maximum number of servers. Default: no limit.
        - `game`, `region`: only servers with this game or region.
        - `tags`: only servers with all of these tags.
        - `offline`: True for offline servers only, False for online servers only. A server is
          offline if its record says so or if it has no observation in the last 24 hours.

        Returns a Servers document; `servers` lists the servers found, and `matched` is their total
        number.

        Raises the errors described in `Snapshot`.

        >>> [server.id for server in snapshot.servers(sort="current", limit=2).servers]
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

        - `quantiles`: quantile levels from 0 to 1, as floats or text. `0.95` means exactly 95/100.
        - `above`: a number of players. Adds the hours during which more players were online.
        - `versus`: the window to compare with: `previous` (the preceding window of equal length),
          `usual` (the same hours of the four previous weeks) or a tuple of two times.
        - `around`: a date. Compares up to 30 whole days from this date on with the same number of
          days before it. `range` sets the number of days.
        - `until_last_seen`: whether the window of each server ends at its last observation.
          Default: false.
        - `identifiers`, `by`, `range`, `start`, `end`, `tz`, `sum`: see `Snapshot`.

        Returns a Stats document; `servers` has one ServerStatistics per server, with attributes
        such as `average_players`, `coverage` and `change`.

        Raises the errors described in `Snapshot`.

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

        - `rank_by`: `average` (default), `share`, `occupancy`, `median`, `peak`, `lowest`,
          `change`, `growth`, `samples` or `current`. `change` and `growth` rank by players, not by
          percentages. `by` is the deprecated name of this argument.
        - `reverse`: whether to rank in ascending order. Default: false.
        - `limit`: the maximum number of servers, at least 1. Default: 20.
        - `sum`: whether to add the total of all matching servers. Default: false.
        - `text`, `game`, `region`, `tags`, `offline`: see `servers`.
        - `quantiles`, `above`, `versus`, `around`, `until_last_seen`: see `stats`.
        - `range`, `start`, `end`, `tz`: see `Snapshot`.

        Returns a Top document; `servers` has one ServerStatistics per listed server. With `sum`,
        `total` has the statistics of all matching servers together.

        Raises the errors described in `Snapshot`.

        >>> top = snapshot.top(rank_by="peak", range="7d", limit=2)
        >>> [server.server_id for server in top.servers]
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
        """Compute the growth of servers by calendar day, week or month in `tz`.

        - `step`: `day` (default), `week` or `month`.
        - `after`: a date, such as the day of a release. Adds the averages of this day and of the
          days 7, 30 and 90 days later, and the ratio of each to this day's average.
        - `identifiers`, `by`, `range`, `start`, `end`, `tz`, `sum`: see `Snapshot`.

        Returns a GrowthDocument; `servers` has one ServerGrowth per server, with `growth`,
        `players_per_week` (the trend) and `steps`.

        Raises the errors described in `Snapshot`.

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
        """Compute the average number of players by hour of the week, hour of the day or weekday.

        - `group_by`: `week-hour` (default), `hour` or `weekday`. `by`, its deprecated
          name, does not choose a namespace here; write `cfxId:ID` for a cfxId.
        - `identifiers`, `range`, `start`, `end`, `tz`, `sum`: see `Snapshot`.

        Returns a PeakHours document; `servers` has one ServerPeakHours per server, with `busiest`,
        `quietest` and `cells`.

        Raises the errors described in `Snapshot`.

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

        - `step`: the length of an interval, such as `1h`, `day` or `week`. Default: None, which
          reads raw counts.
        - `aggregate`: how to combine the counts of an interval: `mean` (default), `median`, `max`,
          `min` or `last`. `share` and `rank` compare the averages of servers, and can't
          be combined with `sum`. Every aggregate requires `step`.
        - `identifiers`, `by`, `range`, `start`, `end`, `tz`, `sum`: see `Snapshot`.

        Returns a History document. Iterate over it to read rows lazily: tuples in the order of its
        `columns`, with times in Unix milliseconds. The columns are `serverId`, `observedAt` and
        `players`; with `step`, they are `serverId`, `from`, `to`, `sampleCount`, `players`,
        `observedShare` and `isPartial`. With `sum`, `serverCount` replaces `serverId`.

        Raises the errors described in `Snapshot`.

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
        """Read rows in batches, so that other threads can use the snapshot in between."""
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
        """Compute rank correlations between 2 to 20 servers.

        Correlates the averages of intervals, after subtracting each server's mean for that hour of
        the week.

        - `step`: the length of an interval, such as `30m` or `day`. Default: `1h`.
        - `identifiers`, `by`, `range`, `start`, `end`, `tz`: see `Snapshot`. `sum` is not
          supported.

        Returns a Together document; `pairs` has the `correlation` of each pair of servers.

        Raises the errors described in `Snapshot`.

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

        A result of `suspect` is a reason to look closer. It is neither proof nor a probability.

        - `range`: see `Snapshot`, but the default is `90d`.
        - `identifiers`, `by`, `start`, `end`, `tz`, `sum`: see `Snapshot`.

        Returns an Integrity document; `servers` has one ServerIntegrity per server. Each of its
        `rules` has a `result`, the evidence and benign explanations.

        Raises the errors described in `Snapshot`.

        >>> (server,) = snapshot.integrity(["harbor-city"]).servers
        >>> [rule.rule for rule in server.rules if rule.result == "suspect"]
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

        - `since`: list only events that ended within this time before the end of the window, such
          as `24h`.
        - `kinds`: list only these kinds: `gap`, `zeros`, `unusualDay`, `stepChange` or
          `belowUsual`. Default: all.
        - `longer`: the minimum length of gaps and of periods without players, such as `6h`.
          Default: `2h` for gaps and 30 minutes for periods without players. A gap is always longer
          than three polling intervals. Does not affect other kinds.
        - `range`: see `Snapshot`, but the default is `90d`.
        - `identifiers`, `by`, `start`, `end`, `tz`, `sum`: see `Snapshot`.

        Returns an Events document; each of its `events` has `kind`, `server_id`, `from_` and `to`.

        Raises the errors described in `Snapshot`.

        >>> events = snapshot.events(["night-shift"], kinds=["gap"], longer="12h").events
        >>> len(events), {event.kind for event in events}
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
        """Summarize servers as of the end of the snapshot.

        Compares the total number of players with the same hour of the four previous weeks. Lists
        servers without observations in the last 24 hours, the largest changes, yesterday's peak,
        and recent gaps and periods without players.

        - `identifiers`, `by`: see `Snapshot`.
        - `tz`: the time zone of hours and days. Default: `UTC`.

        Returns a Today document; its main attributes are `total`, `silent`, `changed`,
        `yesterday_peak` and `events`.

        Raises the errors described in `Snapshot`.

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
        max_steps: int = 1000,
        most_steps: int | None = None,
        **arguments: Unpack[QuestionArguments],
    ) -> documents.Timeline:
        """Compute players over time in at most `max_steps` intervals.

        - `max_steps`: the maximum number of intervals, at least 2. Default: 1,000. Intervals have
          the shortest suitable length, from minutes to a calendar month, which is usually at least
          the polling interval. `most_steps` is the deprecated name of this argument.
        - `identifiers`, `by`, `range`, `start`, `end`, `tz`, `sum`: see `Snapshot`.

        Returns a Timeline document; `servers` has the average, lowest and peak players of each
        interval.

        Raises UsageError if the window has more than `max_steps` months, and the errors described
        in `Snapshot`.

        >>> (server,) = snapshot.timeline(["harbor-city"], range="7d", max_steps=2).servers
        >>> server.peak
        (345, 336)
        """
        steps = warn_of_old_name("most_steps", most_steps, "max_steps") or max_steps
        check_count("max_steps", steps, least=2)
        with self._ask_within(identifiers, arguments) as question:
            return pictures.compute_timeline(question, steps)

    def distribution(
        self,
        identifiers: Iterable[str] | None = None,
        *,
        max_bins: int = pictures.MOST_BINS,
        most_bins: int | None = None,
        **arguments: Unpack[QuestionArguments],
    ) -> documents.Distribution:
        """Compute a histogram of player counts with at most `max_bins` equal bins.

        - `max_bins`: the maximum number of bins, at least 1. Default: 40. `most_bins` is the
          deprecated name of this argument.
        - `identifiers`, `by`, `range`, `start`, `end`, `tz`, `sum`: see `Snapshot`.

        Returns a Distribution document. `bin_players` is the width of a bin; each item of `servers`
        has `counts`, the number of observations per bin.

        Raises the errors described in `Snapshot`.

        >>> (server,) = snapshot.distribution(["harbor-city"], range="7d", max_bins=4).servers
        >>> server.counts
        (77, 54, 29, 9)
        """
        bins = warn_of_old_name("most_bins", most_bins, "max_bins") or max_bins
        check_count("max_bins", bins, least=1)
        with self._ask_within(identifiers, arguments) as question:
            return pictures.compute_distribution(question, bins)

    def plot(
        self, identifiers: Iterable[str] | None = None, **arguments: Unpack[PlotArguments]
    ) -> "Picture":
        """Draw a picture of one to five servers, or of their total.

        - `kind`: `players` (default), `growth`, `hours`, `distribution`, `share` or `compare`.
        - `step`: the interval of `players` and `share`, such as `1h`, or `day`, `week` or `month`
          for `growth`. Default: depends on the window.
        - `mark`: labeled times in `players` and `share` pictures, such as `["2026-03-01=Update 5"]`
          or `{date(2026, 3, 1): "Update 5"}`.
        - `title`, `subtitle`, `caption`: texts. Defaults depend on the picture; the caption names
          the snapshot. `source` is the deprecated name of `caption`.
        - `width`: from 320 to 4000 pixels. Default: 960. `height`: from 200 to 4000 pixels.
          Default: depends on the content. A PNG has twice as many pixels.
        - `scale`: enlarges the picture and its text, from 1 (default) to 8.
        - `theme`: `light` (default), `dark` or, for an SVG, `auto`.
        - `identifiers`, `by`, `range`, `start`, `end`, `tz`, `sum`: see `Snapshot`.

        Returns a Picture; notebooks display it and `save` writes SVG or PNG. Warns about marks
        outside the window.

        Raises the errors described in `Snapshot`.

        >>> snapshot.plot(["harbor-city"], range="90d").save("players.svg")
        """
        # Imported here because most calls do not draw.
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
                    warnings.warn(
                        f"mark {one.label!r} is outside the window and not drawn", stacklevel=2
                    )
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
        """Build an HTML report about one to five servers, or their total.

        - `title`: the title of the page. Default: the names or the number of the servers.
        - `mark`: labeled times; see `plot`.
        - `range`: see `Snapshot`, but the default is `90d`.
        - `identifiers`, `by`, `start`, `end`, `tz`, `sum`: see `Snapshot`.

        Returns a Report; notebooks display it and `save` writes the page.

        Raises the errors described in `Snapshot`.

        >>> snapshot.report(["harbor-city"]).save("report.html")
        """
        # Imported here because most calls do not draw.
        from srvstat.api.pages import Report  # noqa: PLC0415

        check_texts(title=title)
        check_text("title", title)
        given = Arguments({"mark": mark, **arguments})
        query, marks = given.take(questions.LongWindowQuery), given.take(MarkOption).mark or ()
        with self._ask(identifiers, query, **given.take_rest()) as question:
            questions.check_server_count(len(list(question.servers)))
            return Report(**dict(build_report(question, query, title, marks)))


def open_snapshot(path: str | bytes | PathLike[str] | PathLike[bytes]) -> Snapshot:
    """Open a snapshot file or a folder of shards.

    - `path`: the file or folder. Queries never change it; `Snapshot.update` changes a file.

    Returns a Snapshot; close it, or use it in a `with` statement.

    Raises SnapshotError if `path` is missing, damaged or not a snapshot, and TypeError if it is not
    a path.

    >>> with srvstat.open_snapshot("srvstat-demo/snapshot.db") as snapshot:
    ...     snapshot.get("harbor-city").data.hostname
    'Harbor City Roleplay'
    """
    return Snapshot(snapshot.open_snapshot(fsdecode(path)))
