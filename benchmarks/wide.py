"""Time servers with widely spread values: 600,000 observations of 0 to 100,000 players each."""

import os
import time
from contextlib import closing
from itertools import repeat
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import find_program, print_progress, run
from benchmarks.questions import WrongAnswerError
from srvstat import operations
from srvstat.contract.ranges import DAYS, Range
from srvstat.contract.requests import build_compare_request
from srvstat.snapshot.read.reader import SnapshotFile, open_file

_SERVERS, _OBSERVATIONS, _MAX_PLAYERS = 5, 600_000, 100_000
_AS_OF, _MINUTE = 1_772_366_400_000, 60_000
_CALLS = 100
_IDS = [f"w{key}" for key in range(_SERVERS)]


class Wide(NamedTuple):
    """Seconds from request to bytes for five uncached servers, by range."""

    day: float
    year: float


def time_wide_servers(directory: str) -> Wide:
    """Build the servers' snapshot, compare its answers with numpy's, and time them.

    Raises WrongAnswerError.
    """
    print_progress("timing five servers with widely spread values")
    players = np.random.default_rng(1).integers(0, _MAX_PLAYERS + 1, (_SERVERS, _OBSERVATIONS))
    path = _build(directory, players)
    with closing(open_file(path)) as snapshot:
        for range in DAYS:
            _check(snapshot, range, players)
        return Wide(_time(snapshot, "24h"), _time(snapshot, "1y"))


def _build(directory: str, players: NDArray[np.int64]) -> str:
    servers, observations, path = (
        os.path.join(directory, f"wide.{ending}") for ending in ("ndjson", "csv", "db")
    )
    with open(servers, "w", encoding="ascii") as file:
        for name in _IDS:
            fields = f'"id":"{name}","cfxId":"{name}","game":"game_a","hostname":"{name}"'
            file.write(f"{{{fields}}}\n")
    with open(observations, "w", encoding="ascii") as file:
        file.write("serverId,observedAt,players\n")
        for name, of_server in zip(_IDS, players, strict=True):
            # Newest first: one a minute, back from the as of.
            file.writelines(
                f"{name},{_AS_OF - at * _MINUTE},{count}\n"
                for at, count in enumerate(of_server.tolist())
            )
    arguments = ["--servers", servers, "--observations", observations, "--overwrite", "--quiet"]
    run([find_program("srvstat"), "snapshot", "build", path, *arguments])
    return path


def _check(snapshot: SnapshotFile, range: Range, players: NDArray[np.int64]) -> None:
    request = build_compare_request(_IDS, range=range)
    seen = min(DAYS[range] * 1_440, _OBSERVATIONS)
    for result, of_server in zip(
        operations.compare(snapshot, request).data, players[:, :seen], strict=True
    ):
        found = (result.averagePlayers, result.medianPlayers, result.peakPlayers)
        expected = (
            int(of_server.sum()) / seen,
            float(np.median(of_server)),
            int(of_server.max()),
        )
        least = int(of_server.min())
        if found != expected or (result.lowestPlayers, result.sampleCount) != (least, seen):
            raise WrongAnswerError(f"wide values, {range}: the statistics differ from numpy's")


def _time(snapshot: SnapshotFile, range: Range) -> float:
    """Return the median seconds of an answer about uncached servers."""
    request = build_compare_request(_IDS, range=range)
    seconds = []
    for _ in repeat(None, _CALLS):
        snapshot.forget_servers()
        started = time.perf_counter()
        operations.compare(snapshot, request).to_json()
        seconds.append(time.perf_counter() - started)
    return median(seconds)
