"""Requests for a service, with the answers of the command line."""

import json
from itertools import cycle, islice
from pathlib import Path
from random import Random

from conftest import Cli
from srvstat.contract.errors import ApiError
from srvstat.contract.time import DAYS
from support.http import Exchange, compare, request_target

_STATUSES = {error.code: error.http_status for error in ApiError.__subclasses__()}
_REFUSED = (
    b"",
    b"{",
    b'{"servers":[{"identifier":"a","by":"id"}]}',
    b'{"servers":[{"identifier":"a","by":"id"},{"identifier":"b"}]}',
    b'{"servers":[{"identifier":"a","by":"id"},{"identifier":"b","by":"id"}],"range":"8d"}',
)
"""Invalid request bodies."""
_KNOWN = (("a", "id"), ("b", "id"), ("x-a", "cfxId"), ("x-b", "cfxId"))
_UNKNOWN = (("unknown", "id"), ("hidden", "id"), ("x-a", "id"), ("no_identifier", "id"))


def list_comparisons(snapshot: Path, cli: Cli) -> list[Exchange]:
    """Return comparisons over all ranges, and refused ones."""
    rng = Random(1)  # noqa: S311 - drawn again with each run
    bodies = [*(_draw_body(rng, length) for length in islice(cycle(DAYS), 40)), *_REFUSED]
    batch = snapshot.with_name("bodies")
    batch.write_bytes(b"".join(body + b"\n" for body in bodies))
    answers = cli("compare", "--batch", str(batch), "--snapshot", str(snapshot)).stdout
    return [
        Exchange(compare(body), _find_status(answer), answer)
        for body, answer in zip(bodies, answers.splitlines(), strict=True)
    ]


def list_gets(snapshot: Path, cli: Cli, *, known: bool) -> list[Exchange]:
    """Return a GET and a HEAD for known or unknown servers."""
    found = []
    for name, by in _KNOWN if known else _UNKNOWN:
        ran = cli("get", name, "--by", by, "--json", "--snapshot", str(snapshot))
        answer = ran.stdout.removesuffix(b"\n")
        target, status = f"/gateway/v1/servers/{name}?by={by}", _find_status(answer)
        found.append(Exchange(request_target(target), status, answer))
        found.append(Exchange(request_target(target, method="HEAD"), status, b""))
    return found


def _draw_body(rng: Random, length: str) -> bytes:
    servers = [{"identifier": name, "by": by} for name, by in rng.sample(_KNOWN, 2)]
    if rng.random() < 1 / 8:
        servers.append({"identifier": "unknown", "by": "id"})
    return json.dumps({"servers": servers, "range": length}).encode("ascii")


def _find_status(answer: bytes) -> int:
    error = json.loads(answer).get("error")
    return _STATUSES[error["code"]] if error else 200
