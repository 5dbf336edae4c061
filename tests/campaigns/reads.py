"""Inject a fault at every read of an input: an error, a short read, EAGAIN or an early end."""

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
from campaigns.faultfs import (
    NEEDS,
    READ_FAULTS,
    Fault,
    Kind,
    ProcessResult,
    run_preloaded,
    run_with_fault,
)
from support.descriptors import replace_descriptor

INPUT_REFUSED = 6

ROWS = 2_200
"""Rows of each input in the first round: more than fit in one read."""

MAX_ROWS = 60_000
"""Maximum number of rows of an input in later rounds."""

HARMLESS = (Kind.READ_SHORT, Kind.READ_AGAIN)
"""Faults after which a command must read the rest."""


class Outcome(NamedTuple):
    """The result of a command, its stdout, and the content of OUTPUT."""

    process: ProcessResult
    stdout: bytes
    output: bytes | None


class Inputs:
    """A directory of inputs and the commands that read them."""

    def __init__(self, root: str, rng: random.Random, rows: int) -> None:
        self.directory = Path(tempfile.mkdtemp(dir=root))
        self._output = Path(tempfile.mkdtemp(dir=root), "out.db")
        csv, packed = (_draw_rows(rng, rows) for _ in range(2))
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
            "draft-servers": ("snapshot", "draft-servers", "--game=game_a", *both),
            "batch": ("compare", "--batch", self._path("batch.ndjson"), *snapshot),
            "request": ("compare", "--request", self._path("request.json"), *snapshot),
        }
        if self.run("build", Fault()).process.exit_code:
            raise RuntimeError("the build without a fault failed")
        self._output.rename(snapshot[1])

    def run(self, name: str, fault: Fault) -> Outcome:
        """Run a command with a fault; removes the output of earlier commands first."""
        self._output.unlink(missing_ok=True)
        with tempfile.TemporaryFile() as stdout:
            with replace_descriptor(1, stdout.fileno()):
                result = run_with_fault(fault, self.directory, self.commands[name])
            stdout.seek(0)
            output = self._output.read_bytes() if self._output.exists() else None
            return Outcome(result, stdout.read(), output)

    def list_leftovers(self) -> list[str]:
        """Return the names of drafts that a build did not remove."""
        return [name for name in os.listdir(self._output.parent) if name.startswith(".")]

    def _path(self, name: str) -> str:
        return str(self.directory / name)

    def _write(self, name: str, data: bytes) -> None:
        (self.directory / name).write_bytes(data)


def run(seed: int, count: int) -> Result:
    """Try every fault at every read of every command, then repeat with other inputs."""
    code = "import sys; from campaigns import reads; reads.report(*map(int, sys.argv[1:]))"
    result = json.loads(run_preloaded(code, str(seed), str(count)))
    return Result(result["cases"], result["counts"], tuple(result["failures"]))


def report(seed: int, count: int) -> None:
    """Run the campaign in a process with the library preloaded, and print the result as JSON."""
    counts: Counter[str] = Counter()
    failures: list[str] = []
    rng = random.Random(seed)
    rows = ROWS
    while counts.total() < count:
        with tempfile.TemporaryDirectory(dir=MEMORY) as root:
            for name, kind, at, what, problems in _run_cases(Inputs(root, rng, rows)):
                counts[what] += 1
                failures += [
                    f"{name} of {rows} rows, {kind.name} at {at}: {why}" for why in problems
                ]
        rows = rng.randint(200, MAX_ROWS)
    print(json.dumps(asdict(Result(counts.total(), dict(counts), tuple(failures)))))


def _run_cases(inputs: Inputs) -> Iterator[tuple[str, Kind, int, str, list[str]]]:
    for name in inputs.commands:
        expected = inputs.run(name, Fault(Kind.READS))
        for kind in READ_FAULTS:
            for at in range(1, len(expected.process.calls) + 1):
                found = inputs.run(name, Fault(kind, at))
                problems = [
                    *_check_outcome(kind, found, expected),
                    *map("left: {}".format, inputs.list_leftovers()),
                ]
                how = "refused" if found.process.exit_code else "as without a fault"
                yield name, kind, at, how, problems


def _check_outcome(kind: Kind, found: Outcome, expected: Outcome) -> Iterator[str]:
    """Yield effects that no fault may have: any result other than the complete one or none."""
    exit_code, stderr, _ = found.process
    is_refused = exit_code == INPUT_REFUSED
    if not is_refused and (exit_code, stderr) != (0, expected.process.stderr):
        yield f"exit code {exit_code}: {stderr}"
    if is_refused and kind in HARMLESS:
        yield f"refused: {stderr}"
    if not is_refused and kind is Kind.READ_EIO:
        yield "a read error was ignored"
    if not is_refused and found[1:] != expected[1:]:
        yield "the result differs from that without a fault"
    if is_refused and (found.output is not None or not expected.stdout.startswith(found.stdout)):
        yield "the input was refused, but there is output"
    if is_refused and not re.fullmatch("error: .+\n", stderr):
        yield f"not one line: {stderr}"


def _draw_rows(rng: random.Random, rows: int) -> bytes:
    servers = max(rows // 100, 2)
    lines = (
        f"server-{rng.randrange(servers)},{START + at * 1000},{rng.randrange(10**6)}\n"
        for at in range(rows)
    )
    return ("serverId,observedAt,players\n" + "".join(lines)).encode()


def _encode_record(name: str) -> str:
    record = {"id": name, "cfxId": f"x-{name}", "game": "game_a", "hostname": name * 50}
    return json.dumps(record) + "\n"


CAMPAIGN = Campaign(
    name="reads",
    promise="if any read of an input fails, is short or ends early, a command either works as"
    " without the fault, or exits with 6 and one line, and writes no file",
    run=run,
    short=8,
    long=1_000,
    needs=NEEDS,
)
