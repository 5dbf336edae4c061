"""What the campaigns ask the service, and what the command line answers to it."""

import json
import os
import resource
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from random import Random
from urllib.parse import quote

from campaigns.build_directory import MEMORY
from campaigns.small_snapshots import HIDDEN, PUBLISHED, build_small_snapshot
from conftest import srvstat
from srvstat.contract.errors import ApiError
from srvstat.contract.ranges import DAYS
from support.loads import Exchange, request

COMPARE = "/gateway/v1/compare"
SERVERS = "/gateway/v1/servers"
_COMPARISONS = 60
_STATUSES = {error.code: error.http_status for error in ApiError.__subclasses__()}

_REFUSED = (
    b"",
    b"[]",
    b"{",
    b'{"servers":[{"identifier":"busy","by":"id"}]}',
    b'{"servers":[{"identifier":"busy","by":"id"},{"identifier":"busy","by":"id"}]}',
    b'{"servers":[{"identifier":"busy","by":"id"},{"identifier":"wide"}]}',
    b'{"servers":[{"identifier":"busy","by":"id"},{"identifier":"wide","by":"id"}],"range":"8d"}',
    b'{"servers":[{"identifier":"busy","by":"id"},{"identifier":"wide","by":"id"}],"at":0}',
)
"""Bodies that are no request. None has a line feed, so that each is a line of a batch."""

_KNOWN = (("busy", "id"), ("uneven", "id"), ("x-silent", "cfxId"), ("busy", "cfxId"))
_NOT_KNOWN = (("unknown", "id"), (HIDDEN, "id"), ("x-busy", "id"), ("no_identifier", "id"))


@contextmanager
def two_snapshots() -> Iterator[tuple[Path, Path]]:
    """Build two snapshots of the same servers with other numbers of players."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        first, second = (build_small_snapshot(Path(name, str(seed)), seed) for seed in (1, 2))
        yield first, second


def exchanges(snapshot: Path, seed: int) -> list[Exchange]:
    """Return requests of all kinds, in an order of their own, with the command line's answers."""
    draw = Random(seed)
    lengths = islice(cycle(DAYS), _COMPARISONS)
    bodies = [*(_drawn_body(draw, length) for length in lengths), *_REFUSED]
    found = [*comparisons(snapshot, bodies), *_gets(snapshot)]
    draw.shuffle(found)
    return found


def comparisons(snapshot: Path, bodies: Sequence[bytes]) -> Iterator[Exchange]:
    """Yield comparisons, given by their bodies, with the command line's answers."""
    arguments = ("compare", "--batch", "-", "--snapshot", str(snapshot))
    answered = srvstat(*arguments, stdin=b"".join(body + b"\n" for body in bodies))
    for body, answer in zip(bodies, answered.stdout.splitlines(), strict=True):
        yield Exchange(request(COMPARE, method="POST", body=body), _status(answer), (answer,))


def _drawn_body(draw: Random, length: str) -> bytes:
    """Draw a comparison that is well formed; one of twelve names a server that is not there."""
    names = [(name, "id") for name in PUBLISHED]
    names += [("x-" + name, "cfxId") for name in PUBLISHED if name != "once"]
    chosen = draw.sample(names, draw.randint(2, 5))
    if draw.random() < 1 / 12:
        chosen[-1] = draw.choice(_NOT_KNOWN[:2])
    servers = [{"identifier": name, "by": by} for name, by in chosen]
    return json.dumps({"servers": servers, "range": length}).encode("ascii")


def servers(snapshot: Path) -> tuple[list[Exchange], list[Exchange]]:
    """Return requests of Get Server for servers that exist, and for others."""
    found = [*_gets(snapshot)]
    return [one for one in found if one.status == 200], [one for one in found if one.status == 404]


def _gets(snapshot: Path) -> Iterator[Exchange]:
    """Yield each server asked for by GET and by HEAD."""
    for name, by in (*_KNOWN, *_NOT_KNOWN):
        arguments = ("get", name, "--by", by, "--json", "--snapshot", str(snapshot))
        answer = srvstat(*arguments).stdout.removesuffix(b"\n")
        target = f"{SERVERS}/{quote(name)}?by={by}"
        yield Exchange(request(target), _status(answer), (answer,))
        yield Exchange(request(target, method="HEAD"), _status(answer), (b"",))


def _status(answer: bytes) -> int:
    error = json.loads(answer).get("error")
    return _STATUSES[error["code"]] if error else 200


def resident_kib(process: int) -> int | None:
    """Return how much memory a process holds; None where the system does not say."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    except FileNotFoundError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


def descriptors(process: int) -> int | None:
    """Return how many files and sockets a process has open; None where the system does not say."""
    try:
        return len(os.listdir(f"/proc/{process}/fd"))
    except FileNotFoundError:
        return None


@contextmanager
def many_descriptors(number: int) -> Iterator[None]:
    """Let this process and its children open more files and sockets, where they may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, number + 200)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
