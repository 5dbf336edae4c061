"""Lists, statistics, ranks and trends of servers, recomputed by the definitions alone."""

import json
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from fractions import Fraction
from functools import partial
from itertools import combinations, pairwise, product
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, get_args
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analysis.definitions import HOUR, Rows, compute_change_naively, compute_figures, select, series
from conftest import AS_OF, DAY, Build, Cli, build_in, few_examples, server
from srvstat.analysis.growth import compute_growth, compute_median_slope
from srvstat.analysis.history import AGGREGATES, aggregate_history
from srvstat.analysis.pictures import compute_distribution, compute_peak_hours, compute_timeline
from srvstat.analysis.questions import ComparedQuery, divide_window, parse_step
from srvstat.analysis.selection import FilterOptions, MatchingServers, Question
from srvstat.analysis.series import Total
from srvstat.analysis.servers import list_servers
from srvstat.analysis.statistics import FigureOptions, compute_stats, rank_servers
from srvstat.contract.errors import UsageError
from srvstat.contract.time import format_instant, parse_instant
from srvstat.contract.windows import BEFORE_ALL, Window
from srvstat.documents.analysis import GrowthStepName, HourKey, TopKey
from srvstat.documents.snapshot import SortKey
from srvstat.snapshot.read.file import SnapshotFile, open_file

KEYS: tuple[TopKey, ...] = get_args(TopKey)


MAXIMA = (0, 2, 1, 2**53 - 1, 3)
"""The maxima of the records of servers, in their order."""


class Case(NamedTuple):
    """The rows of each server, and the questions."""

    servers: dict[str, Rows]
    windows: list[tuple[int | None, int]]
    quantiles: list[str]
    above: int | None


@st.composite
def cases(draw: st.DrawFn) -> Case:
    servers = {name: draw(series()) for name in ("a", "b", "c")}
    servers["tie"] = servers["b"]  # ranked by id
    servers["d"] = {AS_OF: 1}  # so that the snapshot is as of AS_OF
    observed = [at for of_one in servers.values() for at in of_one]
    ends = st.sampled_from([AS_OF, AS_OF - HOUR, AS_OF - DAY, *observed])
    lengths = st.sampled_from([1, HOUR, DAY, 2 * DAY + 1])
    windows = [
        (None if length is None else end - length, end)
        for end, length in draw(
            st.lists(st.tuples(ends, lengths | st.none()), min_size=2, max_size=2)
        )
    ]
    quantiles = st.sampled_from(["0", "0.5", "1", ".95", "0.999", "0.333333333333333"])
    above = draw(st.none() | st.integers(0, 3))
    return Case(servers, windows, draw(st.lists(quantiles, max_size=3)), above)


@pytest.mark.slow
@settings(max_examples=few_examples())
@given(case=cases())
def test_every_figure_and_every_rank_follows_from_the_rows(case: Case) -> None:
    records = [
        server(name, players={"current": number % 3, "max": MAXIMA[number]})
        for number, name in enumerate(case.servers)
    ]
    observed = [(name, at, n) for name, of_one in case.servers.items() for at, n in of_one.items()]
    with tempfile.TemporaryDirectory() as directory:
        path = str(build_in(Path(directory), records, observed))
        with closing(open_file(path)) as snapshot:
            for window in case.windows:
                stats = check_stats(snapshot, case, window)
                check_top(snapshot, case, window, stats)


def check_stats(snapshot: SnapshotFile, case: Case, window: tuple[int | None, int]) -> Any:
    start, end = window
    quantiles = [*case.quantiles] * 2
    figures = FigureOptions(quantiles, case.above)
    query = ComparedQuery(versus=None if start is None else "previous")
    found = json.loads(compute_stats(ask(snapshot, window), figures, query).to_json())
    exact = list(dict.fromkeys(map(Fraction, case.quantiles)))
    maxima = dict(zip(case.servers, MAXIMA, strict=True))
    for shown in found["servers"]:
        of_one = sorted(case.servers[shown["serverId"]].items())
        asked = exact, case.above, maxima[shown["serverId"]]
        expected = compute_figures(of_one, window, *asked)
        assert shown == shown | expected
        change = compute_change_naively(of_one, window)
        assert (shown["change"], shown["previousCoverage"]) == change
        seen = [at for at, _ in of_one]
        assert shown["lastObservedAt"] == (format_instant(max(seen)) if seen else None)
        if start is None:
            assert shown["previous"] is None
        else:
            before = (2 * start - end, start)
            assert shown["previous"] == compute_figures(of_one, before, *asked)
    assert [shown["serverId"] for shown in found["servers"]] == sorted(case.servers)
    return found["servers"]


