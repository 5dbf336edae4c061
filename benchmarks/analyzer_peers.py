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
    LEAST_COVERAGE,
    MIN_DAYS,
    MIN_OBSERVATIONS,
    PERCENT,
    WEEK_MS,
    WHOLE_SHARE,
    WINNERS,
    ZONE,
    Cell,
    Figures,
    Growth,
    Name,
    Question,
    Step,
    Summary,
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
    length = len(Step._fields)
    summaries = {row[0]: Summary(row[0], *row[length:]) for row in rows}
    steps = _read_steps(question, [row[:length] for row in rows])
    return Growth(steps, [summaries[key] for key in question.keys])


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
        return [
            _compute_figures(
                key, select(key, question.window), select(key, question.previous), question
            )
            for key in question.keys
        ]

    def ask_top(question: Question) -> list[_Row]:
        means = {key: select(key, question.window)["players"].mean() for key in question.keys}
        best = sorted(means, key=lambda key: (-means[key], key))[:WINNERS]
        return ask_stats(question._replace(keys=tuple(best)))

    def ask_growth(question: Question) -> list[_Row]:
        found = []
        for key in question.keys:
            known = select(key, Window(0, question.window.end))
            part, previous = select(key, question.window), select(key, question.previous)
            found += _compute_growth(key, known, part, previous, question)
        return found

    def ask_peak_hours(question: Question) -> list[_Row]:
        parts = ((key, select(key, question.window)) for key in question.keys)
        return [row for key, part in parts for row in _compute_cells(key, part)]

    def ask_history(question: Question) -> list[_Row]:
        found = []
        for key in question.keys:
            known = select(key, Window(0, question.window.end))
            found += _compute_hours(key, known, select(key, question.window), question.window)
        return found

    asked: dict[Name, Callable[[Question], list[_Row]]] = {
        "stats": ask_stats,
        "top": ask_top,
        "growth": ask_growth,
        "peak-hours": ask_peak_hours,
        "history": ask_history,
    }
    return [Tool("pandas", name, ask, _READERS[name]) for name, ask in asked.items()]


def _compute_figures(
    key: int, part: pd.DataFrame, previous: pd.DataFrame, question: Question
) -> _Row:
    at, players, count = part["observed_at"], part["players"], len(part)
    ranked = np.sort(players.to_numpy()).tolist()
    peak, lowest = ranked[-1], ranked[0]
    at_peak, at_lowest = (at[players == value] for value in (peak, lowest))
    lasting = _find_durations(at, question.window)
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
        at.diff().median() / 1_000,
        int((lasting * players).sum()) / int(lasting.sum()),
        *_compare(part, previous, question),
    )


def _find_durations(at: pd.Series, window: Window) -> pd.Series:
    """Return how long observations last, in half milliseconds."""
    distances = at.shift(-1, fill_value=window.end) - at
    return (2 * distances).clip(upper=int(6 * at.diff().median()))


def _compare(part: pd.DataFrame, previous: pd.DataFrame, question: Question) -> _Row:
    """Return the coverages, and the change of the mean in players and in percent."""
    window = question.window
    length = 2 * (window.end - window.start)
    coverage = int(_find_durations(part["observed_at"], window).sum()) / length
    before = 0.0
    if len(previous) > 1:
        lasting = _find_durations(previous["observed_at"], question.previous)
        before = int(lasting.sum()) / length
    if min(coverage, before) < LEAST_COVERAGE:
        return coverage, before, None, None
    totals = (int(previous["players"].sum()), int(part["players"].sum()))
    return coverage, before, *_subtract_means(totals, (len(previous), len(part)))


def _subtract_means(totals: tuple[int, int], counts: tuple[int, int]) -> _Row:
    """Return the change from the first mean to the second, rounded once, and that in percent."""
    rise = totals[1] * counts[0] - totals[0] * counts[1]
    return rise / (counts[0] * counts[1]), 100 * rise / (totals[0] * counts[1])


