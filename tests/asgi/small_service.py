"""A small snapshot, a service that serves it, and its expected answers."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from conftest import AS_OF, DAY, build_in, server
from support.http import ERRORS, Expected
from support.process import Service, serve


def build_small(directory: Path, name: str = "small.db", *, players: int = 6) -> Path:
    """Build a snapshot of the servers `a` and `b`; the server `hidden` is not publishable.

    `players` is the last observation of `a`.
    """
    path = directory / name
    path.write_bytes(_build(players))
    return path


@cache
def _build(players: int) -> bytes:
    servers = [server("a"), server("b"), server("hidden", publishable=False)]
    rows = [("a", AS_OF - DAY, 5), ("a", AS_OF, players), ("b", AS_OF, 7)]
    with TemporaryDirectory() as name:
        directory = Path(name)
        return build_in(directory, servers, rows).read_bytes()


PLANS = """
[plans.all]
operations = ["get-server", "compare-servers"]
ranges = ["24h", "7d", "30d", "90d", "1y"]

[plans.short]
operations = ["get-server", "compare-servers"]
ranges = ["24h", "7d"]

[plans.get]
operations = ["get-server"]
ranges = []

[plans.compare]
operations = ["compare-servers"]
ranges = ["30d"]

[plans.three]
operations = ["get-server"]
ranges = []
requests_per_minute = 3
"""


def format_access(keys: Mapping[str, str]) -> str:
    """Return the text of an access file with these keys; their plans are among PLANS."""
    tables = (
        f'[[keys]]\nsha256 = "{sha256(key.encode()).hexdigest()}"\nplan = "{plan}"\n'
        for key, plan in keys.items()
    )
    return PLANS + "".join(tables)


@contextmanager
def serve_small(*options: str) -> Iterator[Service]:
    """Serve the small snapshot until the block ends."""
    with (
        TemporaryDirectory() as directory,
        serve(build_small(Path(directory)), *options) as service,
    ):
        yield service


SERVER_A = (
    b'{"data":{"id":"a","game":"game_a","cfxId":"x-a","hostname":"a","projectName":"",'
    b'"projectDescription":"","region":"","players":{"current":6,"max":0},"tags":[],"flags":[],'
    b'"chatUrl":"","iconUrl":null,"offline":false,"firstSeenAt":"2026-02-28T12:00:00.000Z",'
    b'"updatedAt":"2026-03-01T12:00:00.000Z"}}'
)
COMPARED = (
    b'{"range":"30d","data":[{"serverId":"a","cfxId":"x-a","range":"30d","currentPlayers":6,'
    b'"averagePlayers":5.5,"medianPlayers":5.5,"peakPlayers":6,"lowestPlayers":5,'
    b'"growth":{"players":1,"percentage":20},"uptime":null,"sampleCount":2},'
    b'{"serverId":"b","cfxId":"x-b","range":"30d","currentPlayers":7,"averagePlayers":7,'
    b'"medianPlayers":7,"peakPlayers":7,"lowestPlayers":7,'
    b'"growth":{"players":null,"percentage":null},"uptime":null,"sampleCount":1}]}'
)

SERVER_FOUND = Expected(200, SERVER_A)
COMPARISON = Expected(200, COMPARED)
INVALID_REQUEST = Expected(400, ERRORS["INVALID_REQUEST"])
"""An invalid request; the connection stays open."""
MALFORMED = INVALID_REQUEST._replace(stays=False)
"""Malformed HTTP; the connection is closed, because the next request can't be found."""
UNAUTHORIZED = Expected(
    401,
    ERRORS["GATEWAY_UNAUTHORIZED"],
    headers={"www-authenticate": 'ApiKey header="x-gateway-key"'},
)
NOT_FOUND = Expected(404, ERRORS["SERVER_NOT_FOUND"])
UNKNOWN_PATH = Expected(404, ERRORS["INVALID_REQUEST"])
GET_ONLY = Expected(405, ERRORS["INVALID_REQUEST"], headers={"allow": "GET, HEAD"})
POST_ONLY = Expected(405, ERRORS["INVALID_REQUEST"], headers={"allow": "POST"})