def check_top(
    snapshot: SnapshotFile, case: Case, window: tuple[int | None, int], stats: Any
) -> None:
    shares = compute_shares(case.servers, window)
    plain = json.loads(compute_stats(ask(snapshot, window)).to_json())["servers"]
    # A window of all observations has no change.
    for key in (key for key in KEYS if key != "change" or window[0] is not None):
        values = {one["serverId"]: get_figure(one, key, snapshot.as_of) for one in stats}
        for sign in (-1, 1):
            found = rank_servers(ask(snapshot, window), key, limit=3, reverse=sign > 0)
            top = json.loads(found.to_json())
            ranked = sorted(
                plain,
                key=lambda one: (
                    values[one["serverId"]] is None,
                    (values[one["serverId"]] or 0) * sign,
                    one["serverId"],
                ),
            )
            assert (top["by"], top["serverCount"]) == (key, len(stats))
            expected = ranked[:3]
            if key == "share":
                known = [shares[one["serverId"]] for one in expected]
                expected = [
                    one if share is None else one | {"share": share}
                    for one, share in zip(expected, known, strict=True)
                ]
            assert top["servers"] == expected


def compute_shares(
    servers: dict[str, Rows], window: tuple[int | None, int]
) -> dict[str, float | None]:
    """Return the average of each server as a part of the sum of all averages."""
    kept = {
        name: [n for _, n in select(sorted(rows.items()), window)] for name, rows in servers.items()
    }
    averages = {name: Fraction(sum(n), len(n)) for name, n in kept.items() if n}
    whole = sum(averages.values())
    return {
        name: float(averages[name] / whole) if name in averages and whole else None for name in kept
    }


def ask(snapshot: SnapshotFile, window: tuple[int | None, int]) -> Question:
    """Return the question about all servers in a window."""
    start, end = window
    servers = MatchingServers(snapshot, FilterOptions())
    return Question(snapshot, servers, Window(BEFORE_ALL if start is None else start, end))


def get_figure(shown: Any, key: TopKey, as_of: int) -> float | None:
    last = shown["lastObservedAt"]
    if key == "current" and (last is None or as_of - parse_instant(last) > DAY):
        return None
    if key in {"growth", "change"}:
        players: float | None = (shown[key] or {"players": None})["players"]
        return players
    names = {"samples": "sampleCount", "share": "averagePlayers", "occupancy": "occupancy"}
    value: float | None = shown[names.get(key, f"{key}Players")]
    return value


def test_many_servers_are_read_in_batches(build: Build) -> None:
    names = [f"s{number:03}" for number in range(250)]
    path = build([server(name) for name in names], [(name, AS_OF, int(name[1:])) for name in names])
    with closing(open_file(path)) as snapshot:
        question = ask(snapshot, (AS_OF - DAY, AS_OF))
        stats, top = compute_stats(question), rank_servers(question, "peak", limit=150)

    assert [one.server_id for one in stats.servers] == names
    assert [one.peak_players for one in stats.servers] == list(range(250))
    assert [one.server_id for one in top.servers] == names[:99:-1]
    assert top.server_count == 250


NOT_QUANTILES = "1.01 -0.5 5e-1 1/2 +0.5 0.5_0 \u0660.\u0665 nan 0.1234567890123456 ."


@pytest.mark.parametrize("text", ["", " 0.5", *NOT_QUANTILES.split(" ")])
def test_a_quantile_is_a_decimal_from_0_to_1(text: str) -> None:
    with pytest.raises(UsageError, match="is not a decimal from 0 to 1"):
        FigureOptions([text])


LARGEST = 2**53 - 1


class Average(NamedTuple):
    """The average of `total` in `observations` observations at a position."""

    position: int
    total: int
    observations: int


