"""Time `snapshot diff` of two large snapshots, and `snapshot verify` of one of them."""

import os
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from statistics import median
from typing import NamedTuple

from benchmarks import fleet
from benchmarks.measure import find_program, print_progress, run
from benchmarks.questions import RANGES, WrongAnswerError
from srvstat import operations
from srvstat.contract.instants import format_instant
from srvstat.contract.ranges import DAY_MS
from srvstat.contract.requests import ServerReference
from srvstat.documents.support import SnapshotDiff
from srvstat.snapshot.read.reader import open_file
from srvstat.snapshot.read.verify import verify
from srvstat.support.diff import compare_snapshots

SERVERS, QUICK_SERVERS = 1_000, 100
_DAYS = 60
_EVERY = 2
"""Every second poll: one in 10 minutes."""
_ALTERED_SERVERS, _ALTERED_DAYS = 5, (10, 50)
_ROUNDS = 3

_PAIRS_OF_ONE = """
SELECT DISTINCT id, observed_at / ? FROM (
    SELECT id, observed_at, players FROM {one}.observations JOIN {one}.servers USING (server)
    EXCEPT
    SELECT id, observed_at, players FROM {two}.observations JOIN {two}.servers USING (server)
) WHERE id IN (SELECT id FROM {two}.servers)
"""


class DiffCost(NamedTuple):
    """Seconds to compare two snapshots that share most days, and to verify the old one."""

    diff: float
    verify: float


def time_diff(directory: str, *, quick: bool) -> DiffCost:
    """Build a snapshot of 60 days, and one with one more day and a few altered ones; compare them.

    Raises WrongAnswerError if the differences are not those of all observations and answers.
    """
    size = QUICK_SERVERS if quick else SERVERS
    old, new = _build(directory, size, "old"), _build(directory, size, "new")
    print_progress(f"comparing two snapshots of {size:,} servers")
    _check(old, new, _compare(old, new))
    return DiffCost(
        median(_time(lambda: _compare(old, new).to_json()) for _ in range(_ROUNDS)),
        _time(lambda: verify(old)),
    )


def _compare(old: str, new: str) -> SnapshotDiff:
    with closing(open_file(old)) as before, closing(open_file(new)) as after:
        return compare_snapshots(before, after)


def _time(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _build(directory: str, size: int, name: str) -> str:
    print_progress(f"building the {name} snapshot of {size:,} servers")
    servers, observations, path = (
        os.path.join(directory, f"diff-{name}-{size}.{ending}")
        for ending in ("ndjson", "csv", "db")
    )
    with open(servers, "wb") as file:
        file.write(fleet.generate_servers_ndjson(size))
    with open(observations, "w", encoding="ascii") as text:
        text.write("serverId,observedAt,players\n")
        for day in range(_DAYS + (name == "new")):
            text.writelines(_format_day(size, day, is_altered=name == "new"))
    arguments = ["--servers", servers, "--observations", observations, "--overwrite", "--quiet"]
    run([find_program("srvstat"), "snapshot", "build", path, *arguments])
    os.unlink(observations)
    return path


def _format_day(size: int, day: int, *, is_altered: bool) -> Iterator[str]:
    course = fleet.generate_day(size, fleet.DAYS - _DAYS - 1 + day, _EVERY)
    altered = _ALTERED_SERVERS if is_altered and day in _ALTERED_DAYS else 0
    for number, at, players in zip(*(column.tolist() for column in course), strict=True):
        yield f"{fleet.build_server_id(number)},{at},{players + (number < altered)}\n"


def _check(old: str, new: str, found: SnapshotDiff) -> None:
    days = {one.server_id: one.days for one in found.servers.changed if one.days}
    if days != _find_days(old, new):
        raise WrongAnswerError("snapshot diff: the days differ from those of all observations")
    answers = {(one.server_id, one.range) for one in found.answers}
    if answers != _find_answers(old, new, found.as_of):
        raise WrongAnswerError("snapshot diff: the answers differ from all that can be computed")


def _find_days(old: str, new: str) -> dict[str, tuple[str, ...]]:
    """Return the days whose observations differ, by comparing every observation with SQL."""
    found = defaultdict(set)
    with closing(sqlite3.connect(":memory:")) as connection:
        for name, path in (("old", old), ("new", new)):
            connection.execute(f"ATTACH ? AS {name}", (path,))
        for one, two in (("old", "new"), ("new", "old")):
            for server, day in connection.execute(
                _PAIRS_OF_ONE.format(one=one, two=two), (DAY_MS,)
            ):
                found[server].add(format_instant(day * DAY_MS)[:10])
    return {server: tuple(sorted(days)) for server, days in found.items()}


def _find_answers(old: str, new: str, at: int) -> set[tuple[str, str]]:
    """Return the servers and ranges whose results differ, by computing all of them."""
    found: set[tuple[str, str]] = set()
    with closing(open_file(old)) as before, closing(open_file(new)) as after:
        for server in before.iter_servers():
            reference = [ServerReference(identifier=server.id, by="id")]
            for name in RANGES:
                results = (
                    operations.compute_results(file, reference, name, at=at)
                    for file in (before, after)
                )
                if len({str(result) for result in results}) > 1:
                    found.add((server.id, name))
    return found
