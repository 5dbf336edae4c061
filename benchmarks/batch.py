"""Answer many requests in one process: `srvstat compare --batch`."""

import os
import shutil
from contextlib import closing
from statistics import median

from benchmarks.data import FleetFiles
from benchmarks.measure import program, run, tell
from benchmarks.questions import UnequalError, mixed
from srvstat import operations
from srvstat.contract.requests import read_compare_request
from srvstat.snapshot.read import open_file

REQUESTS = 10_000
_COMPARED_EVERY = 50


def answers_a_second(files: FleetFiles, *, rounds: int) -> float:
    """Return how many answers a second one core gives, start and end of the process included.

    Raises UnequalError where a line is not what the same request is answered with elsewhere.
    """
    path = os.path.join(files.directory, "requests.ndjson")
    with closing(open_file(files.snapshot)) as snapshot:
        requests = mixed("batch", files, REQUESTS)
        with open(path, "wb") as file:
            file.writelines(request.body + b"\n" for request in requests)
        runs = []
        for number in range(1, rounds + 1):
            tell(f"answering {REQUESTS:,} requests in one process, round {number} of {rounds}")
            runs.append(run(_command(files, path)))
        lines = runs[0].output.splitlines()
        if len(lines) != REQUESTS:
            raise UnequalError(f"batch: {len(lines):,} answers to {REQUESTS:,} requests")
        for place in range(0, REQUESTS, _COMPARED_EVERY):
            asked = read_compare_request(requests[place].body)
            if lines[place] != operations.compare(snapshot, asked).to_json():
                raise UnequalError(f"batch, line {place + 1}: not what compare answers")
    return REQUESTS / median(ran.seconds for ran in runs)


def _command(files: FleetFiles, path: str) -> list[str]:
    line = [program("srvstat"), "compare", "--batch", path, "--snapshot", files.snapshot]
    if taskset := shutil.which("taskset"):
        return [taskset, "--cpu-list", str(min(os.sched_getaffinity(0))), *line]
    return line
