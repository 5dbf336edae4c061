"""Refuse threads, processes or a piece of memory to a command that writes files."""

import ctypes
import json
import random
import re
import signal
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from campaigns.build_directory import BuildDirectory, UpdateDirectory
from campaigns.campaign import MEMORY, Campaign, Result
from campaigns.faults import NEEDS, Fault, Kind, run_preloaded, run_with_fault
from srvstat.contract.errors import THREAD_LIMIT

ENDS = {0, 1, 3, 4, 6, 7}
"""Exit codes."""
_SIGNALS = {-signal.SIGABRT, -signal.SIGSEGV}
"""How a library in Rust or C may end a process without memory."""

_SAYS_A_BUG = re.compile("a bug in srvstat|Traceback")


class QueryDirectory(BuildDirectory):
    """A directory for builds of rows that DuckDB reads."""

    def build_command(self, *options: str, into: Path | None = None) -> list[str]:
        """Return the arguments of a build with more options, into this or another directory."""
        command = super().build_command(*options, into=into)
        at = command.index("--observations")
        command[at : at + 2] = ["--query", f"FROM '{command[at + 1]}'"]
        return command


class FleetDirectory(BuildDirectory):
    """A directory for a folder of shards, which other processes build."""

    output = "out"

    def build_last_command(self) -> list[str]:
        """Return the arguments of a command in an empty directory."""
        self.reset(is_old=False)
        return self.build_command()

    def build_command(self, *options: str, into: Path | None = None) -> list[str]:
        """Return the arguments of a job that writes shards."""
        output = str((into or self.path) / self.output)
        servers, observations = self._sources / "servers.ndjson", self._sources / "observations.csv"
        fleet = ["fleet", str(observations), "--servers", str(servers), "--quiet", *options]
        return [*fleet, "--max-rejected", "100%", "--snapshots", output, "--shards", "2"]


COMMANDS: Sequence[tuple[type[BuildDirectory], Kind]] = (
    (BuildDirectory, Kind.NO_MEMORY),
    (UpdateDirectory, Kind.NO_MEMORY),
    (QueryDirectory, Kind.NO_THREAD),
    (FleetDirectory, Kind.NO_THREAD),
    (FleetDirectory, Kind.NO_PROCESS),
)


def run(seed: int, count: int) -> Result:
    """Try some refusals of each kind."""
    code = "import sys; from campaigns import limits; limits.report(*sys.argv[1:])"
    result = json.loads(run_preloaded(code, str(seed), str(count)))
    return Result(result["cases"], result["counts"], tuple(result["failures"]))


def report(seed: str, count: str) -> None:
    """Run the campaign in a process with the library preloaded, and print the result as JSON."""
    counts: Counter[str] = Counter()
    failures: list[str] = []
    rng, each = random.Random(int(seed)), -(-int(count) // len(COMMANDS))
    with tempfile.TemporaryDirectory(dir=MEMORY) as root:
        for make, kind in COMMANDS:
            part = Path(root, f"{make.__name__}-{kind.name}")
            part.mkdir()
            directory = make(str(part), 300)
            calls = _count_calls(kind, directory)
            for _ in range(each):
                fault = Fault(kind, rng.randrange(1, calls + 1))
                outcome, problems = _run_case(directory, fault)
                counts[outcome] += 1
                failures += [f"{make.__name__} {fault}: {why}" for why in problems]
    print(json.dumps(asdict(Result(counts.total(), dict(counts), tuple(failures)))))


def _prepare(directory: BuildDirectory) -> list[str]:
    """Put the files before the command into the directory, and return its arguments."""
    command = directory.build_last_command()
    directory.reset(is_old=not isinstance(directory, FleetDirectory))
    return command


def _count_calls(kind: Kind, directory: BuildDirectory) -> int:
    """Return how many calls of a kind a command makes that is not refused any."""
    command = _prepare(directory)
    with tempfile.NamedTemporaryFile() as counted:

        def write_count() -> None:
            Path(counted.name).write_text(str(ctypes.CDLL(None).faultfs_count()))

        run_with_fault(Fault(kind, 0), directory.path, command, write_count)
        return int(counted.read())


def _run_case(directory: BuildDirectory, fault: Fault) -> tuple[str, list[str]]:
    command = _prepare(directory)
    before = directory.read_files()
    result = run_with_fault(fault, directory.path, command)
    after = directory.read_files()
    problems = [*directory.check_files(before)]
    is_memory = fault.kind is Kind.NO_MEMORY
    if result.exit_code not in (ENDS | _SIGNALS if is_memory else ENDS):
        problems.append(f"exit code {result.exit_code}: {result.stderr}")
    if _SAYS_A_BUG.search(result.stderr):
        problems.append(result.stderr)
    if result.exit_code and not is_memory and THREAD_LIMIT not in result.stderr:
        problems.append(f"does not name the limit: {result.stderr}")
    if result.exit_code == 0 and after != directory.new:
        problems.append("exit code 0 without the new files")
    how = "killed" if result.exit_code < 0 else "refused" if result.exit_code else "done"
    return f"{fault.kind.name.lower().replace('_', ' ')}: {how}", problems


CAMPAIGN = Campaign(
    "limits",
    "without threads, processes or memory, all files are either the old or the new ones, complete;"
    " exit code 0 means the new ones, and no message calls the limit a bug",
    run,
    short=15,
    long=600,
    needs=NEEDS,
)
