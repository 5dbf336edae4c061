"""The page for the morning, recomputed from rows by its definitions alone."""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

import srvstat
from analysis.definitions import HOUR, Row, compute_change_naively, compute_mean, read_clock, select
from conftest import AS_OF, DAY, Build, Cli, build_in, few_examples, server
from replay.explained import format_naively
from srvstat.contract.time import LATEST, parse_instant
from srvstat.contract.windows import DAYS, Range
from srvstat.snapshot.read.file import open_file
from srvstat.snapshot.write.copies import write_bundle
from support.terminal import run_srvstat_in_terminal

Rows = Mapping[str, Sequence[Row]]


class Fleet(NamedTuple):
    """The rows of servers up to an instant, which is soon after a change of a clock or not."""

    servers: dict[str, list[Row]]
    as_of: int
    zone: ZoneInfo


AFTER_CHANGES = ("2025-03-30T10:20Z", "2025-04-14T00:30Z", "2025-10-26T00:30Z", "2025-11-09T05:00Z")
"""In Europe/Berlin, the clock was set forward on 2025-03-30 and back on 2025-10-26."""


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    as_of = parse_instant(draw(st.sampled_from(AFTER_CHANGES)))
    zone = ZoneInfo(draw(st.sampled_from(["UTC", "Europe/Berlin"])))
    rng = draw(st.randoms(use_true_random=False))
    servers = {}
    for number in range(draw(st.integers(1, 7))):
        interval = rng.choice([HOUR // 2, HOUR, 2 * HOUR, 5 * HOUR, DAY])
        first = as_of - rng.choice([40, 40, 40, 20, 3]) * DAY
        last = as_of - rng.choice([0, 0, 0, 0, HOUR, 25 * HOUR, 9 * DAY])
        instants = list(range(first, last + 1, interval))
        for _ in range(rng.choice([0, 0, 1, 3])):
            start = rng.randrange(first, as_of)
            gap = range(start, start + rng.choice([5 * HOUR, 2 * DAY, 6 * DAY]))
            instants = [at for at in instants if at not in gap]
        midnight = as_of // DAY * DAY - DAY  # one gap ends before it, the other one after it
        night = range(midnight - 5 * HOUR // 2, midnight + rng.choice([-HOUR, HOUR]) // 2)
        instants = [at for at in instants if at not in night]
        late = rng.choice([1, HOUR // 2])
        usual = rng.choice([0, 3, 300])
        rows = {at + rng.randrange(late): rng.randrange(usual, 2 * usual + 2) for at in instants}
        servers[f"s{number}"] = sorted((at, n) for at, n in rows.items() if at <= as_of)
    servers["never"] = []
    if servers["s0"][-1:] < [(as_of, 0)]:
        servers["s0"].append((as_of, 5))
    return Fleet(servers, as_of, zone)


def find_latest(rows: Sequence[Row], at: int, start: int, end: int, *, hold: bool) -> Row | None:
    """Return the latest row at an instant that still counts, by the usual interval of a window."""
    past = [row for row in rows if row[0] <= at]
    recent = [when for when, _ in rows if when <= end]
    inside = [when for when in recent if when > start]
    recent = recent[-max(len(inside), 10) :]
    distances = [other - one for one, other in pairwise(recent)]
    longest = 3 * Fraction(median(map(Fraction, distances))) if distances else 0
    return past[-1] if past and (hold or at - past[-1][0] <= longest) else None


def find_totals(
    fleet: Fleet, at: int, *, hold: bool, covered_from: int = 0
) -> tuple[int, int, int]:
    """Return the total at an instant, how many servers are in it, and how many are missing."""
    found, missing = [], 0
    for rows in fleet.servers.values():
        if not rows:
            continue
        first, last = covered_from or rows[0][0], rows[-1][0]
        latest = find_latest(rows, at, at - 1, at, hold=hold) if at >= first else None
        is_silent = fleet.as_of - last > DAY and not hold
        if latest is not None:
            found.append(latest[1])
        elif first <= at <= (last if is_silent else fleet.as_of):
            missing += 1
    return sum(found), len(found), missing


def describe_total(fleet: Fleet, *, hold: bool, covered_from: int) -> dict[str, Any]:
    clock = read_clock(fleet.as_of, fleet.zone).replace(tzinfo=None)
    totals = []
    for week in range(1, 5):
        at = read_instant(clock - timedelta(days=7 * week), fleet.zone)
        players, present, missing = find_totals(fleet, at, hold=hold, covered_from=covered_from)
        if present and Fraction(present, present + missing) >= Fraction(8, 10):
            totals.append(players)
    now, present, missing = find_totals(fleet, fleet.as_of, hold=hold, covered_from=covered_from)
    usual = Fraction(median(map(Fraction, totals))) if len(totals) > 1 else None
    is_observed = present and Fraction(present, present + missing) >= Fraction(8, 10)
    change = None
    if usual is not None and is_observed:
        percentage = float(100 * (now - usual) / usual) if usual else None
        change = {"players": float(now - usual), "percentage": percentage}
    return {
        "players": now if present else None,
        "presentCount": present,
        "serverCount": len(fleet.servers),
        "sameHourMedian": None if usual is None else float(usual),
        "weekCount": len(totals),
        "change": change,
    }


def read_instant(clock: datetime, zone: ZoneInfo) -> int:
    """Return when a clock shows a time, first if twice."""
    return round(clock.replace(tzinfo=zone).timestamp() * 1000)


def describe_peak(fleet: Fleet, day: tuple[int, int], *, hold: bool) -> dict[str, Any] | None:
    """Return the greatest total of a day, among all instants with an observation."""
    start, end = day
    instants = {
        at for rows in fleet.servers.values() for at, _ in select(rows, (start - 1, end - 1))
    }
    if hold:
        instants |= {start for rows in fleet.servers.values() if rows and rows[0][0] <= start}
    best: tuple[int, int] | None = None
    for at in sorted(instants):
        latest = (
            find_latest(rows, at, start - 1, end - 1, hold=hold) for rows in fleet.servers.values()
        )
        total = sum(row[1] for row in latest if row)
        if best is None or total > best[0]:
            best = (total, at)
    return best and {"players": best[0], "at": format_naively(best[1])}


def find_yesterday(fleet: Fleet) -> tuple[int, int]:
    today = read_clock(fleet.as_of, fleet.zone).date()
    start, end = (
        datetime.combine(day, datetime.min.time()) for day in (today - timedelta(days=1), today)
    )
    return read_instant(start, fleet.zone), read_instant(end, fleet.zone)


def weigh(rows: Sequence[Row], start: int, end: int) -> tuple[Fraction, Fraction]:
    """Return the average of counts that are held, and the share of a window in which one is."""
    edges = [*rows, (end, 0)]
    parts = [
        (min(until, end) - max(at, start), n)
        for (at, n), (until, _) in pairwise(edges)
        if until > start
    ]
    parts = [(length, n) for length, n in parts if length > 0]
    weight = sum(length for length, _ in parts)
    total = sum(length * n for length, n in parts)
    return Fraction(total, weight or 1), Fraction(weight, end - start)


def list_changed(fleet: Fleet, *, hold: bool) -> list[dict[str, Any]]:
    end = fleet.as_of
    middle, start = end - 7 * DAY, end - 14 * DAY
    changed: list[dict[str, Any]] = []
    for name, rows in fleet.servers.items():
        average = compute_mean([n for _, n in select(rows, (middle, end))])
        change, _ = compute_change_naively(rows, (middle, end))
        if hold:
            (old, before), (new, after) = weigh(rows, start, middle), weigh(rows, middle, end)
            average, change = float(new), None
            if min(before, after) >= Fraction(8, 10):
                percentage = float(100 * (new - old) / old) if old else None
                change = {"players": float(new - old), "percentage": percentage}
        if change and change["players"]:
            changed.append({"serverId": name, "averagePlayers": average, "change": change})
    return sorted(changed, key=lambda one: (-abs(one["change"]["players"]), one["serverId"]))[:5]


def describe_naively(fleet: Fleet, *, hold: bool, covered_from: int = 0) -> dict[str, Any]:
    day = find_yesterday(fleet)
    seen = {name: rows[-1][0] if rows else -1 for name, rows in fleet.servers.items()}
    silent = [one for one, at in seen.items() if at < 0 or (fleet.as_of - at > DAY and not hold)]
    has_weeks = fleet.as_of - 14 * DAY >= covered_from
    return {
        "timeZone": fleet.zone.key,
        "yesterday": format_naively(day[0]),
        "total": describe_total(fleet, hold=hold, covered_from=covered_from),
        "silent": sorted(silent, key=lambda name: (-seen[name], name)),
        "changed": list_changed(fleet, hold=hold) if has_weeks else [],
        "yesterdayPeak": describe_peak(fleet, day, hold=hold) if day[0] >= covered_from else None,
    }


def list_outages(snapshot: srvstat.Snapshot, page: Any, span: str) -> list[Any]:
    """Return the gaps and zeros of a span that a page shows, from the document `events`."""
    listed = snapshot.events(kinds=["gap", "zeros"], range=span, tz=page["timeZone"])
    return [
        one
        for one in listed.model_dump(mode="json")["events"]
        if one["to"] > page["yesterday"] and one["serverId"] not in page["silent"]
    ]


@settings(max_examples=3 * few_examples(), phases=[Phase.generate])
@given(fleet=fleets(), hold=st.booleans())
def test_every_figure_of_the_page_follows_from_the_rows(fleet: Fleet, hold: bool) -> None:
    rows = [(name, at, n) for name, of_one in fleet.servers.items() for at, n in of_one]
    options = ["--hold"] if hold else []
    with tempfile.TemporaryDirectory() as directory:
        path = str(build_in(Path(directory), map(server, fleet.servers), rows, *options))
        with srvstat.open_snapshot(path) as snapshot:
            found = snapshot.today(tz=fleet.zone.key).model_dump(mode="json")
            assert found["events"] == list_outages(snapshot, found, "28d")
            start, end = (str(edge - 1) for edge in find_yesterday(fleet))
            (total,) = snapshot.stats(sum=True, start=start, end=end).servers
        peak = found["yesterdayPeak"]
        assert (peak and peak["players"]) == total.peak_players
        assert found == found | describe_naively(fleet, hold=hold)
        assert found["asOf"] == format_naively(fleet.as_of)


@settings(max_examples=3 * few_examples(), phases=[Phase.generate])
@given(fleet=fleets(), hold=st.booleans(), span=st.sampled_from(["24h", "7d", "30d"]))
def test_the_page_of_a_bundle_leaves_out_what_it_does_not_cover(
    fleet: Fleet, hold: bool, span: Range
) -> None:
    rows = [(name, at, n) for name, of_one in fleet.servers.items() for at, n in of_one]
    options = ["--hold"] if hold else []
    with tempfile.TemporaryDirectory() as directory:
        path = str(build_in(Path(directory), map(server, fleet.servers), rows, *options))
        with closing(open_file(path)) as file:
            write_bundle(f"{path}.bundle", file, [*file.iter_servers()], span)
        with srvstat.open_snapshot(f"{path}.bundle") as snapshot:
            found = snapshot.today(tz=fleet.zone.key).model_dump(mode="json")
            length = "28d" if span == "30d" else "all"
            assert found["events"] == list_outages(snapshot, found, length)
    covered_from = (fleet.as_of - DAYS[span] * DAY) // DAY * DAY
    kept = {
        name: select(of_one, (covered_from - 1, fleet.as_of))
        for name, of_one in fleet.servers.items()
    }
    if hold:  # the count that is held into the bundle is in it
        kept = {
            name: [*select(fleet.servers[name], (0, covered_from - 1))[-1:], *inside]
            for name, inside in kept.items()
        }
    bundled = fleet._replace(servers={name: [*inside] for name, inside in kept.items()})
    assert found == found | describe_naively(bundled, hold=hold, covered_from=covered_from)


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        ([], ("--as-of=2026-03-01T12:00Z", "--allow-empty")),
        ([("a", AS_OF - HOUR, 0), ("a", AS_OF, 3)], ()),
    ],
)
def test_a_snapshot_of_a_day_or_without_observations_has_a_page(
    rows: list[tuple[str, int, int]], options: tuple[str, ...], build: Build, cli: Cli
) -> None:
    path = build([server("a")], rows, *options)
    fleet = Fleet({"a": [(at, n) for _, at, n in rows]}, AS_OF, ZoneInfo("UTC"))
    found = cli("today", "--snapshot", path).json

    assert found == found | describe_naively(fleet, hold=False)
    assert found["changed"] == found["events"] == []
    assert found["total"]["players"] == (3 if rows else None)


def build_long_fleet(build: Build) -> str:
    """Build hundreds of servers with ids of 126 characters, all down at another time."""
    names = [f"{number:03}-{'abcd-' * 24}ab" for number in range(300)]
    rows = [
        (name, AS_OF - hour * HOUR, 10**6 + number * (1 + hour // 168))
        for number, name in enumerate(names)
        for hour in range(30 * number % 43, 336)
        if not number % 24 <= hour < number % 24 + 4
    ]
    return build(map(server, names), [*rows, ("000-" + "abcd-" * 24 + "ab", AS_OF, 1)])


def test_the_table_has_at_most_24_lines_on_80_columns(build: Build, cli: Cli) -> None:
    path = build_long_fleet(build)
    document = cli("today", "--snapshot", path, "--json").json
    assert min(len(document[name]) for name in ("silent", "events")) > 50
    assert len(document["changed"]) == 5

    shown = {
        width: run_srvstat_in_terminal("today", "--snapshot", path, columns=width)[1]
        for width in (60, 80, 140)
    }

    assert len(shown[80].rstrip("\n").split("\n")) <= 24
    for width, text in shown.items():
        assert max(map(cell_len, text.split("\n"))) <= width
        assert "more; see srvstat events" in text


def test_markdown_is_a_list_for_a_chat_without_markup_from_the_snapshot(
    build: Build, cli: Cli
) -> None:
    rows = [("a", AS_OF - hour * HOUR, 40 + hour // 168) for hour in range(336)]
    path = build([server("a"), server("b-1")], [*rows, ("b-1", AS_OF - 2 * DAY, 7)])

    ran = cli("today", "--snapshot", path, "--tz", "America/Port_of_Spain", "--format", "markdown")

    assert ran.stdout.decode() == (
        "- **as of** 2026-03-01 08:00 America/Port\\_of\\_Spain\n"
        "- **players** 40 now, on 1 of 2 servers\n"
        "- **this hour** – fewer than 2 of the 4 weeks before were observed\n"  # noqa: RUF001
        "- **yesterday** 40 at the peak, at 00:00\n"
        "- **silent** 1: b-1\n"
        "- **changed** most, the average of 7 days against that of the 7 days before:\n"
        "  - a -1.00 -2.4%\n"
        "- **events** no gap or time without players since 2026-02-28\n"
    )
    refused = cli("today", "--snapshot", path, "--format", "markdown", "--json")
    assert refused.exit_code == 2
    assert "--format can't be combined with --json" in refused.stderr


@pytest.mark.parametrize("command", [["today"], ["events", "--all"]])
def test_the_last_instant_of_the_calendar_has_a_page(
    command: list[str], build: Build, cli: Cli
) -> None:
    path = build([server("a")], [("a", LATEST, 3)])

    ran = cli(*command, "--snapshot", path, "--tz", "Asia/Tokyo")

    assert (ran.exit_code, ran.json["asOf"]) == (0, format_naively(LATEST))