def _compute_shares(
    known: pd.DataFrame, part: pd.DataFrame, window: Window, edges: np.ndarray
) -> np.ndarray:
    """Return the observed share of each step between equally distant edges.

    `known` are all observations until the end of the window.
    """
    at = known["observed_at"].to_numpy()
    usual = int(2 * part["observed_at"].diff().median())
    lasting = np.minimum(2 * np.diff(at, append=window.end), 3 * usual)
    moments = edges.clip(*window)
    last = at.searchsorted(moments, side="right") - 1
    observed = np.cumsum(lasting)[last] - lasting[last]
    observed += np.minimum(lasting[last], 2 * (moments - at[last]))
    return np.diff(np.where(last < 0, 0, observed)) / (2 * (edges[1] - edges[0]))


def _find_steps(part: pd.DataFrame, window: Window, length: int) -> pd.Series:
    """Return the number of the step of each observation; the last step includes its end."""
    return part["observed_at"].clip(upper=window.end - 1) // length


def _list_edges(window: Window, length: int) -> np.ndarray:
    return np.arange((window.start + 1) // length, (window.end - 1) // length + 2) * length


def _compute_growth(
    key: int, known: pd.DataFrame, part: pd.DataFrame, previous: pd.DataFrame, question: Question
) -> list[_Row]:
    window, players = question.window, part["players"].astype("int64")
    days = players.groupby(_find_steps(part, window, DAY_MS)).agg(["count", "sum", "first", "last"])
    edges = _list_edges(window, DAY_MS)
    days["share"] = pd.Series(
        _compute_shares(known, part, window, edges), index=edges[:-1] // DAY_MS
    )
    days["mean"] = days["sum"] / days["count"]
    whole = days[days["share"] >= WHOLE_SHARE]
    before = whole.reindex(whole.index - 1).set_index(whole.index)
    rise = whole["sum"] * before["count"] - before["sum"] * whole["count"]
    days["change"] = rise / (whole["count"] * before["count"])
    days["percentage"] = 100 * rise / (before["sum"] * whole["count"])
    means, places = whole["mean"].to_numpy(), whole.index.to_numpy()
    one, other = np.triu_indices(len(whole), 1)
    slopes = (means[other] - means[one]) / ((places[other] - places[one]) * DAY_MS)
    summary = (
        len(part),
        players.mean(),
        *_compare(part, previous, question),
        _find_growth(players),
        _find_growth(previous["players"].astype("int64")),
        WEEK_MS * np.median(slopes) if len(whole) >= MIN_DAYS else None,
    )
    starts = (days.index * DAY_MS).to_numpy().clip(min=window.start)
    ends = ((days.index + 1) * DAY_MS).to_numpy().clip(max=window.end)
    growth = (days["last"] - days["first"]).where(days["count"] > 1)
    columns = [days["count"], days["mean"], days["share"], days["share"] < WHOLE_SHARE, growth]
    columns += [days["change"], days["percentage"]]
    return [
        (key, start, end, *(None if value != value else value for value in values), *summary)  # noqa: PLR0124 - NaN
        for start, end, *values in zip(
            starts.tolist(), ends.tolist(), *(column.tolist() for column in columns), strict=True
        )
    ]


def _find_growth(players: pd.Series) -> int | None:
    return players.iloc[-1] - players.iloc[0] if len(players) > 1 else None


def _compute_cells(key: int, part: pd.DataFrame) -> list[_Row]:
    local = pd.to_datetime(part["observed_at"], unit="ms", utc=True).dt.tz_convert(ZONE)
    cells = local.dt.dayofweek * 24 + local.dt.hour
    figures = part["players"].groupby(cells).agg(["count", "mean", "median"])
    return [(key, *row) for row in figures.itertuples()]


def _compute_hours(key: int, known: pd.DataFrame, part: pd.DataFrame, window: Window) -> list[_Row]:
    hours = part["players"].groupby(_find_steps(part, window, HOUR_MS)).agg(["count", "mean"])
    edges = _list_edges(window, HOUR_MS)
    hours = hours.reindex(edges[:-1] // HOUR_MS, fill_value=0)
    shares = _compute_shares(known, part, window, edges)
    return [
        (key, start, end, count, mean if count else None, share, is_partial)
        for start, end, count, mean, share, is_partial in zip(
            edges[:-1].clip(min=window.start).tolist(),
            edges[1:].clip(max=window.end).tolist(),
            hours["count"].tolist(),
            hours["mean"].tolist(),
            shares.tolist(),
            (shares < WHOLE_SHARE).tolist(),
            strict=True,
        )
    ]
