"""Requests for every engine, and the correct answers, computed from the generated data."""

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

from benchmarks import fleet
from benchmarks.data import FleetFiles
from srvstat.contract.windows import Range, Window, find_window

SERVERS_PER_REQUEST = 5

Row = Sequence[Any]
"""A server's key, then its count, mean, median, peak, lowest, first and last."""


class Request(NamedTuple):
    """A comparison of five servers over one range, in every form that an engine needs."""

    range: Range
    window: Window
    keys: tuple[int, ...]
    """Keys of the servers in every file: 1, 2, 3, … in order of id."""
    ids: tuple[str, ...]
    body: bytes
    """The body of the HTTP request."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The statistics of one server; equality is exact, also for floats."""

    count: int
    mean: float | None
    median: float | None
    peak: int | None
    lowest: int | None
    growth: int | None
    percentage: float | None


class WrongAnswerError(Exception):
    """An engine gave a wrong answer; the message names the engine, range and server."""


def draw_requests(seed: str, files: FleetFiles, length: Range) -> list[Request]:
    """Draw requests about all servers of a fleet, each server in one; depends only on the seed."""
    keys = list(range(1, files.size + 1))
    random.Random(f"{seed} {length} {files.size}").shuffle(keys)
    fives = zip(*[iter(keys)] * SERVERS_PER_REQUEST, strict=False)
    return [build_request(five, length, files.as_of) for five in fives]


def build_request(keys: Sequence[int], range: Range, as_of: int) -> Request:
    """Return a request for the given servers of a fleet."""
    ids = tuple(fleet.build_server_id(key - 1) for key in keys)
    body = {"servers": [{"identifier": name, "by": "id"} for name in ids], "range": range}
    return Request(range, find_window(range, as_of), tuple(keys), ids, json.dumps(body).encode())


@cache
def compute_answers(request: Request) -> list[Answer]:
    """Compute the correct answers from the generated observations in plain Python."""
    return [_compute_server_answer(key, request.window) for key in request.keys]


def _compute_server_answer(key: int, window: Window) -> Answer:
    course = _load_course(key - 1)
    inside = (course.instants > window.start) & (course.instants <= window.end)
    return compute_answer(course.players[inside].tolist())


@lru_cache(maxsize=64)
def _load_course(number: int) -> fleet.Course:
    return fleet.generate_course(number)


def compute_answer(values: Sequence[int]) -> Answer:
    """Compute the correct answer for the values of a window in order of time."""
    if not values:
        return _NOTHING
    ranked, count = sorted(values), len(values)
    mean = sum(values) / count
    median = (ranked[(count - 1) // 2] + ranked[count // 2]) / 2
    return _convert_row((0, count, mean, median, ranked[-1], ranked[0], values[0], values[-1]))


def _convert_row(row: Row) -> Answer:
    _, count, mean, median, peak, lowest, first, last = row
    if not count:
        return _NOTHING
    if count == 1:
        return Answer(1, mean, median, peak, lowest, None, None)
    growth = int(last) - int(first)
    percentage = 100 * growth / int(first) if first else None
    return Answer(count, mean, median, peak, lowest, growth, percentage)


_NOTHING = Answer(0, None, None, None, None, None, None)


def read_rows(rows: Iterable[Row], request: Request) -> list[Answer]:
    """Read answers from the rows of a peer; a server without a row has no observations."""
    by_key = {int(row[0]): _convert_row(row) for row in rows}
    return [by_key.get(key, _NOTHING) for key in request.keys]


def read_body(body: bytes) -> list[Answer]:
    """Read answers from a response body of srvstat."""
    return [
        Answer(
            result["sampleCount"],
            result["averagePlayers"],
            result["medianPlayers"],
            result["peakPlayers"],
            result["lowestPlayers"],
            result["growth"]["players"],
            result["growth"]["percentage"],
        )
        for result in json.loads(body)["data"]
    ]


def check_answers(
    engine: str, request: Request, answers: Sequence[Answer], correct: list[Answer]
) -> None:
    """Compare an engine's answers with the correct ones.

    Raises WrongAnswerError.
    """
    for name, given, wanted in zip(request.ids, answers, correct, strict=True):
        if given != wanted:
            raise WrongAnswerError(
                f"{engine}, {request.range}, {name}: got {given}, expected {wanted}"
            )
