"""DuckDB and pandas answer the analyzer's questions in this process, on the same observations."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd

from benchmarks import analyzer_sql as sql
from benchmarks.analyzer_answers import (
    HOUR_MS,
    MIN_OBSERVATIONS,
    PERCENT,
    WEEK_MS,
    WINNERS,
    ZONE,
    Cell,
    Change,
    Figures,
    Growth,
    Name,
    Question,
    Step,
)
from benchmarks.data import FleetFiles
from srvstat.contract.ranges import DAY_MS, Window

_SERVERS_PER_READ = 50

_Row = tuple[Any, ...]


class Tool(NamedTuple):
    """A program or library that answers one question in this process, in one form."""

    name: str
    question: Name
    ask: Callable[[Question], Any]
    """Answers in the tool's own form; this is timed."""
    read: Callable[[Question, Any], Any]
    """Reads the answer from the result of `ask`; this is not timed."""


@contextmanager
def open_peers(files: FleetFiles) -> Iterator[list[Tool]]:
    """Open DuckDB and pandas on a fleet.

    DuckDB has two threads and a native table sorted by server and time. pandas has one data frame
    for each server in memory, sorted by time.
    """
    with duckdb.connect(files.duckdb_path(), read_only=True, config={"threads": 2}) as connection:
        frames = _load_frames(connection, files.size)
        yield [*_list_duckdb_tools(connection), *_list_pandas_tools(frames)]


def _list_duckdb_tools(connection: duckdb.DuckDBPyConnection) -> list[Tool]:
    def fetch(query: str) -> list[_Row]:
        return list(connection.execute(query).fetchall())

    def ask_top(question: Question) -> list[_Row]:
        best = tuple(key for (key,) in fetch(sql.build_ranking(question.window)))
        rows = fetch(sql.build_stats(best, question.window, is_corrected=True))
        return sorted(rows, key=lambda row: best.index(row[0]))

    def make(form: str, name: Name, build: Callable[..., str], **options: bool) -> Tool:
        def ask(question: Question) -> list[_Row]:
            return fetch(build(question.keys, question.window, **options))

        return Tool(form, name, ask, _READERS[name])

    return [
        make("DuckDB, minimum", "stats", sql.build_stats, is_corrected=False),
        make("DuckDB, corrected sums", "stats", sql.build_stats, is_corrected=True),
        make("DuckDB, one statement", "top", sql.build_top),
        Tool("DuckDB, two statements", "top", ask_top, _READERS["top"]),
        make("DuckDB", "growth", sql.build_growth),
        make("DuckDB, zone by row", "peak-hours", sql.build_peak_hours, by_quarter=False),
        make("DuckDB, zone by quarter", "peak-hours", sql.build_peak_hours, by_quarter=True),
        make("DuckDB", "history", sql.build_history),
    ]


def _read_winners(_question: Question, rows: list[_Row]) -> list[Figures]:
    return [Figures(*row) for row in rows]


def _read_figures(question: Question, rows: list[_Row]) -> list[Figures]:
    by_key = {row[0]: Figures(*row) for row in rows}
    return [by_key[key] for key in question.keys]


def _read_growth(question: Question, rows: list[_Row]) -> Growth:
    changes = {row[0]: Change(row[0], *row[6:]) for row in rows}
    steps = {key: [_read_step(row) for row in rows if row[0] == key] for key in question.keys}
    return Growth(
        [step for key in question.keys for step in steps[key]],
        [changes[key] for key in question.keys],
    )


def _read_step(row: _Row) -> Step:
    key, start, end, count, mean, growth = row[:6]
    return Step(key, start, end, count, mean, growth if count > 1 else None)


def _read_steps(question: Question, rows: list[_Row]) -> list[Step]:
    by_key: dict[int, list[Step]] = {key: [] for key in question.keys}
    for row in rows:
        by_key[row[0]].append(Step(*row))
    return [step for steps in by_key.values() for step in steps]


def _read_cells(question: Question, rows: list[_Row]) -> list[Cell]:
    found = {row[:2]: row[2:] for row in rows}
    cells = []
    for place in product(question.keys, range(7 * 24)):
        observations, *figures = found.get(place, (0, None, None))
        mean, median = figures if observations >= MIN_OBSERVATIONS else (None, None)
        cells.append(Cell(*place, observations, mean, median))
    return cells


_READERS: dict[Name, Callable[[Question, list[_Row]], Any]] = {
    "stats": _read_figures,
    "top": _read_winners,
    "growth": _read_growth,
    "peak-hours": _read_cells,
    "history": _read_steps,
}


def _load_frames(connection: duckdb.DuckDBPyConnection, size: int) -> dict[int, pd.DataFrame]:
    frames = {}
    for start in range(1, size + 1, _SERVERS_PER_READ):
        rows = connection.execute(
            "SELECT server, observed_at, players FROM observations"
            f" WHERE server BETWEEN {start} AND {start + _SERVERS_PER_READ - 1}"
            " ORDER BY server, observed_at"
        ).df()
        for key, frame in rows.groupby("server"):
            frames[int(key)] = frame[["observed_at", "players"]].reset_index(drop=True)
    return frames


