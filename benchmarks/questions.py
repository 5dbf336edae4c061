"""What is asked of every engine, and what must come back, computed from the generated data."""

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import cycle
from typing import Any, NamedTuple

from benchmarks import fleet
from benchmarks.data import FleetFiles
from srvstat.contract.ranges import DAYS, Range, Window, find_window
from srvstat.contract.requests import ServerReference

RANGES: tuple[Range, ...] = tuple(DAYS)
SERVERS_A_REQUEST = 5

Row = Sequence[Any]
"""A server's key, then its count, mean, median, peak, lowest, first and last."""

COLUMNS = ("server", "count", "mean", "median", "peak", "lowest", "first", "last")
"""The same by name, as a query gives them."""


class Request(NamedTuple):
    """Five servers of a fleet over one range, in each form that an engine may want."""

    range: Range
    window: Window
    keys: tuple[int, ...]
    """The servers' keys in every file: 1, 2, 3 … in the order of id."""
    ids: tuple[str, ...]
    references: tuple[ServerReference, ...]
    """The same, as srvstat has them once a request is judged."""
    body: bytes
    """The request as a customer sends it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The figures of one server; equality is exact, of floats too."""

    count: int
    mean: float | None
    median: float | None
    peak: int | None
    lowest: int | None
    growth: int | None
    percentage: float | None


class UnequalError(Exception):
    """An engine answered otherwise than the data; its text names the place."""


def drawn(seed: str, files: FleetFiles, range: Range, number: int) -> list[Request]:
    """Return requests for random servers of a fleet; the same seed draws the same ones."""
    sets = _sets(f"{seed} {range}", files.size, number)
    return [request_of(keys, range, files.as_of) for keys in sets]


def mixed(seed: str, files: FleetFiles, number: int) -> list[Request]:
    """Return requests for random servers of a fleet, over each of the ranges in turn."""
    sets = zip(_sets(seed, files.size, number), cycle(RANGES), strict=False)
    return [request_of(keys, range, files.as_of) for keys, range in sets]


def request_of(keys: Sequence[int], range: Range, as_of: int) -> Request:
    """Return the request for some servers of a fleet."""
    ids = tuple(fleet.server_id(key - 1) for key in keys)
    body = {"servers": [{"identifier": name, "by": "id"} for name in ids], "range": range}
    references = tuple(ServerReference(identifier=name, by="id") for name in ids)
    return Request(
        range, find_window(range, as_of), tuple(keys), ids, references, json.dumps(body).encode()
    )


def _sets(seed: str, size: int, number: int) -> Iterator[list[int]]:
    source = random.Random(f"{seed} {size}")
    for _ in range(number):
        yield source.sample(range(1, size + 1), SERVERS_A_REQUEST)


@cache
def expected(request: Request) -> list[Answer]:
    """Return the right answers, from the generated observations and Python's own arithmetic."""
    return [_expected_of(key, request.window) for key in request.keys]


def _expected_of(key: int, window: Window) -> Answer:
    course = _course(key - 1)
    inside = (course.instants > window.start) & (course.instants <= window.end)
    return answer_to(course.players[inside].tolist())


@lru_cache(maxsize=64)
def _course(number: int) -> fleet.Course:
    return fleet.course_of(number)


def answer_to(values: Sequence[int]) -> Answer:
    """Return the right answer for the values of a window in the order of their instants."""
    if not values:
        return _NOTHING
    ranked, count = sorted(values), len(values)
    mean = sum(values) / count
    median = (ranked[(count - 1) // 2] + ranked[count // 2]) / 2
    return _answer_of_row((0, count, mean, median, ranked[-1], ranked[0], values[0], values[-1]))


def _answer_of_row(row: Row) -> Answer:
    _, count, mean, median, peak, lowest, first, last = row
    if not count:
        return _NOTHING
    if count == 1:
        return Answer(1, mean, median, peak, lowest, None, None)
    growth = int(last) - int(first)
    percentage = 100 * growth / int(first) if first else None
    return Answer(count, mean, median, peak, lowest, growth, percentage)


_NOTHING = Answer(0, None, None, None, None, None, None)


def answers_of_rows(rows: Iterable[Row], request: Request) -> list[Answer]:
    """Return the answers in the rows of a peer; a server without a row had no observation."""
    by_key = {int(row[0]): _answer_of_row(row) for row in rows}
    return [by_key.get(key, _NOTHING) for key in request.keys]


def answers_of_objects(text: bytes, request: Request) -> list[Answer]:
    """Return the answers in the JSON array of objects that a peer has written."""
    objects = json.loads(text)
    return answers_of_rows([[one[name] for name in COLUMNS] for one in objects], request)


def answers_of_body(body: bytes, _request: Request | None = None) -> list[Answer]:
    """Return the answers in the bytes that srvstat answers with."""
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


def check(engine: str, request: Request, answers: Sequence[Answer], right: list[Answer]) -> None:
    """Compare an engine's answers with the right ones.

    Raises UnequalError.
    """
    for name, given, wanted in zip(request.ids, answers, right, strict=True):
        if given != wanted:
            raise UnequalError(f"{engine}, {request.range}, {name}: {given}, and right is {wanted}")
