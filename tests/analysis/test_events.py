"""Events and the page for the morning follow from rows by their definitions."""

import json
import tempfile
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from random import Random
from statistics import mean, median
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

import srvstat
from analysis.definitions import (
    HOUR,
    Row,
    compute_change_naively,
    compute_mean,
    find_usual_interval,
    read_clock,
    select,
)
from conftest import AS_OF, DAY, SHARED_DATA, Build, Cli, build_in, few_examples, server
from replay.explained import format_naively
from srvstat.contract.time import LATEST, parse_instant
from srvstat.contract.windows import DAYS, Range
from srvstat.snapshot.read.file import open_file
from srvstat.snapshot.write.copies import write_bundle
from support.terminal import run_srvstat_in_terminal

MINUTE = HOUR // 60
WEEK = 7 * DAY
LENGTH_DAYS = 70
ENDS = (datetime(2026, 4, 20, 10, 20, tzinfo=UTC), datetime(2025, 11, 17, 10, 20, tzinfo=UTC))
"""Each is about three weeks after a change of daylight saving in Berlin."""


class Case(NamedTuple):
    """What a fleet is drawn from."""

    seed: int
    end: datetime
    zone: str
    longer: str | None


CASES = st.builds(
    Case,
    seed=st.integers(0, 2**20),
    end=st.sampled_from(ENDS),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"]),
    longer=st.sampled_from([None, None, "1h", "5h"]),
)


