"""The questions of the analyzer, as methods."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from srvstat.analysis.growth import compute_growth, parse_growth_step
from srvstat.analysis.history import (
    aggregate_history,
    parse_steps,
    read_history,
)
from srvstat.analysis.integrity.check import DEFAULT_RANGE, check_integrity
from srvstat.analysis.peak_hours import compute_peak_hours
from srvstat.analysis.server_list import list_servers, parse_sort_key
from srvstat.analysis.statistics import compute_stats
from srvstat.analysis.steps import divide_window
from srvstat.analysis.top import parse_top_key, rank_servers
from srvstat.analysis.windows import choose_window, find_zone
from srvstat.api.arguments import (
    build_filter,
    build_query,
    check_count,
    check_texts,
    find_servers,
    list_identifiers,
    list_values,
    parse_quantiles,
)
from srvstat.api.open_file import OpenFile
from srvstat.contract.requests import Namespace
from srvstat.documents.analysis import (
    Aggregate,
    GrowthDocument,
    GrowthStepName,
    History,
    PeakHours,
    Stats,
    Top,
    TopKey,
)
from srvstat.documents.integrity import Integrity
from srvstat.documents.servers import Servers, SortKey

_ROWS_PER_TURN = 1000


class Analyzer(OpenFile):
    """The questions of the analyzer; `Snapshot` describes their arguments."""

    def servers(
        self,
        text: str | None = None,
        *,
        game: str | None = None,
        region: str | None = None,
        tags: Iterable[str] = (),
        offline: bool | None = None,
        seen_within: str | None = None,
        sort: SortKey = "id",
        limit: int | None = None,
    ) -> Servers:
        """Find servers.

        All words of `text` must be in the identifiers, the hostname, the project, its description
        or the tags. `seen_within` is a time before the end of the snapshot, such as `7d`.

        Raises UsageError, SnapshotError.
        """
        words = list_values("tags", tags)
        check_count("limit", limit, least=1)
        with self._use() as file:
            wanted = build_filter(
                file.as_of,
                words,
                text=text,
                game=game,
                region=region,
                offline=offline,
                seen_within=seen_within,
            )
            return list_servers(file, wanted, sort=parse_sort_key(sort), limit=limit)

    def stats(
        self,
        identifiers: Iterable[str] | None = None,
        *,
        by: Namespace = "id",
        range: str | None = None,
        start: str | None = None,
        end: str | None = None,
        tz: str = "UTC",
        quantiles: Iterable[float | str] = (),
        above: int | None = None,
        versus_previous: bool = False,
    ) -> Stats:
        """Compute the statistics of servers in a window.

        A quantile is the decimal of its text: 0.95 is 95/100. `above` adds the hours with more
        players, and `versus_previous` the window of equal length before.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        names = list_identifiers(identifiers)
        query = build_query(range, start, end, tz)
        decimals = list_values("quantiles", quantiles)
        check_count("above", above, least=0)
        with self._use() as file:
            return compute_stats(
                file,
                find_servers(file, names, by),
                choose_window(file, query),
                quantiles=parse_quantiles(decimals),
                above=above,
                versus_previous=versus_previous,
                zone=tz,
            )

    def top(
        self,
        text: str | None = None,
        *,
        by: TopKey = "average",
        limit: int = 20,
        game: str | None = None,
        region: str | None = None,
        tags: Iterable[str] = (),
        offline: bool | None = None,
        seen_within: str | None = None,
        range: str | None = None,
        start: str | None = None,
        end: str | None = None,
        tz: str = "UTC",
        quantiles: Iterable[float | str] = (),
        above: int | None = None,
        versus_previous: bool = False,
    ) -> Top:
        """Rank the servers that `servers` finds, and compute the statistics of the first ones.

        The greatest figure is first; change and growth are those in players.

        Raises UsageError, SnapshotError.
        """
        words = list_values("tags", tags)
        query = build_query(range, start, end, tz)
        decimals = list_values("quantiles", quantiles)
        check_count("limit", limit, least=1)
        check_count("above", above, least=0)
        with self._use() as file:
            wanted = build_filter(
                file.as_of,
                words,
                text=text,
                game=game,
                region=region,
                offline=offline,
                seen_within=seen_within,
            )
            return rank_servers(
                file,
                wanted,
                choose_window(file, query),
                parse_top_key(by),
                limit,
                quantiles=parse_quantiles(decimals),
                above=above,
                versus_previous=versus_previous,
                zone=tz,
            )

    def growth(
        self,
        identifiers: Iterable[str] | None = None,
        *,
        by: Namespace = "id",
        range: str | None = None,
        start: str | None = None,
        end: str | None = None,
        tz: str = "UTC",
        step: GrowthStepName = "day",
    ) -> GrowthDocument:
        """Compute how servers grow, by calendar steps of the time zone `tz`.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        names = list_identifiers(identifiers)
        query = build_query(range, start, end, tz)
        with self._use() as file:
            parsed, zone = parse_growth_step(step), find_zone(tz)
            window = choose_window(file, query)
            return compute_growth(file, list(find_servers(file, names, by)), window, parsed, zone)

    def peak_hours(
        self,
        identifiers: Iterable[str] | None = None,
        *,
        by: Namespace = "id",
        range: str | None = None,
        start: str | None = None,
        end: str | None = None,
        tz: str = "UTC",
    ) -> PeakHours:
        """Compute the players of servers in each hour of the week of the time zone `tz`.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        names = list_identifiers(identifiers)
        query = build_query(range, start, end, tz)
        with self._use() as file:
            zone = find_zone(tz)
            window = choose_window(file, query)
            return compute_peak_hours(file, list(find_servers(file, names, by)), window, zone)

    def history(
        self,
        identifiers: Iterable[str] | None = None,
        *,
        by: Namespace = "id",
        range: str | None = None,
        start: str | None = None,
        end: str | None = None,
        tz: str = "UTC",
        step: str | None = None,
        aggregate: Aggregate | None = None,
        sum: bool = False,
    ) -> History:
        """Read observations or, with `step` such as `1h`, an aggregate of each step.

        Each iteration reads the rows from the snapshot, in little memory.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        names = list_identifiers(identifiers)
        query = build_query(range, start, end, tz)
        check_texts(step=step, aggregate=aggregate)
        with self._use() as file:
            parsed, chosen = parse_steps(step, aggregate, is_sum=sum)
            window = choose_window(file, query)
            servers = list(find_servers(file, names, by))
            if parsed is None:
                found = read_history(file, servers, window)
            else:
                steps = divide_window(file, servers, window, parsed, find_zone(tz))
                found = aggregate_history(file, servers, steps, chosen, is_sum=sum)
            return replace(found, read_rows=partial(self._take_turns, found.read_rows))

    def integrity(
        self,
        identifiers: Iterable[str] | None = None,
        *,
        by: Namespace = "id",
        range: str | None = None,
        start: str | None = None,
        end: str | None = None,
        tz: str = "UTC",
    ) -> Integrity:
        """Find unusual patterns in player counts, which prove nothing. The default range is `90d`.

        `tz` also defines the hours of the day.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        names = list_identifiers(identifiers)
        query = build_query(range, start, end, tz, DEFAULT_RANGE)
        with self._use() as file:
            zone = find_zone(tz)
            window = choose_window(file, query)
            return check_integrity(file, find_servers(file, names, by), window, zone)

    def _take_turns(
        self, read_rows: Callable[[], Iterator[tuple[Any, ...]]]
    ) -> Iterator[tuple[Any, ...]]:
        """Read rows without keeping the snapshot from other threads for long."""
        rows = read_rows()
        while True:
            with self._use():
                piece = list(islice(rows, _ROWS_PER_TURN))
            if not piece:
                return
            yield from piece
