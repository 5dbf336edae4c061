"""Requests for the service, with the answers of the command line."""

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

from campaigns.campaign import MEMORY
from campaigns.small_snapshots import HIDDEN, PUBLISHED, build_small_snapshot
from srvstat.cli.main import main
from srvstat.contract.errors import ApiError
from srvstat.contract.ranges import DAYS
from support.descriptors import replace_descriptor
from support.http import compare, request_target
from support.load import Exchange

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
"""Invalid request bodies. None has a line feed, so that each is one line of a batch."""

_KNOWN = (("busy", "id"), ("uneven", "id"), ("x-silent", "cfxId"), ("busy", "cfxId"))
_NOT_KNOWN = (("unknown", "id"), (HIDDEN, "id"), ("x-busy", "id"), ("no_identifier", "id"))


@contextmanager
def build_two_snapshots() -> Iterator[tuple[Path, Path]]:
    """Build two snapshots of the same servers with different player counts."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        first, second = (build_small_snapshot(Path(name, str(seed)), seed) for seed in (1, 2))
        yield first, second


def list_exchanges(snapshot: Path, seed: int) -> list[Exchange]:
    """Return requests of all kinds in random order, with the command line's answers."""
    rng = Random(seed)
    lengths = islice(cycle(DAYS), _COMPARISONS)
    bodies = [*(_draw_body(rng, length) for length in lengths), *_REFUSED]
    found = [*answer_comparisons(snapshot, bodies), *_answer_gets(snapshot)]
    rng.shuffle(found)
    return found


def answer_comparisons(snapshot: Path, bodies: Sequence[bytes]) -> Iterator[Exchange]:
    """Yield an exchange for each request body, with the command line's answer."""
    with tempfile.NamedTemporaryFile() as batch:
        batch.write(b"".join(body + b"\n" for body in bodies))
        batch.flush()
        answers = _run_in_process("compare", "--batch", batch.name, "--snapshot", str(snapshot))
    for body, answer in zip(bodies, answers.splitlines(), strict=True):
        yield Exchange(compare(body), _find_status(answer), (answer,))


def _draw_body(rng: Random, length: str) -> bytes:
    """Draw a well-formed comparison; one in twelve names a server that does not exist."""
    names = [(name, "id") for name in PUBLISHED]
    names += [("x-" + name, "cfxId") for name in PUBLISHED if name != "once"]
    chosen = rng.sample(names, rng.randint(2, 5))
    if rng.random() < 1 / 12:
        chosen[-1] = rng.choice(_NOT_KNOWN[:2])
    references = [{"identifier": name, "by": by} for name, by in chosen]
    return json.dumps({"servers": references, "range": length}).encode("ascii")


def list_server_exchanges(snapshot: Path) -> tuple[list[Exchange], list[Exchange]]:
    """Return Get Server exchanges for known servers, and for unknown ones."""
    found = [*_answer_gets(snapshot)]
    return [one for one in found if one.status == 200], [one for one in found if one.status == 404]


def _answer_gets(snapshot: Path) -> Iterator[Exchange]:
    """Yield a GET and a HEAD exchange for each server."""
    for name, by in (*_KNOWN, *_NOT_KNOWN):
        arguments = ("get", name, "--by", by, "--json", "--snapshot", str(snapshot))
        answer = _run_in_process(*arguments).removesuffix(b"\n")
        target = f"{SERVERS}/{quote(name)}?by={by}"
        yield Exchange(request_target(target), _find_status(answer), (answer,))
        yield Exchange(request_target(target, method="HEAD"), _find_status(answer), (b"",))


def _run_in_process(*arguments: str) -> bytes:
    """Run the command line in this process and return its standard output."""
    with tempfile.TemporaryFile() as stdout, open(os.devnull, "wb") as stderr:
        with replace_descriptor(1, stdout.fileno()), replace_descriptor(2, stderr.fileno()):
            main(list(arguments))
        stdout.seek(0)
        return stdout.read()


def _find_status(answer: bytes) -> int:
    error = json.loads(answer).get("error")
    return _STATUSES[error["code"]] if error else 200


def read_resident_kib(process: int) -> int | None:
    """Return the resident memory of a process in KiB; None without /proc."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    except FileNotFoundError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


def count_descriptors(process: int) -> int | None:
    """Return the number of open files and sockets of a process; None without /proc."""
    try:
        return len(os.listdir(f"/proc/{process}/fd"))
    except FileNotFoundError:
        return None


@contextmanager
def allow_descriptors(number: int) -> Iterator[None]:
    """Raise the limit of open files and sockets as far as the system permits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, number + 200)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
