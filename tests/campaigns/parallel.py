"""Several builds to one path at once, and readers that open and ask it meanwhile."""

import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import srvstat
from campaigns.campaign import Campaign, Result
from srvstat.cli.main import main

READERS = 2
MAX_BUILDS = 4
EXISTS = 2
"""The exit code of a build that finds another one's snapshot, and was not told to replace it."""

HOUR = 3_600_000
START = 1_772_323_200_000
"""2026-03-01T00:00:00Z, the instant of the first observation of every build."""

SERVERS = [
    {"id": name, "cfxId": f"x-{name}", "game": "game_a", "hostname": name} for name in ("a", "b")
]


class Answer(NamedTuple):
    """What a snapshot says when it is asked; no two builds here say the same."""

    root: str
    body: bytes


class Case(NamedTuple):
    """How many builds there are at once, and whether they may replace each other's snapshot."""

    builds: int
    overwrite: bool


class ParallelBuilds:
    """A directory where builds, each of its own sources, write to one path."""

    def __init__(self, root: str) -> None:
        self._root = Path(root)
        self._place = self._root / "place"
        self._place.mkdir()
        self._output = self._place / "out.db"
        lines = "".join(json.dumps(server) + "\n" for server in SERVERS)
        (self._root / "servers.ndjson").write_text(lines, encoding="utf-8")
        self._answers = [self._answer_alone(number) for number in range(MAX_BUILDS)]

    def run_case(self, case: Case) -> tuple[Counter[str], list[str]]:
        """Run builds at once while others read; count what was read, and tell what was broken."""
        self._output.unlink()
        if case.overwrite:  # there is always something to read
            main(self._command(0, "--overwrite"))
        builds = [self._start(number, overwrite=case.overwrite) for number in range(case.builds)]
        with ThreadPoolExecutor(READERS) as readers:
            reading = [readers.submit(self._read, builds) for _ in range(READERS)]
            exit_codes = sorted(build.wait() for build in builds)
        found = [answer for reader in reading for answer in reader.result()]
        broken = [str(answer) for answer in found if answer not in self._answers]
        expected = [0] * case.builds if case.overwrite else [0] + [EXISTS] * (case.builds - 1)
        if exit_codes != expected:
            broken.append(f"exit codes {exit_codes}")
        if self._ask() not in self._answers:
            broken.append("what stands in the end is of no build")
        if left := {path.name for path in self._place.iterdir()} - {"out.db"}:
            broken.append(f"left: {left}")
        return Counter(builds=case.builds, answers=len(found)), broken

    def _read(self, builds: list[subprocess.Popen[bytes]]) -> list[Answer | str]:
        """Ask as long as one of the builds runs; what goes wrong is told as a text."""
        found: list[Answer | str] = []
        while any(build.returncode is None for build in builds):
            if self._output.exists():
                try:
                    found.append(self._ask())
                except srvstat.SrvstatError as error:
                    found.append(error.reason)
        return found

    def _ask(self) -> Answer:
        with srvstat.open_snapshot(self._output) as snapshot:
            return Answer(snapshot.root, snapshot.compare(["a", "b"], range="1y").to_json())

    def _answer_alone(self, number: int) -> Answer:
        """Write the sources of a build and return what its snapshot answers.

        Every observation has the build's number of players, so that no two answers are alike.
        """
        rows = [
            f"{server['id']},{START + at * HOUR},{number}"
            for server in SERVERS
            for at in range(1000 * (number + 1))
        ]
        text = "\n".join(["serverId,observedAt,players", *rows, ""])
        (self._root / f"{number}.csv").write_text(text, encoding="utf-8")
        main(self._command(number, "--overwrite"))
        return self._ask()

    def _start(self, number: int, *, overwrite: bool) -> subprocess.Popen[bytes]:
        command = self._command(number, *(["--overwrite"] if overwrite else []))
        return subprocess.Popen(
            [sys.executable, "-m", "srvstat", *command], stderr=subprocess.DEVNULL
        )

    def _command(self, number: int, *options: str) -> list[str]:
        servers, observations = self._root / "servers.ndjson", self._root / f"{number}.csv"
        sources = ["--servers", str(servers), "--observations", str(observations)]
        return ["snapshot", "build", str(self._output), *sources, "--quiet", *options]


def run(seed: int, count: int) -> Result:
    """Run some builds at once, again and again, until there were as many as asked for."""
    draw = random.Random(seed)
    counts: Counter[str] = Counter()
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as root:
        rivals = ParallelBuilds(root)
        for case in _cases(draw, count):
            counted, broken = rivals.run_case(case)
            counts += counted
            failures += [f"{case}: {why}" for why in broken]
    return Result(counts["builds"], dict(counts), tuple(failures))


def _cases(draw: random.Random, count: int) -> Iterator[Case]:
    while count > 0:
        case = Case(draw.randint(2, MAX_BUILDS), overwrite=draw.random() < 1 / 2)
        yield case
        count -= case.builds


CAMPAIGN = Campaign(
    name="parallel",
    promise="of builds to one path at once all succeed that may replace it, or exactly one; who"
    " reads meanwhile has an answer, and of one snapshot as a whole",
    run=run,
    short=20,
    long=200,
    unit="builds",
)
