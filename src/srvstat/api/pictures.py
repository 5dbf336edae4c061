"""The data of pictures and reports, as methods."""

from collections.abc import Iterable

from srvstat.analysis.distribution import MOST_BINS, compute_distribution
from srvstat.analysis.drawing import check_server_count
from srvstat.analysis.integrity.check import DEFAULT_RANGE
from srvstat.analysis.report import build_report, check_title, describe_origin
from srvstat.analysis.timeline import compute_timeline
from srvstat.analysis.windows import choose_window, find_zone
from srvstat.api.arguments import (
    build_query,
    check_count,
    check_texts,
    find_servers,
    list_identifiers,
    list_values,
)
from srvstat.api.open_file import OpenFile
from srvstat.contract.requests import Namespace
from srvstat.documents.analysis import Distribution, Report, Timeline


class PictureData(OpenFile):
    """The data of pictures and reports; `Snapshot` describes the arguments."""

    def timeline(
        self,
        identifiers: Iterable[str] | None = None,
        *,
        by: Namespace = "id",
        range: str | None = None,
        start: str | None = None,
        end: str | None = None,
        tz: str = "UTC",
        most_steps: int = 1000,
    ) -> Timeline:
        """Compute the players of servers over time, in at most `most_steps` steps of `tz`.

        The steps are not much shorter than the usual interval of the observations.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        names = list_identifiers(identifiers)
        query = build_query(range, start, end, tz)
        check_count("most_steps", most_steps, least=2)
        with self._use() as file:
            window = choose_window(file, query)
            servers = list(find_servers(file, names, by))
            return compute_timeline(file, servers, window, most_steps, find_zone(tz))

    def distribution(
        self,
        identifiers: Iterable[str] | None = None,
        *,
        by: Namespace = "id",
        range: str | None = None,
        start: str | None = None,
        end: str | None = None,
        tz: str = "UTC",
        most_bins: int = MOST_BINS,
    ) -> Distribution:
        """Count how often servers had how many players, in at most `most_bins` equal bins.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        names = list_identifiers(identifiers)
        query = build_query(range, start, end, tz)
        check_count("most_bins", most_bins, least=1)
        with self._use() as file:
            window = choose_window(file, query)
            servers = list(find_servers(file, names, by))
            return compute_distribution(file, servers, window, most_bins)

    def report(
        self,
        identifiers: Iterable[str],
        *,
        by: Namespace = "id",
        range: str | None = None,
        start: str | None = None,
        end: str | None = None,
        tz: str = "UTC",
        title: str | None = None,
    ) -> Report:
        """Collect what a report of one to five servers shows. The default range is `90d`.

        Raises UsageError, InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        names = list_values("identifiers", identifiers)
        query = build_query(range, start, end, tz, DEFAULT_RANGE)
        check_texts(title=title)
        with self._use() as file:
            check_title(title)
            check_server_count(len(set(names)))
            window = choose_window(file, query)
            servers = list(find_servers(file, names, by))
            origin = describe_origin(servers, query, title)
            return build_report(file, servers, window, find_zone(tz), origin)
