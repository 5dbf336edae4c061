"""DuckDB and pandas answer the analyzer's questions in this process, on the same observations."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import duckdb
import numpy as np
import pandas as pd
from numpy.typing import NDArray

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
from benchmarks.fleet import Integers
from srvstat.contract.ranges import DAY_MS, Window

_SERVERS_PER_READ = 50

_Row = tuple[Any, ...]
_Floats: TypeAlias = NDArray[np.float64]


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


class _Selection(NamedTuple):
    """The observations of a server in a window, in the previous one, and until the window's end."""

    key: int
    window: Window
    part: pd.DataFrame
    previous: pd.DataFrame
    known: pd.DataFrame


def _list_pandas_tools(frames: dict[int, pd.DataFrame]) -> list[Tool]:
    def select(question: Question) -> Iterator[_Selection]:
        start, end = question.window
        for key in question.keys:
            frame = frames[key]
            before, first, last = frame["observed_at"].searchsorted(
                [question.previous.start, start, end], side="right"
            )
            part, previous = frame.iloc[first:last], frame.iloc[before:first]
            yield _Selection(key, question.window, part, previous, frame.iloc[:last])

    def ask_top(question: Question) -> list[_Row]:
        means = {one.key: one.part["players"].mean() for one in select(question)}
        best = sorted(means, key=lambda key: (-means[key], key))[:WINNERS]
        return [*map(_compute_figures, select(question._replace(keys=tuple(best))))]

    def make(name: Name, compute: Callable[[_Selection], list[_Row]]) -> Tool:
        def ask(question: Question) -> list[_Row]:
            return [row for selection in select(question) for row in compute(selection)]

        return Tool("pandas", name, ask, _READERS[name])

    return [
        make("stats", lambda selection: [_compute_figures(selection)]),
        Tool("pandas", "top", ask_top, _READERS["top"]),
        make("growth", _compute_growth),
        make("peak-hours", _compute_cells),
        make("history", _compute_hours),
    ]


def _compute_figures(selection: _Selection) -> _Row:
    part = selection.part
    at, players, count = part["observed_at"], part["players"], len(part)
    ranked = np.sort(players.to_numpy()).tolist()
    peak, lowest = ranked[-1], ranked[0]
    at_peak, at_lowest = (at[players == value] for value in (peak, lowest))
    usual = _double_usual(at)
    lasting = _find_durations(at, selection.window.end, usual)
    return (
        selection.key,
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
        usual / 2_000,
        int((lasting * players.to_numpy()).sum()) / int(lasting.sum()),
        *_compare_windows(selection, int(lasting.sum())),
    )


def _double_usual(at: pd.Series) -> int:
    """Return twice the usual interval of at least two observations."""
    return int(2 * np.median(np.diff(at.to_numpy())))


def _find_durations(at: pd.Series, end: int, usual: int) -> Integers:
    """Return how long observations last, in half milliseconds."""
    return np.minimum(2 * np.diff(at.to_numpy(), append=end), 3 * usual)


def _compare_windows(selection: _Selection, weight: int) -> _Row:
    """Return both coverages, and the change of the average in players and in percent.

    `weight` is the observed time in the window, in half milliseconds.
    """
    start, end = selection.window
    part, previous = selection.part["players"], selection.previous["players"]
    weight_before = 0
    if len(previous) > 1:
        at = selection.previous["observed_at"]
        weight_before = int(_find_durations(at, start, _double_usual(at)).sum())
    coverage, before = (one / (2 * (end - start)) for one in (weight, weight_before))
    if min(coverage, before) < LEAST_COVERAGE:
        return coverage, before, None, None
    # Multiplies instead of subtracting quotients, so that each figure is rounded once.
    total, earlier = int(part.sum()), int(previous.sum())
    rise = total * len(previous) - earlier * len(part)
    change = rise / (len(part) * len(previous))
    return coverage, before, change, 100 * rise / (earlier * len(part))


