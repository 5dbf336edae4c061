"""The windows of the analyzer: ranges, dates in time zones, bundles."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest

from conftest import AS_OF, DAY, build_in, server
from srvstat.analysis.windows import LongWindowQuery, WindowQuery, choose_window, find_previous
from srvstat.contract.errors import UsageError
from srvstat.contract.time import BEFORE_ALL, LATEST, Window
from srvstat.operations.answers import NotInBundleError
from srvstat.snapshot.read.observations import read_observations
from srvstat.snapshot.read.snapshot import SnapshotFile, open_file
from srvstat.snapshot.write.copies import write_bundle

MIDNIGHT = AS_OF - DAY // 2
"""The start of the UTC day of AS_OF."""


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SnapshotFile]:
    """Open a snapshot as of AS_OF with observations around a midnight."""
    rows = [("a", at, 1) for at in (MIDNIGHT - DAY - 1, MIDNIGHT - DAY, AS_OF)]
    path = build_in(tmp_path_factory.mktemp("windows"), [server("a")], rows)
    with closing(open_file(str(path))) as file:
        yield file


@pytest.fixture(scope="module")
def bundle(snapshot: SnapshotFile) -> Iterator[SnapshotFile]:
    """Open a bundle that begins with an observation at a midnight."""
    write_bundle(f"{snapshot.path}.bundle", snapshot, [*snapshot.iter_servers()], "24h")
    with closing(open_file(f"{snapshot.path}.bundle")) as file:
        yield file


@pytest.mark.parametrize(
    ("query", "window"),
    [
        (WindowQuery(), Window(AS_OF - 30 * DAY, AS_OF)),
        (LongWindowQuery(), Window(AS_OF - 90 * DAY, AS_OF)),
        (WindowQuery("36h"), Window(AS_OF - 36 * DAY // 24, AS_OF)),
        (WindowQuery("1y", end="1000"), Window(1000 - 365 * DAY, 1000)),
        (WindowQuery("all", end="0"), Window(BEFORE_ALL, 0)),
        (WindowQuery(start="5", end="6"), Window(5, 6)),
        (WindowQuery(end="9999-12-31"), Window(LATEST + 1 - 31 * DAY, LATEST + 1 - DAY)),
    ],
)
def test_a_window_is_a_range_or_its_ends(
    query: WindowQuery, window: Window, snapshot: SnapshotFile
) -> None:
    assert choose_window(snapshot, query) == window


@pytest.mark.parametrize(
    ("zone", "day", "instant"),
    [
        ("UTC", "2026-02-01", "2026-02-01T00:00Z"),
        ("Europe/Berlin", "2026-02-01", "2026-01-31T23:00Z"),
        ("Europe/Berlin", "2025-07-01", "2025-06-30T22:00Z"),
        ("Asia/Kathmandu", "2026-02-01", "2026-01-31T18:15Z"),
        # Midnight does not exist on the first day, and occurs twice on the second.
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00Z"),
        ("America/Havana", "2025-11-02", "2025-11-02T04:00Z"),
    ],
)
def test_a_date_is_the_first_midnight_in_the_zone(
    zone: str, day: str, instant: str, snapshot: SnapshotFile
) -> None:
    start = choose_window(snapshot, WindowQuery(start=day, tz=zone)).start

    assert datetime.fromtimestamp(start / 1000, UTC) == datetime.fromisoformat(instant)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        *(
            (WindowQuery(length), "range: .* is not a number of hours or days")
            for length in ("", "0d", "7D", "7w", "36501d", "999999h", "07d", " 7d", "7d\n", "ALL")
        ),
        *(
            (WindowQuery(tz=zone), "tz: no time zone ")
            for zone in ("", "Mars", "Europe", "../UTC", "/etc/passwd", "a\0b", "\udcff", "x" * 999)
        ),
        *(
            (WindowQuery(start=day, tz=zone), "start: no such day in the years 1970 to 9999, ")
            for day, zone in (
                ("2026-02-30", "UTC"),
                ("0000-01-01", "UTC"),
                ("0001-01-01", "Europe/Berlin"),
                ("1969-12-31", "UTC"),
                ("1970-01-01", "Europe/Berlin"),
            )
        ),
        (WindowQuery(start="2026-02-01T12:00"), "start: no time zone: .*; a date is YYYY-MM-DD"),
        (WindowQuery(start="tomorrow"), "start: not Unix milliseconds and not .*"),
        (WindowQuery(end=str(LATEST + 1)), "end: outside the years 1970 to 9999"),
        (WindowQuery("7d", start="5"), "range and start can't be combined"),
        (WindowQuery(start="6", end="6"), "start: must be earlier than end$"),
        (WindowQuery(start=str(AS_OF)), "start: must be earlier than the end of the snapshot, "),
    ],
)
def test_an_invalid_window_is_refused(
    query: WindowQuery, message: str, snapshot: SnapshotFile
) -> None:
    with pytest.raises(UsageError, match=message):
        choose_window(snapshot, query)


def test_all_of_a_bundle_begins_with_its_first_instant(bundle: SnapshotFile) -> None:
    window = choose_window(bundle, WindowQuery("all"))

    assert window == (MIDNIGHT - DAY - 1, AS_OF)
    (a,) = bundle.iter_servers()
    assert read_observations(bundle, a, window).instants[0] == bundle.covered_from == MIDNIGHT - DAY


@pytest.mark.parametrize(
    "query",
    [
        WindowQuery(start=str(MIDNIGHT - DAY - 1)),
        WindowQuery("all", end=str(MIDNIGHT - DAY - 1)),
        WindowQuery("1h", end=str(MIDNIGHT - DAY)),
        # Begins at BEFORE_ALL.
        WindowQuery("24h", end=str(DAY - 1)),
    ],
)
def test_a_bundle_refuses_a_window_that_begins_earlier(
    query: WindowQuery, bundle: SnapshotFile
) -> None:
    with pytest.raises(NotInBundleError, match="a bundle that covers"):
        choose_window(bundle, query)


def test_the_window_before_has_the_same_length() -> None:
    assert find_previous(Window(7, 10)) == (4, 7)
    with pytest.raises(UsageError, match=r"^start: more than 36500d before end; use"):
        find_previous(Window(0, LATEST))
