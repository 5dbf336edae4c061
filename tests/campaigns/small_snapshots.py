"""Build small snapshots that together have every feature, and ask them every question."""

import os
import random
import tempfile
from collections.abc import Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

from srvstat.cli.app import main
from srvstat.snapshot.write.build import build
from srvstat.snapshot.write.intake import Inputs
from srvstat.sources.source import Source
from support.process import replace_descriptor
from support.records import AS_OF, DAY, csv, ndjson, server

HOUR = DAY // 24
MIDNIGHT = AS_OF // DAY * DAY

PUBLISHED = ("away", "busy", "daily", "once", "silent", "uneven", "wide")
"""Servers in every small snapshot. The cfxId of `once` is the id of `busy`."""

HIDDEN = "hidden"
"""A server that is not publishable: no snapshot may contain it."""

_NOT_ASCII = 'Ünïcode, 夜の街 🏙 \t "quoted" \\ \u2028 \u202e'
_LONG = "Ein Haus am Fluß; 川沿いの家. " * 500
"""Longer than a page, so that SQLite stores it on overflow pages."""

_SERVERS = (
    server("away", offline=True, players={"max": 64}),
    server("busy", hostname=_NOT_ASCII, players={"current": 411, "max": 600}),
    server("daily", players={"current": 3, "max": 900}),
    server("once", cfxId="busy", game="game_b", updatedAt="2026-02-27T01:02:03.004Z"),
    server("silent", players={"current": None, "max": 9}),
    server(
        "uneven",
        game="game_b",
        hostname="<b>uneven</b>",
        projectName=_NOT_ASCII,
        projectDescription=_LONG,
        region="øst",
        players={"current": 2**53 - 1, "max": 2**53 - 1},
        tags=[_NOT_ASCII, "", "zwei"],
        flags=["🏴", "de-AT"],
        chatUrl="https://chat.example/ü",
        iconUrl="https://icons.example/1.png",
        offline=False,
        firstSeenAt=0,
        updatedAt="2026-03-01T12:00:00.000Z",
    ),
    server("wide", players={"current": 0, "max": 2**40}),
    server(HIDDEN, hostname="a secret", publishable=False),
)


def build_small_snapshot(directory: Path, seed: int) -> Path:
    """Create a directory, build the snapshot of a seed in it, and return its path.

    Snapshots of different seeds differ only in the numbers of players; their pages have the same
    layout.
    """
    directory.mkdir()
    (directory / "servers.ndjson").write_bytes(ndjson(_SERVERS))
    rows = [*_draw_observations(random.Random(seed))]
    first, second = rows[:-100], rows[-150:]  # 50 are in both
    (directory / "first.csv").write_bytes(csv([*first, *_make_bad_rows(first[0])]))
    (directory / "second.ndjson").write_bytes(ndjson(map(_to_record, second)))
    path = directory / "small.db"
    servers = Source(str(directory / "servers.ndjson"), "ndjson")
    observations = [
        Source(str(directory / "first.csv"), "csv"),
        Source(str(directory / "second.ndjson"), "ndjson"),
    ]
    build(str(path), Inputs(servers, observations, as_of=AS_OF))
    return path


_Row = tuple[str, int, int]

_VALUES_PER_DAY = 8
"""Number of values per day."""


def _draw_observations(rng: random.Random) -> Iterator[_Row]:
    """Yield the observations of every server, with gaps of days and hours."""
    # The seed only changes the order of the values, so that all columns keep their lengths.
    times = [*_list_times()]
    yield from zip(
        repeat("busy"), times, _draw_shuffled(rng, range(5, 405), len(times)), strict=False
    )
    for day in (1, 2, 40):
        for hour in range(0, 24, 3):
            yield "wide", MIDNIGHT - day * DAY + hour * HOUR, rng.randrange(2**33)
    for day in range(1, 71):
        yield (
            "daily",
            MIDNIGHT - day * DAY + 5 * HOUR + day * day % 97 * 60_000,
            _VALUES_PER_DAY * day + rng.randrange(_VALUES_PER_DAY),
        )
    for number, players in enumerate(_draw_shuffled(rng, range(12), 40)):
        yield "uneven", AS_OF - (number * number * 7_919_003) % (5 * DAY), players
    yield "away", AS_OF - 3 * DAY, 0
    yield "away", AS_OF - 3 * DAY + 1, rng.randrange(1, 200)
    yield "once", AS_OF - 12 * HOUR, rng.randrange(100)
    yield "busy", AS_OF - 7, 4
    yield "busy", AS_OF - 5, 605
    yield HIDDEN, AS_OF, 7


