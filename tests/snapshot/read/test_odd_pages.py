"""Refuse files with swapped or circular pages, fast and in little memory."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from conftest import AS_OF, Build, Cli, server
from snapshot.measured import Forks, start_forks
from support.snapshots import PAGE_SIZE as PAGE

pytestmark = pytest.mark.slow

MAX_MIB = 200
COMMANDS = {
    "get": ["get", "nobody", "-s"],
    "info": ["snapshot", "info"],
    "verify": ["snapshot", "verify"],
}

LEAF_OF_AN_INDEX, INTERIOR_OF_A_TABLE = 10, 5


@pytest.fixture
def good(build: Build) -> Path:
    """Build a snapshot whose observations take several pages."""
    rows = [("a", AS_OF - 60_000 * number, number % 9) for number in range(6_000)]
    return Path(build([server("a"), server("b")], rows))


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    with start_forks() as forks:
        # The first set imports everything.
        forks.run([*COMMANDS.values()], tmp_path_factory.mktemp("first"))
        yield forks


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


def link_pages(content: bytes, root: int) -> bytes:
    """Return a file whose table has five levels of pages; each page has one child 200 times."""
    leaf = content[(root - 1) * PAGE : root * PAGE]
    pages = len(content) // PAGE
    levels = [_build_interior_page(pages + level) for level in range(1, 6)]
    grown = content[: (root - 1) * PAGE] + levels[0] + content[root * PAGE :]
    grown += b"".join(levels[1:]) + leaf
    return grown[:28] + (len(grown) // PAGE).to_bytes(4) + grown[32:]


def _build_interior_page(child: int) -> bytes:
    cell = child.to_bytes(4) + b"\xa0\x80\x80\x80\x80\x00"  # with the highest key
    places = [PAGE - len(cell) * number for number in range(1, 201)]
    head = bytes([INTERIOR_OF_A_TABLE, 0, 0]) + (200).to_bytes(2) + places[-1].to_bytes(2)
    head += b"\0" + child.to_bytes(4) + b"".join(place.to_bytes(2) for place in places)
    return head + bytes(places[-1] - len(head)) + cell * 200


@pytest.mark.parametrize(
    "table",
    ["snapshot", "servers", "directory", "blocks"],
)
def test_pages_that_point_to_each_other_end_in_an_error(
    table: str, good: Path, forks: Forks
) -> None:
    with closing(sqlite3.connect(good)) as connection:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        ((root,),) = connection.execute(query, (table,)).fetchall()
    good.write_bytes(link_pages(good.read_bytes(), root))

    found = forks.run([[*command, str(good)] for command in COMMANDS.values()], good.parent)

    for name, ran in zip(COMMANDS, found, strict=True):
        assert ran.exit_code in (3, 0 if name == "info" else 44)
        assert ran.memory < MAX_MIB
