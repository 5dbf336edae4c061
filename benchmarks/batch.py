"""Time many requests in one process: `srvstat compare --batch`."""

import os
import shutil
import time
from collections.abc import Sequence
from contextlib import closing
from statistics import median
from typing import NamedTuple

from benchmarks.data import FleetFiles
from benchmarks.measure import find_program, print_progress, run
from benchmarks.questions import WrongAnswerError, draw_mixed_requests
from srvstat import operations
from srvstat.contract.requests import parse_compare_request
from srvstat.snapshot.read.reader import open_file

REQUESTS = 10_000


class Batch(NamedTuple):
    """The rate of a batch, and its ratio to the rate of the same requests in this process."""

    answers_per_second: float
    ratio_to_in_process: float


def time_batch(files: FleetFiles, *, rounds: int) -> Batch:
    """Time a batch on one core, with start and end of the process, and the same requests here.

    Raises WrongAnswerError if an answer differs from the one in this process.
    """
    path = os.path.join(files.directory, "requests.ndjson")
    bodies = [request.body for request in draw_mixed_requests("batch", files, REQUESTS)]
    with open(path, "wb") as file:
        file.writelines(body + b"\n" for body in bodies)
    seconds, in_process = [], []
    for number in range(1, rounds + 1):
        print_progress(
            f"answering {REQUESTS:,} requests in one process, round {number} of {rounds}"
        )
        ran = run(_build_command(files, path))
        answers, taken = _answer_in_process(files, bodies)
        if ran.output.splitlines() != answers:
            raise WrongAnswerError("batch: the answers differ from those in process")
        seconds.append(ran.seconds)
        in_process.append(taken)
    return Batch(REQUESTS / median(seconds), median(in_process) / median(seconds))


def _answer_in_process(files: FleetFiles, bodies: Sequence[bytes]) -> tuple[list[bytes], float]:
    """Answer requests in this process; return the answers and the seconds."""
    with closing(open_file(files.snapshot)) as snapshot:
        started = time.perf_counter()
        answers = [
            operations.compare(snapshot, parse_compare_request(body)).to_json() for body in bodies
        ]
        return answers, time.perf_counter() - started


def _build_command(files: FleetFiles, path: str) -> list[str]:
    line = [find_program("srvstat"), "compare", "--batch", path, "--snapshot", files.snapshot]
    if taskset := shutil.which("taskset"):
        return [taskset, "--cpu-list", str(min(os.sched_getaffinity(0))), *line]
    return line