def draw_rows(random: Random, end: int) -> list[Row]:
    """Return the counts of a server with gaps, restarts, odd days and changes of level."""
    level = random.choice((2, 15, 40, 300))
    minutes = random.choice((20, 60))
    days = [1.0] * (LENGTH_DAYS + 12)
    for _ in range(random.randrange(4)):
        days[random.randrange(len(days))] = random.choice((0.1, 0.6, 1.6, 3))
    for _ in range(random.choice((0, 1, 1, 2))):
        first = random.randrange(len(days))
        days[first:] = [one * random.choice((0.3, 0.7, 1.5, 2.5)) for one in days[first:]]
    quiet = [random.randrange(24 * len(days)) for _ in range(6)] + [random.choice((0, 1, 2))]
    missing = [random.randrange(24 * len(days)) for _ in range(6)] + [random.choice((0, 3))]
    last = random.choice((0.1, 0.5, 1))
    rows = []
    start = end - random.choice((LENGTH_DAYS - 4, len(days) - 1)) * DAY
    for at in range(start, end + 1, minutes * MINUTE):
        shifted = at + random.choice((0, 0, 500))
        before = (end - at) // HOUR
        if any(hour <= before < hour + hour % 7 for hour in missing) or random.random() < 0.01:
            continue
        usual = level * (1 + (at // HOUR % 24) / 24) * (1.3 if at // DAY % 7 > 4 else 1)
        count = round(usual * days[(end - at) // DAY] * random.uniform(0.9, 1.1))
        count = round(count * last) if not before else count
        is_quiet = any(hour <= before < hour + hour % 5 for hour in quiet)
        rows.append((min(shifted, end), 0 if is_quiet else count))
    return sorted(dict(rows).items())


@settings(max_examples=few_examples(), suppress_health_check=[HealthCheck.too_slow])
@given(case=CASES)
def test_events_follow_from_the_rows_of_servers(case: Case) -> None:
    random = Random(case.seed)  # noqa: S311 - drawn from a seed, to be drawn again
    end = round(case.end.timestamp()) * 1000
    fleet = {name: draw_rows(random, end) for name in ("a", "b", "c")}
    observed = [(name, at, n) for name, rows in fleet.items() for at, n in rows]
    zone = ZoneInfo(case.zone)
    with tempfile.TemporaryDirectory() as directory:
        options = ("--at", format_naively(end))
        path = build_in(Path(directory), map(server, fleet), observed, *options)
        with srvstat.open_snapshot(path) as snapshot:
            asked: Any = {"range": f"{LENGTH_DAYS}d", "tz": case.zone, "longer": case.longer}
            found = json.loads(snapshot.events(**asked).to_json())["events"]
            recent = snapshot.events(since="50h", kinds=["gap", "zeros"], **asked).events

    expected = [
        {"serverId": name, **event}
        for name, rows in fleet.items()
        for event in find_naively(rows, (end - LENGTH_DAYS * DAY, end), zone, case.longer)
    ]
    ranked = sorted(expected, key=lambda one: one["serverId"])
    ranked.sort(key=lambda one: (one["to"], one["from"]), reverse=True)
    assert group(found) == group(ranked)
    late = format_naively(end - 50 * HOUR)
    kept = [one for one in found if one["to"] > late and one["kind"] in {"gap", "zeros"}]
    assert [format_naively(one.to) for one in recent] == [one["to"] for one in kept]


RATES: dict[str, Callable[[Random, int], float]] = {
    "steady": lambda random, _day: random.gauss(1, 0.1),
    "noisy": lambda random, _day: random.lognormvariate(0, 0.3),
    "growing": lambda random, day: random.gauss(1, 0.1) * 1.005**day,
    "shrinking": lambda random, day: random.gauss(1, 0.1) * 0.995**day,
    "small": lambda random, _day: random.choice((0, 0, 0, 0.01, 0.02, 0.03)),
}


@pytest.fixture(scope="module")
def random_fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a snapshot of honest servers: a year of random days, each with four counts."""
    random = Random(33)  # noqa: S311 - the same servers in each run
    observed = []
    for name in (*RATES, "slow"):
        level = 1.0
        for day in range(365):
            level = 0.9 * level + 0.1 * random.gauss(1, 0.5)
            factor = max(RATES[name](random, day) if name in RATES else level, 0)
            usual = 200 * (1.3 if day % 7 > 4 else 1)
            at = AS_OF - (364 - day) * DAY
            observed += [(name, at - part * DAY // 4, round(usual * factor)) for part in range(4)]
    directory = tmp_path_factory.mktemp("random_fleet")
    return build_in(directory, map(server, (*RATES, "slow")), observed)


def test_random_series_have_at_most_one_false_event_a_year(random_fleet: Path) -> None:
    with srvstat.open_snapshot(random_fleet) as snapshot:
        ends = [format_naively(AS_OF - quarter * 90 * DAY) for quarter in range(4)]
        found = [one for end in ends for one in snapshot.events(end=end).events]

    counts = Counter(one.server_id for one in found)
    assert max(counts.values(), default=0) <= 1, counts


def build_hours(build: Build, counts: dict[int, int | None], *options: str) -> str:
    """Build a snapshot of a server with 20 players each hour for 90 days, except some hours ago."""
    hours = {ago: counts.get(ago, 20) for ago in range(90 * 24)}
    rows = [("a", AS_OF - ago * HOUR, n) for ago, n in hours.items() if n is not None]
    return build([server("a")], rows, "--at", format_naively(AS_OF), *options)


def test_an_ongoing_gap_ends_with_the_snapshot(build: Build, cli: Cli) -> None:
    path = build_hours(build, dict.fromkeys(range(5), None))

    ran = cli("events", "a", "--to", format_naively(AS_OF + DAY), "-s", path)

    (gap,) = ran.json["events"]
    assert (gap["kind"], gap["to"], gap["seconds"]) == ("gap", format_naively(AS_OF), 5 * 3600)


def test_cron_learns_from_the_exit_code_that_there_was_an_event(build: Build, cli: Cli) -> None:
    path = build_hours(build, dict.fromkeys(range(30, 33), 0))
    command = ("events", "-s", path, "--exit-code", "--table")

    outcomes = {
        options: cli(*command, *options)
        for options in (
            ("--since", "48h"),
            ("--since", "24h"),
            ("--kind", "gap"),
            ("--longer", "3h"),
        )
    }

    assert [ran.exit_code for ran in outcomes.values()] == [5, 0, 0, 0]
    first, second, *_ = outcomes.values()
    assert b"2026-02-28 04:00   3 h        a        no players (usually 20)\n" in first.stdout
    assert b"\nno events\n" in second.stdout


def test_a_held_count_of_zero_is_an_event_and_no_gap(build: Build, cli: Cli) -> None:
    counts = {ago: 20 + ago % 2 for ago in range(90 * 24)} | dict.fromkeys(range(40, 60), 0)
    rows = [("a", AS_OF - ago * HOUR, n) for ago, n in counts.items() if not 40 <= ago < 59]
    path = build([server("a")], rows, "--hold")

    found = cli("events", "--kind", "gap", "--kind", "zeros", "-s", path).json["events"]

    assert [(one["kind"], one["seconds"] / 3600) for one in found] == [("zeros", 20)]


def test_equal_gaps_of_servers_share_a_line_of_the_table(build: Build, cli: Cli) -> None:
    hours = [AS_OF - ago * HOUR for ago in range(2000) if ago % 40 > 5]
    names = ("a", "b", "c")
    path = build(map(server, names), [(name, at, 9) for name in names for at in hours])

    table = cli("events", "--table", "-s", path).stdout.decode()

    assert "2026-02-27 14:00   7 h        a and 2 more   no data\n" in table
    assert table.count("no data") == 30
    assert "\nand 57 more events; --json lists all\n" in table


def test_a_total_has_events_like_a_server(build: Build, cli: Cli) -> None:
    rows = [(name, AS_OF - ago * HOUR, 9) for name in ("a", "b") for ago in range(5, 2000)]
    path = build([server("a"), server("b")], [*rows, ("a", AS_OF, 9)])

    document = cli("events", "--sum", "-s", path).json

    assert document["servers"] == ["a", "b"]
    assert [(one["serverId"], one["kind"], one["seconds"]) for one in document["events"]] == [
        (None, "gap", 5 * 3600)
    ]


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        (("--since", "1x"), '--since: "1x" is not a duration'),
        (("--longer", "all"), '--longer: "all" is not a duration'),
        (("--kind", "flood"), '--kind: "flood" is not one of gap, zeros, unusualDay'),
    ],
)
def test_an_invalid_option_of_events_is_named(
    demo_snapshot: str, cli: Cli, option: tuple[str, str], reason: str
) -> None:
    ran = cli("events", *option, "-s", demo_snapshot)

    assert (ran.exit_code, ran.stdout, reason in ran.stderr) == (2, b"", True), ran.stderr


def test_hypixel_has_the_days_that_its_players_remember(tmp_path: Path, cli: Cli) -> None:
    source = SHARED_DATA / "hypixel-hourly" / "player_counts.csv.gz"
    if not source.exists():
        pytest.skip("the Hypixel data is not beside the repository")
    path = str(tmp_path / "hypixel.db")
    columns = "at=Timestamp,players=Peak Player Count"
    options = ("--columns", columns, "--id", "hypixel", "--time-zone", "UTC", "--game", "game_a")
    assert cli("snapshot", "build", path, str(source), *options).exit_code == 0

    def list_days(start: str, end: str, kind: str) -> list[str]:
        command = ("events", "--from", start, "--to", end, "--kind", kind, "-s", path)
        return [one["from"][:13] for one in cli(*command).json["events"]]

    assert "2020-03-17T00" in list_days("2020-01-01", "2020-04-01", "unusualDay")
    assert list_days("2021-05-01", "2021-08-01", "zeros") == ["2021-06-18T01"]


def group(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return events with those of equal times and servers in the order of their kinds."""
    order = sorted(events, key=lambda one: (one["serverId"], one["kind"]))
    return sorted(order, key=lambda one: (one["to"], one["from"]), reverse=True)


def find_naively(
    rows: Sequence[Row], window: tuple[int, int], zone: ZoneInfo, longer: str | None
) -> Iterator[dict[str, Any]]:
    """Yield the events of a server by their definitions."""
    length = int(longer.removesuffix("h")) * HOUR if longer else None
    found = Naive(rows, select(rows, window), window, zone, length)
    rules = (found.iter_gaps, found.iter_zeros, found.iter_days, found.iter_last_hour)
    for kind, first, last, *figures in chain.from_iterable(rule() for rule in rules):
        expected, seen = map(float, figures) if figures else (None, None)
        yield {
            "kind": kind,
            "from": format_naively(first),
            "to": format_naively(last),
            "seconds": (last - first) / 1000,
            "expected": expected,
            "seen": seen,
        }


@dataclass(frozen=True)
class Naive:
    """The rows of a server, and those of them in a window."""

    rows: Sequence[Row]
    kept: Sequence[Row]
    window: tuple[int, int]
    zone: ZoneInfo
    longer: int | None

    @cached_property
    def usual(self) -> Fraction:
        """The usual interval."""
        return find_usual_interval(self.kept) or Fraction()

    @cached_property
    def lasting(self) -> list[Row]:
        """The rows of the window, and one that lasts into it."""
        start = self.window[0]
        before = [row for row in self.rows if start - 3 * self.usual <= row[0] <= start]
        return [*before[-1:], *self.kept]

    def iter_gaps(self) -> Iterator[Any]:
        """Yield times without a row."""
        start, end = self.window
        first = [start] if self.rows[0][0] <= start else []
        for one, other in pairwise([*first, *(at for at, _ in self.kept), end]):
            if other - one > max(Fraction(self.longer or 2 * HOUR), 3 * self.usual):
                yield "gap", one, other

    def iter_zeros(self) -> Iterator[Any]:
        """Yield times without a player at hours of the week that have players."""
        hours: defaultdict[tuple[int, int], list[Fraction]] = defaultdict(list)
        for at, players in self.kept:
            local = read_clock(at, self.zone)
            hours[local.weekday(), local.hour].append(Fraction(players))
        for first, last in iter_zeros(self.kept, self.window[1], self.usual):
            if sum(first <= at < last for at, _ in self.kept) < 2:
                continue
            clocks = [read_clock(at, self.zone) for at in range(first, last, HOUR)]
            counts = [hours[local.weekday(), local.hour] for local in clocks]
            medians = [median(one) if len(one) >= 4 else Fraction() for one in counts]
            expected = sum(medians, Fraction()) / max(len(medians), 1)
            if last - first > (self.longer or HOUR // 2) and expected >= 10:
                yield "zeros", first, last, expected, 0

    def average(self, first: int, last: int) -> Fraction | None:
        """Return the average of a step that is observed for 90 %."""
        start, end = self.window
        low = max(bisect_left(self.lasting, (first, -1)) - 1, 0)
        high = bisect_left(self.lasting, (last, -1)) + 1
        covered = Fraction()
        for (at, _), (until, _) in pairwise([*self.lasting, (end, 0)][low : high + 1]):
            stop = min(Fraction(until), at + 3 * self.usual, Fraction(min(last, end)))
            covered += max(stop - max(at, first, start), Fraction())
        values = [
            n
            for at, n in self.lasting[low:high]
            if max(first, start + 1) <= at < last or at == last == end
        ]
        is_whole = covered >= Fraction(9, 10) * (last - first)
        return Fraction(sum(values), len(values)) if values and is_whole else None

    def iter_days(self) -> Iterator[Any]:
        """Yield changes of level, and unusual days that these do not explain."""
        midnights = list_midnights(*self.window, self.zone)
        days = {day: self.average(*times) for day, times in enumerate(pairwise(midnights))}
        averages = {day: one for day, one in days.items() if one is not None}
        changes = list(iter_changes(averages))
        for day, before, after in changes:
            yield "stepChange", midnights[day], midnights[day + 7], before, after
        for day, expected, seen in iter_unusual(averages):
            if not any(change <= day < change + 7 for change, _, _ in changes):
                yield "unusualDay", midnights[day], midnights[day + 1], expected, seen

    def iter_last_hour(self) -> Iterator[Any]:
        """Yield the last hour if it is far below that of other weeks."""
        start, end = self.window
        now = read_clock(end, self.zone)
        ends = [now - timedelta(days=7 * week) for week in range((end - start) // WEEK + 1)]
        instants = [round(one.timestamp() * 1000) for one in ends]
        seen, *others = [self.average(at - HOUR, at) for at in instants]
        known = [one for one in others if one is not None]
        if seen is not None and len(known) >= 8:
            expected = median(known)
            spread = median(abs(one - expected) for one in known)
            is_far = expected - seen >= 5 * deviate(spread, expected)
            if is_far and seen <= expected / 2:
                yield "belowUsual", end - HOUR, end, expected, seen


def iter_zeros(rows: Sequence[Row], end: int, usual: Fraction) -> Iterator[tuple[int, int]]:
    """Yield the times of zeros, each of which lasts until the next count, at most 3 intervals."""
    begin: int | None = None
    for (at, players), (until, following) in pairwise([*rows, (end, 1)]):
        lasts = min(Fraction(until), at + 3 * usual) if usual else Fraction(until)
        if not players:
            begin = at if begin is None else begin
            if following or lasts < until:
                yield begin, int(lasts)
                begin = None


def list_midnights(start: int, end: int, zone: ZoneInfo) -> list[int]:
    first = read_clock(start + 1, zone).date()
    last = read_clock(end - 1, zone).date()
    dates = [first + timedelta(days=day) for day in range((last - first).days + 2)]
    moments = [datetime(one.year, one.month, one.day, tzinfo=zone) for one in dates]
    return [round(one.timestamp()) * 1000 for one in moments]


def deviate(spread: Fraction, expected: Fraction) -> Fraction:
    return max(spread * Fraction(14826, 10000), expected / 20, Fraction(1))


Judged = tuple[int, Fraction, Fraction]


def iter_unusual(days: dict[int, Fraction]) -> Iterator[Judged]:
    expected = {}
    for day in days:
        others = [days[one] for one in days if one != day and (one - day) % 7 == 0]
        if len(others) >= 4:
            expected[day] = median(others)
    spread = median([abs(days[one] - expected[one]) for one in expected] or [Fraction()])
    for day, usual in expected.items():
        distance = days[day] - usual
        since = days[day] - days.get(day - 7, usual)
        is_new = since >= distance / 2 if distance > 0 else since <= distance / 2
        if abs(distance) >= 5 * deviate(spread, usual) and is_new:
            yield day, usual, days[day]


def iter_changes(days: dict[int, Fraction]) -> Iterator[Judged]:
    distances = [abs(days[day] - days[day - 7]) for day in days if day - 7 in days]
    if len(distances) < 14:
        return
    found: dict[int, tuple[Fraction, Fraction, Fraction]] = {}
    spread = median(distances)
    for day in range(min(days) + 7, max(days) - 5):
        before = [days[one] for one in range(day - 7, day) if one in days]
        after = [days[one] for one in range(day, day + 7) if one in days]
        if min(len(before), len(after)) < 5:
            continue
        low, high = sorted([median(before), median(after)])
        if high - low >= 3 * deviate(spread, low) and 2 * high >= 3 * low:
            size = abs(mean(after) - mean(before))
            found[day] = size, median(before), median(after)
    while found:
        day = max(found, key=lambda one: (found[one][0], -one))
        yield day, *found[day][1:]
        found = {one: figures for one, figures in found.items() if abs(one - day) >= 7}


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


def list_outages(snapshot: srvstat.Snapshot, page: Any, span: str | None) -> list[Any]:
    """Return the gaps and zeros of a span that a page shows, from the document `events`."""
    listed = snapshot.events(kinds=["gap", "zeros"], range=span, tz=page["timeZone"])
    return [
        one
        for one in listed.model_dump(mode="json")["events"]
        if one["to"] > page["yesterday"] and one["serverId"] not in page["silent"]
    ]


PAGES = settings(
    max_examples=3 * few_examples(),
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.large_base_example],
)
"""Even the smallest fleet has weeks of observations, which are not made smaller."""


@PAGES
@given(fleet=fleets(), hold=st.booleans())
def test_every_figure_of_the_page_follows_from_the_rows(fleet: Fleet, hold: bool) -> None:
    rows = [(name, at, n) for name, of_one in fleet.servers.items() for at, n in of_one]
    options = ["--hold"] if hold else []
    with tempfile.TemporaryDirectory() as directory:
        path = str(build_in(Path(directory), map(server, fleet.servers), rows, *options))
        with srvstat.open_snapshot(path) as snapshot:
            found = snapshot.today(tz=fleet.zone.key).model_dump(mode="json")
            assert found["events"] == list_outages(snapshot, found, None)
            midnight, end = find_yesterday(fleet)
            total = snapshot.stats(sum=True, start=str(midnight - 1), end=str(end - 1)).servers[0]
        peak = found["yesterdayPeak"]
        # In the window of stats, a count that is held until midnight lasts for less than 1 ms.
        if not (hold and any(at == midnight for _, at, _ in rows)):
            assert (peak and peak["players"]) == total.peak_players
        assert found == found | describe_naively(fleet, hold=hold)
        assert found["asOf"] == format_naively(fleet.as_of)


@PAGES
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
            assert found["events"] == list_outages(snapshot, found, "all")
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
        ([], ("--at=2026-03-01T12:00Z", "--allow-empty")),
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
        "- **this hour** – needs data from at least 2 of the previous 4 weeks\n"  # noqa: RUF001
        "- **yesterday** peak 40 at 00:00\n"
        "- **silent** 1: b-1\n"
        "- **changes** average of the last 7 days, compared with the 7 days before:\n"
        "  - a -1.00 -2.4%\n"
        "- **events** no gaps or empty periods since 2026-02-28\n"
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


def test_the_page_expects_as_many_players_as_the_list_of_events(build: Build, cli: Cli) -> None:
    rows = [("a", AS_OF - at * HOUR, 20 if at > 35 * 24 else 40) for at in range(90 * 24)]
    rows[:4] = [("a", AS_OF - at * HOUR, 0) for at in range(4)]
    path = build([server("a")], rows)

    (shown,) = cli("today", "--snapshot", path).json["events"]

    assert shown["expected"] == 20
    assert cli("events", "--kind", "zeros", "--snapshot", path).json["events"] == [shown]
