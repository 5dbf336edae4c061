"""Measure a real server with large counts: the hourly peaks of Hypixel from 2017 to 2026.

The data (github.com/ehan03/Hypixel-Player-Counts, CC0) is not part of the repository; without
`shared/data` next to the repository this part is skipped.
"""

import csv
import gzip
import json
import os
import random
from bisect import bisect_right
from contextlib import closing
from datetime import UTC, datetime

from benchmarks.measure import find_program, print_progress, run
from benchmarks.questions import RANGES, WrongAnswerError, compute_answer, read_body
from srvstat import operations
from srvstat.contract.ranges import find_window
from srvstat.contract.requests import build_compare_request
from srvstat.snapshot.read.reader import open_file

_SOURCE = ("shared", "data", "hypixel-hourly", "player_counts.csv.gz")
_INSTANTS = 50
"""Number of random instants; each is the as of of one query per range."""


def measure_bytes_per_observation(repository: str, directory: str) -> float | None:
    """Build a snapshot of Hypixel and return its bytes per observation; None without the data.

    Checks its answers over every range, as of the last observation and of random hours.

    Raises WrongAnswerError.
    """
    source = os.path.join(os.path.dirname(repository), *_SOURCE)
    if not os.path.exists(source):
        return None
    print_progress("building and checking the snapshot of Hypixel")
    observations = _read(source)
    snapshot = _build(observations, directory)
    _check(snapshot, observations)
    return os.path.getsize(snapshot) / len(observations)


def _read(source: str) -> list[tuple[int, int]]:
    """Return (instant, players) of every hour with a count, in order of time."""
    with gzip.open(source, "rt", encoding="ascii", newline="") as file:
        return sorted(
            (_parse_instant(row["Timestamp"]), int(row["Peak Player Count"]))
            for row in csv.DictReader(file)
            if row["Peak Player Count"]
        )


def _parse_instant(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000


def _build(observations: list[tuple[int, int]], directory: str) -> str:
    names = ("hypixel.ndjson", "hypixel.csv", "hypixel.db")
    servers, rows, snapshot = (os.path.join(directory, name) for name in names)
    record = {"id": "hypixel", "cfxId": "hypixel", "game": "game_a", "hostname": "Hypixel"}
    with open(servers, "w", encoding="ascii") as file:
        json.dump(record, file)
    with open(rows, "w", encoding="ascii") as file:
        file.write("serverId,observedAt,players\n")
        file.writelines(f"hypixel,{at},{players}\n" for at, players in observations)
    build = [find_program("srvstat"), "snapshot", "build", snapshot, "--overwrite", "--quiet"]
    run([*build, "--servers", servers, "--observations", rows])
    return snapshot


def _check(path: str, observations: list[tuple[int, int]]) -> None:
    instants, values = map(list, zip(*observations, strict=True))
    hours = random.Random("hypixel").sample(instants, _INSTANTS)
    with closing(open_file(path)) as snapshot:
        for at in (instants[-1], *hours):
            for range in RANGES:
                # A comparison needs two references, so use both identifiers of the server.
                request = build_compare_request(["id:hypixel", "cfxId:hypixel"], range=range)
                body = operations.compare(snapshot, request, at=at).to_json()
                start, end = (bisect_right(instants, edge) for edge in find_window(range, at))
                correct = compute_answer(values[start:end])
                for answer in read_body(body):
                    if answer != correct:
                        raise WrongAnswerError(
                            f"Hypixel, {range}, {at}: got {answer}, expected {correct}"
                        )