def compute_trend(points: list[Average]) -> Fraction:
    columns = [[getattr(point, name) for point in points] for name in Average._fields]
    fits = all(abs(number) < 1 << 63 for number in columns[1])
    return compute_median_slope(
        np.array(columns[0], np.int64),
        np.array(columns[1], np.int64 if fits else object),
        np.array(columns[2], np.int64),
    )


@st.composite
def averages(draw: st.DrawFn) -> list[Average]:
    """Draw averages: few or many, of equal, small or huge counts, at even and uneven distances."""
    size = draw(st.sampled_from([2, 3, 4, 15, 16, 17, 40]))
    totals = st.integers(0, draw(st.sampled_from([0, 1, 3, 900, LARGEST])))
    counts = st.integers(1, draw(st.sampled_from([1, 3, 288, LARGEST])))
    distances = st.sampled_from(draw(st.sampled_from([[1], [1, 2, 3], [7, 10**9, 3**30]])))
    trend = draw(st.sampled_from([0, 1, 50]))
    position = draw(st.integers(0, LARGEST))
    found = []
    for number in range(size):
        position += draw(distances)
        count = draw(counts)
        found.append(Average(position, draw(totals) + trend * number * count, count))
    return found


def draw_line() -> list[Average]:
    """Draw averages of which some are so close to a line that doubles can't order their slopes."""
    drawn, count = random.Random(1), 10**15  # noqa: S311 - cases are drawn from a seed
    on_line = drawn.sample(range(40), 12)
    totals = [
        (at + 7) * count + drawn.randrange(-3, 4)
        if at in on_line
        else (at + drawn.choice([2, 4, 10, 12])) * count + drawn.randrange(count)
        for at in range(40)
    ]
    return [Average(at, total, count) for at, total in enumerate(totals)]


def compute_naively(points: list[Average]) -> Fraction:
    return median(
        (Fraction(b.total, b.observations) - Fraction(a.total, a.observations))
        / (b.position - a.position)
        for a, b in combinations(points, 2)
    )


@example([Average(at, at % 4, 1) for at in range(40)])
@example([Average(at, LARGEST + at % 3, LARGEST) for at in range(40)])  # doubles see equal averages
@example(draw_line())
@example([Average(at, at * at % 97, 1 + at % 2) for at in range(1, 80)])
@given(averages())
def test_the_trend_is_the_median_of_all_slopes(points: list[Average]) -> None:
    assert compute_trend(points) == compute_naively(points)


HALF = [LARGEST, *(7919 * at % 1000 for at in range(1, 750))]


def test_millions_of_slopes_are_ranked() -> None:
    # Two averages of the third series are imprecise as doubles.
    for means, slope in (([*range(1_500)], 1), ([0, 9] * 750, 0), ([*HALF, *reversed(HALF)], 0)):
        counts = [280 + at * at % 97 for at in range(1_500)]
        points = [Average(at, mean * counts[at], counts[at]) for at, mean in enumerate(means)]
        assert compute_trend(points) == slope


class Polls(NamedTuple):
    """Polls without gaps up to an interval before AS_OF, and which of those that repeat a count.

    `kept` are the numbers of repeated polls that a collector of changes wrote all the same.
    """

    interval: int
    counts: dict[str, list[int]]
    kept: set[int]

    def list_rows(self, *, only_changes: bool) -> list[tuple[str, int, int]]:
        """Return the observations of a collector of polls or of changes."""
        rows = []
        for name, counts in self.counts.items():
            start = AS_OF - self.interval * len(counts)
            for number, count in enumerate(counts):
                is_change = number == 0 or counts[number - 1] != count
                if is_change or not only_changes or number in self.kept:
                    rows.append((name, start + number * self.interval, count))
        return rows


