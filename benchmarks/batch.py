"""Answer many requests in one process: `srvstat compare --batch`."""

import os
import shutil
import time
from collections.abc import Sequence
from contextlib import closing
from statistics import median
from typing import NamedTuple

from benchmarks.data import FleetFiles
from benchmarks.measure import program, run, tell
from benchmarks.questions import UnequalError, mixed
from srvstat import operations
from srvstat.contract.requests import parse_compare_request
from srvstat.snapshot.read.reader import open_file

REQUESTS = 10_000


class Batch(NamedTuple):
    """How fast a batch is: alone, and over the same requests answered in this process."""

    answers_a_second: float
    over_in_process: float


def time_batch(files: FleetFiles, *, rounds: int) -> Batch:
    """Time a batch on one core, start and end of the process included, and the same in process.

    Raises UnequalError where a line is not what the same request is answered with in process.
    """
    path = os.path.join(files.directory, "requests.ndjson")
    bodies = [request.body for request in mixed("batch", files, REQUESTS)]
    with open(path, "wb") as file:
        file.writelines(body + b"\n" for body in bodies)
    seconds, in_process = [], []
    for number in range(1, rounds + 1):
        tell(f"answering {REQUESTS:,} requests in one process, round {number} of {rounds}")
        ran = run(_command(files, path))
        answers, taken = _answer_here(files, bodies)
        if ran.output.splitlines() != answers:
            raise UnequalError("batch: not the answers that the same requests have in process")
        seconds.append(ran.seconds)
        in_process.append(taken)
    return Batch(REQUESTS / median(seconds), median(in_process) / median(seconds))


def _answer_here(files: FleetFiles, bodies: Sequence[bytes]) -> tuple[list[bytes], float]:
    """Answer some requests in this process; return the answers and the seconds they took."""
    with closing(open_file(files.snapshot)) as snapshot:
        started = time.perf_counter()
        answers = [
            operations.compare(snapshot, parse_compare_request(body)).to_json() for body in bodies
        ]
        return answers, time.perf_counter() - started


def _command(files: FleetFiles, path: str) -> list[str]:
    line = [program("srvstat"), "compare", "--batch", path, "--snapshot", files.snapshot]
    if taskset := shutil.which("taskset"):
        return [taskset, "--cpu-list", str(min(os.sched_getaffinity(0))), *line]
    return line
