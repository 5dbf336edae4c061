"""The fleets of the corpus. All arithmetic uses integers, so that each machine builds the same."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from functools import cache
from pathlib import Path

from srvstat.cli.app import main
from srvstat.cli.demo import read_demo_file
from support.process import replace_descriptor
from support.records import AS_OF, DAY, csv, ndjson, server

MINUTE = 60_000
HOUR = 60 * MINUTE
MAX_COUNT = 2**53 - 1

Row = tuple[str, int | str, int | str]
HOSTILE = "\x1b[2J\x1b]0;x\x07[red]A[/] \u202eb\n" + "z" + "\u0301" * 9 + " \x9b1m\u2028\U000e0041é"


@cache
def prepare_files() -> Path:
    """Return a directory with the files that each session begins with."""
    directory = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, directory)
    files = {
        "demo.ndjson": read_demo_file("servers.ndjson"),
        "demo.csv": read_demo_file("observations.csv"),
        "access.toml": read_demo_file("access.toml"),
        "regular.ndjson": ndjson(server(f"srv-{number}") for number in range(1, 5)),
        "regular.csv": csv(observe_every_five_minutes()),
        "wide.ndjson": ndjson(describe_odd_servers()),
        "wide.csv": csv(observe_irregularly()),
        "sparse.ndjson": ndjson(describe_quiet_servers()),
        "sparse.csv": csv(observe_for_more_than_a_year()),
        "suspect.ndjson": ndjson(describe_suspects()),
        "suspect.csv": csv(observe_suspects()),
    }
    for name, content in files.items():
        (directory / name).write_bytes(content)
    with chdir(directory), open(os.devnull, "wb") as null, replace_descriptor(2, null.fileno()):
        for fleet in ("demo", "regular", "wide", "sparse", "suspect"):
            sources = ["--servers", f"{fleet}.ndjson", "--observations", f"{fleet}.csv"]
            assert main(["snapshot", "build", f"{fleet}.db", *sources, "--quiet"]) == 0
        bundle = ["-s", "sparse.db", "-o", "bundle.db", "--range=90d", "--redact"]
        assert main(["snapshot", "bundle", "daily", "zeros", "silent", *bundle]) == 0
    return directory


def observe_every_five_minutes() -> Iterator[Row]:
    """Observe four servers for nine days; one has gaps, one repeats itself, and one is new."""
    for step in range(9 * DAY // (5 * MINUTE) + 1):
        at = AS_OF - 9 * DAY + step * 5 * MINUTE
        hour = at // HOUR % 24
        yield "srv-1", at, 200 + 10 * hour + step * 7919 % 97
        if step // 100 % 9 != 4 and step % 11:
            yield "srv-2", at, 90 - 3 * abs(hour - 19) + step * 104_729 % 23
        yield "srv-3", at, step % 288
        if step > 8 * 288:
            yield "srv-4", at, step % 5


def describe_odd_servers() -> list[dict[str, object]]:
    """Describe servers whose identifiers cross namespaces, with text that attacks a terminal."""
    times = {"firstSeenAt": "2024-02-29T23:59:59.999Z", "updatedAt": "2026-03-01T11:59Z"}
    return [
        server("a", cfxId="b", hostname=HOSTILE, tags=["\x1b[31mred", "[/x]"], **times),
        server("b", cfxId="a", hostname="夜勤 «Größe» 🎮", game="game_b", region="EU"),
        server("A-b-9", cfxId="9", hostname="<script>alert(1)</script>", flags=["\u202eFLAG"]),
        server("x" * 128, cfxId="y" * 128, players={"current": MAX_COUNT, "max": MAX_COUNT}),
        server("hidden", hostname="secret", publishable=False),
    ]


def observe_irregularly() -> Iterator[Row]:
    """Observe counts of any size at irregular instants, some a millisecond apart."""
    at = AS_OF - 40 * DAY
    for step in range(1500):
        at += 1 if step % 50 == 0 else step * 7919 % (75 * MINUTE)
        yield "a", at, MAX_COUNT - step * 104_729 if step % 3 else step
        yield "b", at + step % 2, (step * 6_364_136_223) % 10 ** (step % 15 + 1)
        yield "hidden", at, 99
        if step % 10 == 0:
            yield "x" * 128, at, step
    yield "A-b-9", AS_OF, 1
    yield "b", AS_OF - 1, 3
    yield "b", AS_OF, 4


def describe_quiet_servers() -> list[dict[str, object]]:
    """Describe servers of which some are offline, empty or never observed."""
    return [
        server("daily", game="game_b", region="US", tags=["quiet", "old"]),
        server("zeros", offline=True),
        server("silent", players={"current": 7, "max": 32}),
        server("last-year", chatUrl="https://chat.example/1", iconUrl=None),
        server("half-hours", projectName="Half", projectDescription="Two\nlines"),
    ]


def observe_for_more_than_a_year() -> Iterator[Row]:
    """Observe 400 days: one server a day at noon, one with zeros, and two for a part of them."""
    for day in range(401):
        at = AS_OF - (400 - day) * DAY
        yield "daily", at, 50 + day * 7919 % 31
        yield "zeros", at - 6 * HOUR, 0
        if day < 30:
            yield "last-year", at + 1, 5 + day
        if 385 <= day < 400:
            for step in range(48):
                yield "half-hours", at + step * 30 * MINUTE, abs(24 - step) + day % 3


def describe_suspects() -> list[dict[str, object]]:
    """Describe an honest server, and one for each pattern that `integrity` finds."""
    names = ("honest", "constant", "minimum", "percent", "random", "step")
    above = server("above", hostname="The above server", players={"max": 70})
    return [above, *(server(name, hostname=f"The {name} server") for name in names)]


def observe_suspects() -> Iterator[Row]:
    """Observe 18 days, every ten minutes."""
    state = 1
    for step in range(18 * 144):
        at = AS_OF - 18 * DAY + step * 10 * MINUTE
        state = (state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**64
        noise = (state >> 33) % 7
        players = (
            20 + 40 - abs(72 - (step + 60) % 144) // 2 + (step // 144 * 31 + step // 9 * 7) % 9
        )
        if at // DAY % 7:
            yield "above", at, players + 7
        yield "honest", at, players
        yield "constant", at, 30
        yield "minimum", at, max(players, 45)
        yield "percent", at, players * 5 // 4
        yield "random", at, players + 4 * noise
        yield "step", at, players * (5 if step > 9 * 144 else 1)