def _list_pandas_tools(frames: dict[int, pd.DataFrame]) -> list[Tool]:
    def select(key: int, window: Window) -> pd.DataFrame:
        first, last = frames[key]["observed_at"].searchsorted(window, side="right")
        return frames[key].iloc[first:last]

    def ask_stats(question: Question) -> list[_Row]:
        window = question.window
        return [_compute_figures(key, select(key, window), window) for key in question.keys]

    def ask_top(question: Question) -> list[_Row]:
        means = {key: select(key, question.window)["players"].mean() for key in question.keys}
        best = sorted(means, key=lambda key: (-means[key], key))[:WINNERS]
        return ask_stats(question._replace(keys=tuple(best)))

    def ask_growth(question: Question) -> list[_Row]:
        found = []
        for key in question.keys:
            previous = select(key, question.previous)
            found += _compute_growth(key, select(key, question.window), previous, question.window)
        return found

    def ask_peak_hours(question: Question) -> list[_Row]:
        parts = ((key, select(key, question.window)) for key in question.keys)
        return [row for key, part in parts for row in _compute_cells(key, part)]

    def ask_history(question: Question) -> list[_Row]:
        parts = ((key, select(key, question.window)) for key in question.keys)
        return [row for key, part in parts for row in _compute_hours(key, part, question.window)]

    asked: dict[Name, Callable[[Question], list[_Row]]] = {
        "stats": ask_stats,
        "top": ask_top,
        "growth": ask_growth,
        "peak-hours": ask_peak_hours,
        "history": ask_history,
    }
    return [Tool("pandas", name, ask, _READERS[name]) for name, ask in asked.items()]


def _compute_figures(key: int, part: pd.DataFrame, window: Window) -> _Row:
    at, players, count = part["observed_at"], part["players"], len(part)
    ranked = np.sort(players.to_numpy()).tolist()
    peak, lowest = ranked[-1], ranked[0]
    at_peak, at_lowest = (at[players == value] for value in (peak, lowest))
    usual = at.diff().median()
    lasting = (2 * (at.shift(-1, fill_value=window.end) - at)).clip(upper=int(6 * usual))
    weight = int(lasting.sum())
    return (
        key,
        count,
        players.mean(),
        (ranked[(count - 1) // 2] + ranked[count // 2]) / 2,
        (ranked[-(-count * PERCENT // 100) - 1] + ranked[count * PERCENT // 100]) / 2,
        peak,
        lowest,
        players.iloc[0],
        players.iloc[-1],
        at_peak.iloc[0],
        at_peak.iloc[-1],
        at_lowest.iloc[0],
        at_lowest.iloc[-1],
        usual / 1_000,
        int((lasting * players).sum()) / weight,
        weight / (2 * (window.end - window.start)),
    )


def _compute_growth(
    key: int, part: pd.DataFrame, previous: pd.DataFrame, window: Window
) -> list[_Row]:
    players = part["players"].astype("int64")
    days = players.groupby((part["observed_at"] - 1) // DAY_MS).agg(
        ["count", "mean", "first", "last"]
    )
    starts = (days.index * DAY_MS).to_numpy().clip(min=window.start)
    ends = ((days.index + 1) * DAY_MS).to_numpy().clip(max=window.end)
    middles, means = (starts + ends) / 2, days["mean"].to_numpy()
    one, other = np.triu_indices(len(days), 1)
    slopes = (means[other] - means[one]) / (middles[other] - middles[one])
    growth = players.iloc[-1] - players.iloc[0]
    ends_before = previous["players"].astype("int64").iloc[[0, -1]] if len(previous) > 1 else None
    before = None if ends_before is None else ends_before.iloc[1] - ends_before.iloc[0]
    trend = WEEK_MS * np.median(slopes)
    return [
        (key, start, end, count, mean, last - first, growth, before, trend)
        for start, end, count, mean, first, last in zip(
            starts.tolist(), ends.tolist(), *(days[name].tolist() for name in days), strict=True
        )
    ]


def _compute_cells(key: int, part: pd.DataFrame) -> list[_Row]:
    local = pd.to_datetime(part["observed_at"], unit="ms", utc=True).dt.tz_convert(ZONE)
    cells = local.dt.dayofweek * 24 + local.dt.hour
    figures = part["players"].groupby(cells).agg(["count", "mean", "median"])
    return [(key, *row) for row in figures.itertuples()]


def _compute_hours(key: int, part: pd.DataFrame, window: Window) -> list[_Row]:
    hours = part["players"].groupby((part["observed_at"] - 1) // HOUR_MS).agg(["count", "mean"])
    every = range(window.start // HOUR_MS, (window.end - 1) // HOUR_MS + 1)
    hours = hours.reindex(every, fill_value=0)
    starts = (hours.index * HOUR_MS).to_numpy().clip(min=window.start)
    ends = ((hours.index + 1) * HOUR_MS).to_numpy().clip(max=window.end)
    return [
        (key, start, end, count, mean if count else None)
        for start, end, count, mean in zip(
            starts.tolist(),
            ends.tolist(),
            hours["count"].tolist(),
            hours["mean"].tolist(),
            strict=True,
        )
    ]
