"""Run several builds to one path at once, while readers query the snapshot."""

import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import srvstat
from campaigns.campaign import Campaign, Result
from srvstat.cli.main import main

READERS = 2
PAUSE = 0.003
"""Seconds between the queries of a reader, so that the builds get the processor."""

MAX_BUILDS = 4
EXISTS = 2
"""Exit code of a build whose OUTPUT exists, without --overwrite."""

HOUR = 3_600_000
START = 1_772_323_200_000
"""2026-03-01T00:00:00Z, the instant of the first observation of every build."""

SERVERS = [
    {"id": name, "cfxId": f"x-{name}", "game": "game_a", "hostname": name} for name in ("a", "b")
]


class Answer(NamedTuple):
    """The answer of a snapshot; every build has a different one."""

    root: str
    body: bytes


class Case(NamedTuple):
    """The number of builds at once, and whether they may replace each other's snapshot."""

    builds: int
    overwrite: bool


class ParallelBuilds:
    """Builds from different sources that write to one path."""

    def __init__(self, root: str) -> None:
        self._root = Path(root)
        self._directory = self._root / "output"
        self._directory.mkdir()
        self._output = self._directory / "out.db"
        lines = "".join(json.dumps(server) + "\n" for server in SERVERS)
        (self._root / "servers.ndjson").write_text(lines, encoding="utf-8")
        self._answers = [self._build_alone(number) for number in range(MAX_BUILDS)]

    def run_case(self, case: Case) -> tuple[Counter[str], list[str]]:
        """Run builds at once while readers query; return the counts and the problems."""
        self._output.unlink()
        if case.overwrite:  # readers always find a snapshot
            main(self._build_command(0, "--overwrite"))
        builds = [
            self._start_build(number, overwrite=case.overwrite) for number in range(case.builds)
        ]
        with ThreadPoolExecutor(READERS) as readers:
            reading = [readers.submit(self._query_during_builds, builds) for _ in range(READERS)]
            exit_codes = sorted(build.wait() for build in builds)
        found = [answer for reader in reading for answer in reader.result()]
        problems = [str(answer) for answer in found if answer not in self._answers]
        expected = [0] * case.builds if case.overwrite else [0] + [EXISTS] * (case.builds - 1)
        if exit_codes != expected:
            problems.append(f"exit codes {exit_codes}")
        if self._query() not in self._answers:
            problems.append("the final snapshot is from none of the builds")
        if left := {path.name for path in self._directory.iterdir()} - {"out.db"}:
            problems.append(f"left: {left}")
        return Counter(builds=case.builds, answers=len(found)), problems

    def _query_during_builds(self, builds: list[subprocess.Popen[bytes]]) -> list[Answer | str]:
        """Query the snapshot while builds run; return answers and error messages."""
        found: list[Answer | str] = []
        while any(build.returncode is None for build in builds):
            if self._output.exists():
                try:
                    found.append(self._query())
                except srvstat.SrvstatError as error:
                    found.append(error.reason)
            time.sleep(PAUSE)
        return found

    def _query(self) -> Answer:
        with srvstat.open_snapshot(self._output) as snapshot:
            return Answer(snapshot.root, snapshot.compare(["a", "b"], range="1y").to_json())

    def _build_alone(self, number: int) -> Answer:
        """Write the sources of a build, build alone, and return the answer.

        The player count of every observation is the number of the build, so all answers differ.
        """
        rows = [
            f"{server['id']},{START + at * HOUR},{number}"
            for server in SERVERS
            for at in range(1000 * (number + 1))
        ]
        text = "\n".join(["serverId,observedAt,players", *rows, ""])
        (self._root / f"{number}.csv").write_text(text, encoding="utf-8")
        main(self._build_command(number, "--overwrite"))
        return self._query()

    def _start_build(self, number: int, *, overwrite: bool) -> subprocess.Popen[bytes]:
        command = self._build_command(number, *(["--overwrite"] if overwrite else []))
        return subprocess.Popen(
            [sys.executable, "-m", "srvstat", *command], stderr=subprocess.DEVNULL
        )

    def _build_command(self, number: int, *options: str) -> list[str]:
        servers, observations = self._root / "servers.ndjson", self._root / f"{number}.csv"
        sources = ["--servers", str(servers), "--observations", str(observations)]
        return ["snapshot", "build", str(self._output), *sources, "--quiet", *options]


def run(seed: int, count: int) -> Result:
    """Run groups of builds until there were at least `count` builds."""
    rng = random.Random(seed)
    counts: Counter[str] = Counter()
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as root:
        builds = ParallelBuilds(root)
        for case in _draw_cases(rng, count):
            counted, problems = builds.run_case(case)
            counts += counted
            failures += [f"{case}: {why}" for why in problems]
    return Result(counts["builds"], dict(counts), tuple(failures))


def _draw_cases(rng: random.Random, count: int) -> Iterator[Case]:
    while count > 0:
        case = Case(rng.randint(2, MAX_BUILDS), overwrite=rng.random() < 1 / 2)
        yield case
        count -= case.builds


CAMPAIGN = Campaign(
    name="parallel",
    promise="of concurrent builds to one path, all succeed with --overwrite, exactly one without;"
    " readers always get an answer from one complete snapshot",
    run=run,
    short=3,
    long=200,
    unit="builds",
)