def _draw_shuffled(rng: random.Random, values: range, count: int) -> list[int]:
    """Return `count` values in random order, each equally often."""
    found = [values[number % len(values)] for number in range(count)]
    rng.shuffle(found)
    return found


def _list_times() -> Iterator[int]:
    """Yield so many times that their observations take two blocks."""
    for day in (0, 1, 2, 3, 4, 7, 8, 9, 10, 13, 14, 15, 20, 30, 60, 200):
        midnight = MIDNIGHT - day * DAY
        for at in range(midnight, min(midnight + DAY, AS_OF + 1), HOUR // 6):
            if at % (6 * HOUR) >= HOUR:
                yield at


def _make_bad_rows(first: _Row) -> Iterator[tuple[str, int | str, int | str]]:
    """Yield a repeated and a conflicting row, rejects, and rows to skip."""
    name, at, players = first
    yield first
    yield name, at, players + 1
    yield name, at, "many"
    yield name, "yesterday", 5
    yield "unknown", at, 5
    yield name, AS_OF + 1, 5


def _to_record(row: _Row) -> dict[str, Any]:
    return dict(zip(("serverId", "observedAt", "players"), row, strict=True))


_REFUSED = 3
_WINDOW = ("--range", "36h", "--json", "--snapshot")

# Every row is read by some question, and few rows by two.
QUESTIONS: tuple[Sequence[str], ...] = (
    *(["get", name, "--json", "--snapshot"] for name in ("uneven", "cfxId:x-silent", "once")),
    *(["get", name, "--json", "--snapshot"] for name in ("unknown", "hidden", "x-busy")),
    ["compare", "cfxId:x-busy", "cfxId:busy", "daily", "--range=1y", "--json", "--snapshot"],
    ["compare", "daily", "away", "--at", "2026-01-28T00:00:00Z", "--json", "--snapshot"],
    ["compare", "busy", "wide", "uneven", "away", "--range=90d", "--table", "--snapshot"],
    [
        "stats",
        "busy",
        "daily",
        "--range=40d",
        "--quantile=0.95",
        "--above=9",
        "--json",
        "--snapshot",
    ],
    ["top", "--rank-by", "growth", *_WINDOW],
    ["growth", "busy", "wide", "--tz=Asia/Tokyo", *_WINDOW],
    ["peak-hours", "uneven", "--tz=Asia/Tokyo", *_WINDOW],
    ["history", "daily", "uneven", *_WINDOW],
    ["integrity", "busy", *_WINDOW],
    ["today", "--tz=Asia/Tokyo", "--snapshot"],
    ["servers", "--sort=coverage", "--limit=3", "--json", "--snapshot"],
    ["snapshot", "info", "--json"],
)
"""Commands about the small snapshot, each without its last argument: the file."""


class Answer(NamedTuple):
    """What a command ended with."""

    exit_code: int
    stdout: bytes
    stderr: str


def ask_everything(path: str) -> list[Answer]:
    """Ask a file every question."""
    return [_ask([*question, path]) for question in QUESTIONS]


def _ask(arguments: list[str]) -> Answer:
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        with replace_descriptor(1, stdout.fileno()), replace_descriptor(2, stderr.fileno()):
            exit_code = main(arguments)
        stdout.seek(0)
        stderr.seek(0)
        return Answer(exit_code, stdout.read(), os.fsdecode(stderr.read()))


def is_refusal(answer: Answer, path: str) -> bool:
    """Return whether an answer is one line that says why the file can't be used."""
    *lines, rest = answer.stderr.split("\n")
    is_one_line = len(lines) == 1 and not rest and lines[0].startswith(f"error: {path}: ")
    return answer.exit_code == _REFUSED and is_one_line


def find_wrong_answers(found: Sequence[Answer], truth: Sequence[Answer], path: str) -> list[str]:
    """Return the questions with an answer that is neither true nor a refusal.

    A refused history may have printed the rows before the damage.
    """
    return [
        f"{' '.join(question)}: {answer!r:.300}"
        for question, answer, right in zip(QUESTIONS, found, truth, strict=True)
        if answer[:2] != right[:2]
        and not (is_refusal(answer, path) and right.stdout.startswith(answer.stdout))
    ]
