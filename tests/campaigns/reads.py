"""A fault at every read of an input: refused, short, with nothing to read yet, or cut."""

import gzip
import json
import os
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from campaigns.build_directory import MEMORY, START
from campaigns.campaign import Campaign, Result
from campaigns.faultfs import NEEDS, READ_FAULTS, ProcessResult, Fault, Kind, run_preloaded, run_with_fault

INPUT_REFUSED = 6

ROWS = 20_000
"""Rows of each input of the first round: more than one read takes at once."""

MAX_ROWS = 60_000
"""Rows of an input in the rounds after it, at most."""

HARMLESS = (Kind.READ_SHORT, Kind.READ_AGAIN)
"""Faults after which the rest can be read, and has to be."""


class Outcome(NamedTuple):
    """How a command ended, what it printed, and what stands at OUTPUT."""

    result: ProcessResult
    stdout: bytes
    output: bytes | None


class Inputs:
    """A directory of inputs, and the commands that read them."""

    def __init__(self, root: str, draw: random.Random, rows: int) -> None:
        self.directory = Path(tempfile.mkdtemp(dir=root))
        self._output = Path(tempfile.mkdtemp(dir=root), "out.db")
        csv, packed = (_draw_rows(draw, rows) for _ in range(2))
        records = (_encode_record(f"server-{number}") for number in range(max(rows // 100, 2)))
        request = {"servers": [{"by": "id", "identifier": f"server-{number}"} for number in (0, 1)]}
        self._write("servers.ndjson", "".join(records).encode())
        self._write("week.csv", csv)
        self._write("more.csv.gz", gzip.compress(packed))
        self._write("request.json", json.dumps(request).encode())
        self._write("batch.ndjson", (json.dumps(request) + "\n").encode() * (rows // 100))
        both = (
            "--observations",
            self._path("week.csv"),
            "--observations",
            self._path("more.csv.gz"),
        )
        build = ("snapshot", "build", str(self._output), "--servers", self._path("servers.ndjson"))
        snapshot = ("--snapshot", str(self._output.with_name("asked.db")))
        self.commands = {
            "build": (*build, *both, "--quiet"),
            "draft-servers": ("snapshot", "draft-servers", *both),
            "batch": ("compare", "--batch", self._path("batch.ndjson"), *snapshot),
            "request": ("compare", "--request", self._path("request.json"), *snapshot),
        }
        if self.run("build", Fault()).result.exit_code:
            raise RuntimeError("no build succeeds here")
        self._output.rename(snapshot[1])

    def run(self, name: str, fault: Fault) -> Outcome:
        """Run a command with a fault, where no earlier one has left anything."""
        self._output.unlink(missing_ok=True)
        ours = os.dup(1)
        with tempfile.TemporaryFile() as stdout:
            os.dup2(stdout.fileno(), 1)
            try:
                result = run_with_fault(fault, self.directory, self.commands[name])
            finally:
                os.dup2(ours, 1)
                os.close(ours)
            stdout.seek(0)
            output = self._output.read_bytes() if self._output.exists() else None
            return Outcome(result, stdout.read(), output)

    def left(self) -> list[str]:
        """Return the names of drafts that a build has left."""
        return [name for name in os.listdir(self._output.parent) if name.startswith(".")]

    def _path(self, name: str) -> str:
        return str(self.directory / name)

    def _write(self, name: str, data: bytes) -> None:
        (self.directory / name).write_bytes(data)


def run(seed: int, count: int) -> Result:
    """Try every read of every command in every way, then the same with other inputs."""
    code = "import sys; from campaigns import reads; reads.report(*map(int, sys.argv[1:]))"
    told = json.loads(run_preloaded(code, str(seed), str(count)))
    return Result(told["cases"], told["counts"], tuple(told["failures"]))


def report(seed: int, count: int) -> None:
    """Run the campaign, in a process with the library of faults, and print the result as JSON."""
    counts: Counter[str] = Counter()
    failures: list[str] = []
    draw = random.Random(seed)
    rows = ROWS
    while counts.total() < count:
        with tempfile.TemporaryDirectory(dir=MEMORY) as root:
            for name, kind, at, what, broken in _run_cases(Inputs(root, draw, rows)):
                counts[what] += 1
                failures += [f"{name} of {rows} rows, {kind.name} at {at}: {why}" for why in broken]
        rows = draw.randint(200, MAX_ROWS)
    print(json.dumps(asdict(Result(counts.total(), dict(counts), tuple(failures)))))


def _run_cases(inputs: Inputs) -> Iterator[tuple[str, Kind, int, str, list[str]]]:
    for name in inputs.commands:
        expected = inputs.run(name, Fault(Kind.READS))
        for kind in READ_FAULTS:
            for at in range(1, len(expected.result.calls) + 1):
                found = inputs.run(name, Fault(kind, at))
                broken = [
                    *_check_outcome(kind, found, expected),
                    *map("left: {}".format, inputs.left()),
                ]
                how = "refused" if found.result.exit_code else "as without a fault"
                yield name, kind, at, how, broken


def _check_outcome(kind: Kind, found: Outcome, expected: Outcome) -> Iterator[str]:
    """Find what no fault of a read may do: a result other than all of it or none."""
    exit_code, stderr, _ = found.result
    is_refused = exit_code == INPUT_REFUSED
    if not is_refused and (exit_code, stderr) != (0, expected.result.stderr):
        yield f"exit code {exit_code}: {stderr}"
    if is_refused and kind in HARMLESS:
        yield f"refused: {stderr}"
    if not is_refused and kind is Kind.READ_EIO:
        yield "an error that goes unnoticed"
    if not is_refused and found[1:] != expected[1:]:
        yield "another result than without a fault"
    if is_refused and (found.output is not None or not expected.stdout.startswith(found.stdout)):
        yield "a result of an input that was refused"
    if is_refused and not re.fullmatch("error: .+\n", stderr):
        yield f"not one line: {stderr}"


def _draw_rows(draw: random.Random, rows: int) -> bytes:
    servers = max(rows // 100, 2)
    lines = (
        f"server-{draw.randrange(servers)},{START + at * 1000},{draw.randrange(10**6)}\n"
        for at in range(rows)
    )
    return ("serverId,observedAt,players\n" + "".join(lines)).encode()


def _encode_record(name: str) -> str:
    record = {"id": name, "cfxId": f"x-{name}", "game": "game_a", "hostname": name * 50}
    return json.dumps(record) + "\n"


CAMPAIGN = Campaign(
    name="reads",
    promise="whatever read of an input fails, gives less or ends too early, a command does what it"
    " does without a fault, or exits 6 with one line and writes no file",
    run=run,
    short=100,
    long=1_000,
    needs=NEEDS,
)