def _compute_growth(selection: _Selection) -> list[_Row]:
    window, at = selection.window, selection.part["observed_at"]
    players, earlier = (
        one["players"].astype("int64") for one in (selection.part, selection.previous)
    )
    usual = _double_usual(at)
    days = players.groupby(_find_steps(at, window, DAY_MS)).agg(["count", "sum", "first", "last"])
    edges = _list_edges(window, DAY_MS)
    shares = _compute_shares(selection, usual, edges)
    days["share"] = shares[days.index.to_numpy() - edges[0] // DAY_MS]
    days["mean"] = days["sum"] / days["count"]
    whole = days[days["share"] >= WHOLE_SHARE]
    before = whole.reindex(whole.index - 1).set_index(whole.index)
    rise = whole["sum"] * before["count"] - before["sum"] * whole["count"]
    days["change"] = rise / (whole["count"] * before["count"])
    days["percentage"] = 100 * rise / (before["sum"] * whole["count"])
    summary = (
        len(players),
        players.mean(),
        *_compare_windows(selection, int(_find_durations(at, window.end, usual).sum())),
        _find_growth(players),
        _find_growth(earlier),
        _compute_trend(whole),
    )
    starts = (days.index * DAY_MS).to_numpy().clip(min=window.start)
    ends = ((days.index + 1) * DAY_MS).to_numpy().clip(max=window.end)
    growth = (days["last"] - days["first"]).where(days["count"] > 1)
    columns = [days["count"], days["mean"], days["share"], days["share"] < WHOLE_SHARE]
    columns += [growth, days["change"], days["percentage"]]
    values = (column.astype(object).where(column.notna(), None).tolist() for column in columns)
    return [
        (selection.key, *row, *summary)
        for row in zip(starts.tolist(), ends.tolist(), *values, strict=True)
    ]


def _find_growth(players: pd.Series) -> int | None:
    return players.iloc[-1] - players.iloc[0] if len(players) > 1 else None


def _compute_trend(whole: pd.DataFrame) -> float | None:
    if len(whole) < MIN_DAYS:
        return None
    means, days = whole["mean"].to_numpy(), whole.index.to_numpy()
    one, other = np.triu_indices(len(whole), 1)
    slopes = (means[other] - means[one]) / ((days[other] - days[one]) * DAY_MS)
    return float(WEEK_MS * np.median(slopes))


def _find_steps(at: pd.Series, window: Window, length: int) -> pd.Series:
    """Return the number of the step of each observation; the last step includes its end."""
    return at.clip(upper=window.end - 1) // length


def _list_edges(window: Window, length: int) -> Integers:
    return np.arange((window.start + 1) // length, (window.end - 1) // length + 2) * length


def _compute_shares(selection: _Selection, usual: int, edges: Integers) -> _Floats:
    """Return the observed share of each step between equally distant edges."""
    end, at = selection.window.end, selection.known["observed_at"]
    lasting = _find_durations(at, end, usual)
    moments = edges.clip(*selection.window)
    last = at.searchsorted(moments, side="right") - 1
    observed = np.cumsum(lasting)[last] - lasting[last]
    observed += np.minimum(lasting[last], 2 * (moments - at.to_numpy()[last]))
    return np.diff(np.where(last < 0, 0, observed)) / (2 * (edges[1] - edges[0]))


def _compute_cells(selection: _Selection) -> list[_Row]:
    part = selection.part
    local = pd.to_datetime(part["observed_at"], unit="ms", utc=True).dt.tz_convert(ZONE)
    cells = local.dt.dayofweek * 24 + local.dt.hour
    figures = part["players"].groupby(cells).agg(["count", "mean", "median"])
    return [(selection.key, *row) for row in figures.itertuples()]


def _compute_hours(selection: _Selection) -> list[_Row]:
    window, part = selection.window, selection.part
    at = part["observed_at"]
    hours = part["players"].groupby(_find_steps(at, window, HOUR_MS)).agg(["count", "mean"])
    edges = _list_edges(window, HOUR_MS)
    hours = hours.reindex(edges[:-1] // HOUR_MS, fill_value=0)
    shares = _compute_shares(selection, _double_usual(at), edges)
    return [
        (selection.key, start, end, count, mean if count else None, share, is_partial)
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
