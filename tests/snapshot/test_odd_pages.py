"""Pages in each other's place, or pointing to each other: an error, soon, in little memory."""

import resource
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from conftest import AS_OF, Build, Cli, server, srvstat

PAGE = 16_384
LEAF_OF_AN_INDEX, INTERIOR_OF_A_TABLE = 10, 5


@pytest.fixture
def good(build: Build) -> Path:
    """Build a snapshot whose observations take several pages."""
    rows = [("a", AS_OF - 60_000 * number, number % 9) for number in range(6_000)]
    return Path(build([server("a"), server("b")], rows))


def test_observations_in_another_order_are_damage(good: Path, cli: Cli) -> None:
    content = good.read_bytes()
    pages = [content[at : at + PAGE] for at in range(0, len(content), PAGE)]
    full = [
        number
        for number, page in enumerate(pages)
        if page[0] == LEAF_OF_AN_INDEX and int.from_bytes(page[3:5]) > 500
    ]
    for other in full[1:]:
        swapped = list(pages)
        swapped[full[0]], swapped[other] = swapped[other], swapped[full[0]]
        good.write_bytes(b"".join(swapped))

        ran = cli("snapshot", "verify", str(good))
        assert (ran.exit_code, ran.stdout) == (3, b"")
        assert "damaged (" in ran.stderr


def endless(content: bytes, root: int) -> bytes:
    """Return a file whose table is five levels of pages, each of which points 200 times to one."""
    leaf = content[(root - 1) * PAGE : root * PAGE]
    pages = len(content) // PAGE
    levels = [_pointing_to(pages + level) for level in range(1, 6)]
    grown = content[: (root - 1) * PAGE] + levels[0] + content[root * PAGE :]
    grown += b"".join(levels[1:]) + leaf
    return grown[:28] + (len(grown) // PAGE).to_bytes(4) + grown[32:]


def _pointing_to(child: int) -> bytes:
    cell = child.to_bytes(4) + b"\xa0\x80\x80\x80\x80\x00"  # with a key above all others
    places = [PAGE - len(cell) * number for number in range(1, 201)]
    head = bytes([INTERIOR_OF_A_TABLE, 0, 0]) + (200).to_bytes(2) + places[-1].to_bytes(2)
    head += b"\0" + child.to_bytes(4) + b"".join(place.to_bytes(2) for place in places)
    return head + bytes(places[-1] - len(head)) + cell * 200


@pytest.mark.parametrize("table", ["snapshot", "servers", "calendars", "days", "directory"])
def test_pages_that_point_to_each_other_are_read_to_no_end(table: str, good: Path) -> None:
    with closing(sqlite3.connect(good)) as connection:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        ((root,),) = connection.execute(query, (table,)).fetchall()
    good.write_bytes(endless(good.read_bytes(), root))

    for command in (("get", "nobody", "-s"), ("snapshot", "info"), ("snapshot", "verify")):
        started = time.monotonic()
        ran = srvstat(*command, str(good))
        assert time.monotonic() - started < 20
        assert ran.exit_code in (3, 0 if command[1] == "info" else 44)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 1 << 20
