"""Measure how often the rules of `srvstat integrity` are suspect; writes docs/integrity.json.

Takes some minutes: `.venv/bin/python docs/measure_integrity.py`. Draws honest series, changes them,
and reads real data if it is beside the repository; without that, the stored results are kept.
docs/integrity.md shows the results in tables that `make docs` generates.
"""

import csv
import gzip
import json
import sqlite3
import sys
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import product
from multiprocessing import Pool
from pathlib import Path
from zoneinfo import ZoneInfo

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from analysis.honest_series import (  # noqa: E402 - from the tests, on the path since above
    INTERVALS,
    MODES,
    SIZES,
    Shape,
    change_series,
    draw_series,
)
from conftest import SHARED_DATA  # noqa: E402 - likewise
from srvstat.analysis.integrity.check import check_series  # noqa: E402
from srvstat.analysis.integrity.series import Series  # noqa: E402
from srvstat.contract.ranges import DAY_MS, Window  # noqa: E402
from srvstat.render.text import format_count  # noqa: E402

RESULTS = ROOT / "docs" / "integrity.json"
LENGTHS = (30, 90)
_SEEDS = range(1_000, 1_100)
"""Not those of the series that the thresholds were chosen with, which begin at 0."""
_CHANGED_SEEDS = _SEEDS[:25]
_UTC = ZoneInfo("UTC")
_WAR_BROKERS_MAX = 100

_RULES = (
    "flatLine",
    "floor",
    "jitter",
    "missingValues",
    "stepChange",
    "noDailyCycle",
    "aboveMaximum",
    "gaps",
)
_UNCHANGED = ("aboveMaximum", "gaps")
"""The rules whose results do not depend on the mode of a change."""

Results = dict[str, dict[str, dict[str, int]]]
"""The number of series by their group, the rule and the result."""
_Result = tuple[str, str, str]
"""The names of a group of series and of a rule, and the result."""
Rows = dict[str, list[tuple[int, int]]]
"""The instant and the players of each observation, by server."""


def _check(group: str, series: Series) -> list[_Result]:
    return [(group, rule.rule, rule.result) for rule in check_series(series)]


def _measure_shape(shape: Shape) -> list[_Result]:
    """Return the results for an honest series and, for the first seeds, for each change of it."""
    series = draw_series(shape)
    found = _check(f"honest, {shape.size} players, {shape.days} days", series)
    if shape.seed in _CHANGED_SEEDS:
        for mode in MODES:
            found += _check(f"{mode}, {shape.size} players", change_series(series, mode, shape))
    return found


def _iter_real() -> Iterator[tuple[str, Rows, int, tuple[int, ...]]]:
    """Yield the name, the rows and the maximum of each data set, and the days of its windows."""
    if SHARED_DATA.is_dir():
        yield "War Brokers", _read_war_brokers(), _WAR_BROKERS_MAX, LENGTHS
        yield "Hypixel", _read_hypixel(), 0, LENGTHS
        yield "Minetrack", _read_minetrack(), 0, (1,)


def _read_war_brokers() -> Rows:
    rows: Rows = defaultdict(list)
    with gzip.open(SHARED_DATA / "warbrokers" / "observations.csv.gz", "rt") as file:
        for one in csv.DictReader(file):
            rows[one["serverId"]].append((int(one["observedAt"]), int(one["players"])))
    return rows


def _read_hypixel() -> Rows:
    with gzip.open(SHARED_DATA / "hypixel-hourly" / "player_counts.csv.gz", "rt") as file:
        lines = [line for line in csv.reader(file) if line[1].isdigit()]
    observed = {
        int(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp()) * 1000: int(players)
        for at, players in lines
    }
    return {"hypixel": list(observed.items())}


def _read_minetrack() -> Rows:
    rows: Rows = defaultdict(list)
    path = SHARED_DATA / "minetrack" / "database_copy_1-8-2021.sql"
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        query = "SELECT ip, timestamp, playerCount FROM pings WHERE playerCount IS NOT NULL"
        for name, at, players in connection.execute(query):
            rows[name].append((int(at), int(players)))
    return rows


def _iter_windows(rows: Rows, maximum: int, days: int) -> Iterator[Series]:
    """Yield the successive windows of each server, backwards from its last observation."""
    for observed in rows.values():
        ascending = sorted(dict(observed).items())
        instants = [at for at, _ in ascending]
        players = [count for _, count in ascending]
        end = instants[-1]
        while end > instants[0]:
            start = end - days * DAY_MS
            first, last = bisect_right(instants, start), bisect_right(instants, end)
            window = Window(start, end)
            yield Series(instants[first:last], players[first:last], window, _UTC, maximum)
            end = start


def _count(results: Iterable[_Result]) -> Results:
    counts: defaultdict[str, defaultdict[str, Counter[str]]] = defaultdict(
        lambda: defaultdict(Counter)
    )
    for group, rule, result in results:
        counts[group][rule][result] += 1
    return {group: {rule: dict(of) for rule, of in each.items()} for group, each in counts.items()}


def read_results() -> Results:
    """Return the stored counts."""
    found: Results = json.loads(RESULTS.read_bytes())
    return found


def format_honest() -> str:
    """Return a table of the rules and the sizes of honest servers."""
    results = read_results()
    columns = {
        f"{size:,} players": [results[f"honest, {size} players, {days} days"] for days in LENGTHS]
        for size in SIZES
    }
    return _format_rules(columns)


def format_real() -> str:
    """Return a table of the rules and the sets of real data."""
    results = read_results()
    names = [group for group in results if "windows" in group]
    return _format_rules({name: [results[name]] for name in names})


def _format_rules(columns: dict[str, list[dict[str, dict[str, int]]]]) -> str:
    rows = [
        [rule, *(_format_counts([group[rule] for group in groups]) for groups in columns.values())]
        for rule in _RULES
    ]
    return _format_table(["rule", *columns], rows)


def _format_counts(counts: list[dict[str, int]]) -> str:
    total = sum(map(Counter, counts), Counter())
    evaluated = total["suspect"] + total["pass"]
    return f"{total['suspect']:,} of {evaluated:,}" if evaluated else "not evaluated"


def format_changed() -> str:
    """Return a table of the changes of honest servers, and the share that each rule suspects."""
    results = read_results()
    rules = [rule for rule in _RULES if rule not in _UNCHANGED]
    rows = []
    for mode, size in product(MODES, SIZES):
        group = results[f"{mode}, {size} players"]
        rows.append([mode, f"{size:,}", *(_format_percent(group[rule]) for rule in rules)])
    return _format_table(["change", "players", *rules], rows)


def _format_percent(counts: dict[str, int]) -> str:
    percent = 100 * counts.get("suspect", 0) / sum(counts.values())
    return f"{percent:.3g}%" if percent else "–"  # noqa: RUF001 - as in other tables


def _format_table(head: list[str], rows: list[list[str]]) -> str:
    rule = ["---", *["--:"] * (len(head) - 1)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, rule, *rows))


def main() -> None:
    """Measure all series and write the counts of the results."""
    counts = read_results() if RESULTS.exists() else {}
    shapes = [Shape(*one) for one in product(SIZES, LENGTHS, INTERVALS, _SEEDS)]
    with Pool() as pool:
        found = pool.imap(_measure_shape, shapes, 8)
        counts |= _count(result for results in found for result in results)
    for name, rows, maximum, lengths in _iter_real():
        for days in lengths:
            group = f"{name}, windows of {format_count(days, 'day')}"
            windows = _iter_windows(rows, maximum, days)
            counts |= _count(result for series in windows for result in _check(group, series))
    RESULTS.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {RESULTS.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