@st.composite
def polls(draw: st.DrawFn) -> Polls:
    interval = draw(st.sampled_from([10 * HOUR // 60, HOUR // 2, HOUR]))
    values = draw(st.sampled_from([st.integers(0, 2), st.integers(0, 2**50)]))
    runs = st.lists(st.tuples(values, st.integers(2, 80)), min_size=1, max_size=8)
    counts = {}
    for name in "ab":
        found = [count for count, length in draw(runs) for _ in range(length)]
        per_hour = HOUR // interval
        counts[name] = found[len(found) % per_hour :] or [found[0]] * 2 * per_hour
    return Polls(interval, counts, draw(st.sets(st.integers(0, 200), max_size=5)))


OBSERVED = {
    *("root", "sampleCount", "sampleCounts", "growth", "previousGrowth", "firstPlayers"),
    *("lastPlayers", "peakLastAt", "lowestLastAt", "lastObservedAt", "usualIntervalSeconds"),
}
"""What is a figure of observations, not of the counts that last between them."""


def drop(value: Any, names: set[str]) -> Any:
    if isinstance(value, list):
        return [drop(one, names) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: drop(one, names) for name, one in value.items() if name not in names}


def list_answers(
    snapshot: SnapshotFile, window: Window, zone: str, *, names: set[str]
) -> list[Any]:
    """Return the answers of all questions, without some of their fields."""
    servers = MatchingServers(snapshot, FilterOptions())
    question = Question(snapshot, servers, window, ZoneInfo(zone))
    keys = {*KEYS} - {"growth", "samples"}
    query = ComparedQuery()
    if window.start == BEFORE_ALL:
        figures = FigureOptions([".25", ".9"], 1)
        keys -= {"change"}
    else:
        figures = FigureOptions([".5"], 0)
        query = ComparedQuery(versus="previous")
    documents = [
        compute_stats(question, figures, query),
        *(rank_servers(question, key, 2, figures, query) for key in sorted(keys)),
        *(compute_growth(question, step) for step in get_args(GrowthStepName)),
        list_servers(snapshot, FilterOptions()),
    ]
    answers = [drop(json.loads(one.to_json()), names) for one in documents]
    total = question._replace(servers=[Total(snapshot, [*question.iter_rows()])])
    for step, aggregate, asked in product(("1h", "6h", "day"), AGGREGATES, (question, total)):
        if asked is total and aggregate in {"share", "rank"}:
            continue
        steps = divide_window(asked, parse_step(step))
        columns, rows = aggregate_history(asked, steps, aggregate).to_rows()
        titles = [column.name for column in columns]
        answers += [drop(dict(zip(titles, row, strict=True)), names) for row in rows]
    return answers


def list_pictures(snapshot: SnapshotFile, window: Window, zone: str) -> list[Any]:
    """Return the data of all pictures, as of changes or of all polls."""
    question = Question(snapshot, [*snapshot.iter_servers()], window, ZoneInfo(zone))
    compute: tuple[Callable[[Question], Any], ...] = (
        *(partial(compute_peak_hours, by=by) for by in get_args(HourKey)),
        compute_distribution,
        lambda one: compute_timeline(one, 500),
    )
    return [drop(json.loads(each(question).to_json()), OBSERVED) for each in compute]


def list_cells(snapshot: SnapshotFile) -> list[tuple[float | None, float | None]]:
    """Return the average and the median of each hour of the week of each server."""
    found = compute_peak_hours(ask(snapshot, (None, AS_OF))).servers
    return [(cell.average_players, cell.median_players) for one in found for cell in one.cells]


@pytest.mark.slow
@settings(max_examples=few_examples())
@given(polled=polls(), data=st.data())
def test_changes_that_are_held_say_as_much_as_all_polls(polled: Polls, data: st.DataObject) -> None:
    records = [server(name, players={"current": 1}) for name in polled.counts]
    built = {}
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        for name in ("changes", "held", "polls"):
            rows = polled.list_rows(only_changes=name == "changes")
            folder = Path(directory, name)
            folder.mkdir()
            options = [f"--at={AS_OF}", *([] if name == "polls" else ["--hold"])]
            path = str(build_in(folder, records, rows, *options))
            built[name] = stack.enter_context(closing(open_file(path)))
        start = data.draw(
            st.integers(AS_OF - 10 * DAY, AS_OF + DAY)
            | st.sampled_from([AS_OF - HOUR, AS_OF - DAY])
        )
        length = data.draw(st.integers(1, 5 * DAY) | st.sampled_from([HOUR, DAY, 7 * DAY]))
        every = Window(BEFORE_ALL, AS_OF)
        for asked in (Window(start, start + length), every):
            for answer in (partial(list_answers, names=OBSERVED), list_pictures):
                changes, held = (
                    answer(built[name], asked, "Asia/Kathmandu") for name in ("changes", "held")
                )
                assert changes == held
        # Regular polls weigh as much as the time between them.
        changes, polls = (
            list_answers(built[name], every, "UTC", names=OBSERVED | {"hold"})
            for name in ("changes", "polls")
        )
        assert changes == polls
        for shown, cell in zip(*map(list_cells, (built["changes"], built["polls"])), strict=True):
            assert cell in (shown, (None, None))


CHANGES = f"""serverId,observedAt,players
a,{AS_OF - 40 * DAY},10
a,{AS_OF - 20 * DAY},20
b,{AS_OF - 18 * HOUR},4
"""


def test_a_held_count_is_a_figure_of_windows_without_an_observation(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("changes.csv").write_text(CHANGES)
    options = ("--hold", f"--at={AS_OF}")
    assert cli("snapshot", "build", "whole.db", "changes.csv", *options).exit_code == 0
    wrote = cli("snapshot", "bundle", "a", "b", "--range=7d", "-o", "bundle.db", "-s", "whole.db")
    assert wrote.exit_code == 0, wrote.stderr

    for path in ("whole.db", "bundle.db"):
        stats = cli("stats", "a", "b", "--range=1d", "--above=3", "-s", path).json
        assert stats["hold"] is True
        figures = [
            (one["sampleCount"], one["averagePlayers"], one["coverage"], one["above"]["hours"])
            for one in stats["servers"]
        ]
        assert figures == [(0, 20, 1, 24), (1, 4, 0.75, 18)]
        table = cli("history", "a", "b", "--sum", "--step=12h", "--range=1d", "--table", "-s", path)
        lines = table.stdout.decode().splitlines()
        assert [line.split()[4:] for line in lines[5:7]] == [["22.00", "2"], ["24.00", "2"]]
        assert "each count lasts until the next one" in lines
        assert table.stderr == ""
    compared = cli("compare", "a", "b", "--range=7d", "-s", "whole.db", "--table").stdout.decode()
    assert "the API's statistics, not weighted by time" in compared
    rules = cli("integrity", "a", "-s", "whole.db").json["servers"][0]["rules"]
    assert {one["reason"] for one in rules} == {
        "needs regular polls, but the snapshot was built with --hold",
        "the server has no player limit in its metadata",
    }


TEXTS = ("", "Harbor City", "STRASSE", "straße night", "İzmir |\tPvP", "no-mods")
REGIONS = ("", "EU", "eu", "US")
TAGS: tuple[list[str], ...] = ([], ["PvP"], ["pvp", "no mods"], ["Straße", 'quo"te\\'])
COUNT = 60


def pick(choices: Sequence[Any], number: int) -> Any:
    return choices[number % len(choices)]


RECORDS = [
    server(
        f"s-{number * 7 % COUNT:02}",
        game=pick(("game_a", "game_b"), number // 3),
        hostname=pick(TEXTS, number),
        projectName=pick(TEXTS, number // 5),
        projectDescription=pick(TEXTS, number // 7),
        region=pick(REGIONS, number // 2),
        tags=pick(TAGS, number // 4),
        offline=number % 3 == 0,
        players={"current": number % 11},
    )
    for number in range(COUNT)
]
"""Servers that share most of their texts."""

TIMES = {
    record["id"]: [AS_OF - 12 * HOUR * place for place in range(number % 4)]
    if number % 2
    else [AS_OF - 2 * DAY - number * HOUR * place**2 // 9 for place in range(number % 5)]
    for number, record in enumerate(RECORDS)
}
"""The instants of the observations of each server, some of them exactly days before AS_OF."""


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SnapshotFile]:
    """Open a snapshot of RECORDS with an observation at each of TIMES."""
    rows = [(name, at, 1) for name, times in TIMES.items() for at in times]
    path = build_in(tmp_path_factory.mktemp("many"), RECORDS, rows)
    with closing(open_file(str(path))) as file:
        yield file


words = st.sampled_from(["harbor", "CITY", "ss", "ß", "i̇z", "|", "s-1", "X-S-05", "mods", '"', "q"])
options = st.fixed_dictionaries(
    {},
    optional={
        "text": st.lists(words, max_size=3).map("  ".join),
        "game": st.sampled_from(["game_a", "GAME_B", "game_c"]),
        "region": st.sampled_from(["", "EU", "us", "mars"]),
        "tags": st.lists(st.sampled_from(["pvp", "NO MODS", "STRASSE", "none"]), max_size=2),
        "offline": st.booleans(),
    },
)


def is_wanted(record: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Check a record against options, each on its own."""
    fields = ("id", "cfxId", "hostname", "projectName", "projectDescription")
    texts = [record[name].casefold() for name in fields]
    tags = [tag.casefold() for tag in record["tags"]]
    for word in wanted.get("text", "").split():
        if not [text for text in texts + tags if word.casefold() in text]:
            return False
    for name in ("game", "region"):
        if name in wanted and wanted[name].casefold() != record[name].casefold():
            return False
    if not {tag.casefold() for tag in wanted.get("tags", ())} <= set(tags):
        return False
    return wanted.get("offline") in {None, record["offline"] or is_silent(record)}


def is_silent(record: dict[str, Any]) -> bool:
    return not any(at >= AS_OF - DAY for at in TIMES[record["id"]])


def build_options(wanted: dict[str, Any]) -> FilterOptions:
    text = wanted.get("text")
    return FilterOptions(**wanted | {"text": None if text is None else [text]})


@given(wanted=options)
def test_a_filter_finds_the_records_that_a_search_finds(
    wanted: dict[str, Any], snapshot: SnapshotFile
) -> None:
    found = list_servers(snapshot, build_options(wanted))

    expected = sorted(record["id"] for record in RECORDS if is_wanted(record, wanted))
    assert [one.id for one in found.servers] == expected
    assert found.matched == len(expected)


@pytest.mark.parametrize(
    ("wanted", "is_empty"),
    [
        ({}, True),
        ({"text": " ", "tags": []}, True),
        ({"region": ""}, False),
        ({"offline": False}, False),
    ],
)
def test_a_filter_without_properties_is_empty(wanted: dict[str, Any], is_empty: bool) -> None:
    assert build_options(wanted).is_empty is is_empty


VALUES: dict[SortKey, tuple[Callable[[dict[str, Any]], Any], bool]] = {
    "id": (lambda record: record["id"], False),
    "hostname": (lambda record: record["hostname"].casefold(), False),
    "game": (lambda record: record["game"], False),
    "region": (lambda record: record["region"].casefold(), False),
    "observations": (lambda record: len(TIMES[record["id"]]), True),
    "last-seen": (lambda record: max(TIMES[record["id"]], default=None), True),
    "coverage": (lambda record: compute_coverage(TIMES[record["id"]]), True),
    "current": (lambda record: None if is_silent(record) else record["players"]["current"], True),
}
"""What each sort key compares, and whether the greatest is first."""


@pytest.mark.parametrize("limit", [None, 7])
@pytest.mark.parametrize("sort", get_args(SortKey))
def test_servers_are_sorted_by_a_value_then_by_id(
    sort: SortKey, limit: int | None, snapshot: SnapshotFile
) -> None:
    found = list_servers(snapshot, FilterOptions(), sort=sort, limit=limit)

    read, is_descending = VALUES[sort]
    by_id = sorted(RECORDS, key=lambda record: record["id"])
    last = [record for record in by_id if read(record) in {None, ""}]
    first = [record for record in by_id if record not in last]
    first.sort(key=read, reverse=is_descending)  # stable, so ties stay in the order of ids
    assert [one.id for one in found.servers] == [one["id"] for one in first + last][:limit]
    assert found.matched == COUNT


def compute_coverage(times: Sequence[int]) -> float | None:
    """Return the coverage from the first observation to AS_OF."""
    rows = [(at, 1) for at in sorted(times)]
    coverage: float | None = compute_figures(rows, (None, AS_OF))["coverage"]
    return coverage if len(times) > 1 else None


def test_a_list_shows_how_servers_are_polled(snapshot: SnapshotFile) -> None:
    found = list_servers(snapshot, FilterOptions())

    for one in found.servers:
        times = sorted(TIMES[one.id])
        seconds = [(after - before) / 1000 for before, after in pairwise(times)]
        assert one.usual_interval_seconds == (median(seconds) if seconds else None)
        assert one.coverage == compute_coverage(times)
        assert one.sample_count == len(times)
        assert (one.first_observed_at, one.last_observed_at) == (
            (times[0], times[-1]) if times else (None, None)
        )
    assert {one.coverage for one in found.servers} > {None, 1.0}
