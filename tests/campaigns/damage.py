"""Damage a small snapshot in every way: truncate it, move pages, overwrite bytes."""

import os
import random
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from campaigns.campaign import MEMORY, Campaign, Result, run_in_blocks
from campaigns.small_snapshots import (
    Answer,
    ask_everything,
    build_small_snapshot,
    find_wrong_answers,
    is_refusal,
)
from support.snapshots import PAGE_SIZE as PAGE

SECTOR = 512
DATABASE_HEADER_BYTES = 100
PAGE_COUNT_AT = 28
"""Offset of the 4-byte number of pages in the header of a database."""


@dataclass(frozen=True, slots=True)
class Originals:
    """Two snapshots of the same servers with different observations.

    `root_page` is the number, from 0, of the page that identifies the snapshot.
    """

    small: bytes
    other: bytes
    root_page: int

    @property
    def pages(self) -> int:
        """Number of pages in each snapshot."""
        return len(self.small) // PAGE

    def page(self, number: int) -> bytes:
        """Return a page of the small snapshot."""
        return self.small[number * PAGE : (number + 1) * PAGE]

    def other_page(self, number: int) -> bytes:
        """Return a page of the other snapshot."""
        return self.other[number * PAGE : (number + 1) * PAGE]


@dataclass(frozen=True, slots=True)
class Damage:
    """Damage to a snapshot: patches to write, then the size to truncate the file to.

    With `is_other`, the damaged file has the root of the other snapshot, so its correct answers are
    those of the other one.
    """

    text: str
    patches: tuple[tuple[int, bytes], ...]
    size: int | None = None
    is_other: bool = False

    def apply_to(self, original: bytes) -> bytes:
        """Return the damaged bytes."""
        damaged = bytearray(original)
        for at, patch in self.patches:
            damaged[at : at + len(patch)] = patch
        return bytes(damaged[: self.size])


def _truncate(rng: random.Random, originals: Originals) -> Damage:
    size = rng.randrange(len(originals.small))
    return Damage(f"cut to {size} bytes", (), size)


def _truncate_with_header(rng: random.Random, originals: Originals) -> Damage:
    pages = rng.randrange(1, originals.pages)
    patch = (PAGE_COUNT_AT, pages.to_bytes(4))
    return Damage(f"cut to {pages} pages, with a matching header", (patch,), pages * PAGE)


def _swap_pages(rng: random.Random, originals: Originals) -> Damage:
    first, second = rng.sample(range(originals.pages), 2)
    patches = _make_page_patches({first: originals.page(second), second: originals.page(first)})
    return Damage(f"pages {first} and {second} swapped", patches)


def _copy_page(rng: random.Random, originals: Originals) -> Damage:
    source, target = rng.sample(range(originals.pages), 2)
    return Damage(
        f"page {source} copied over page {target}",
        _make_page_patches({target: originals.page(source)}),
    )


def _shift_page(rng: random.Random, originals: Originals) -> Damage:
    number = rng.randrange(originals.pages)
    page = originals.page(number)
    if rng.random() < 0.5:
        return Damage(
            f"page {number} shifted to the right", _make_page_patches({number: b"\0" + page[:-1]})
        )
    return Damage(
        f"page {number} shifted to the left", _make_page_patches({number: page[1:] + b"\0"})
    )


def _splice_pages(rng: random.Random, originals: Originals) -> Damage:
    count = rng.randrange(1, originals.pages)
    numbers = sorted(rng.sample(range(originals.pages), count))
    patches = _make_page_patches({number: originals.other_page(number) for number in numbers})
    is_other = originals.root_page in numbers
    return Damage(f"pages {numbers} of the other snapshot", patches, is_other=is_other)


def _misplace_page(rng: random.Random, originals: Originals) -> Damage:
    source, target = rng.sample(range(originals.pages), 2)
    patches = _make_page_patches({target: originals.other_page(source)})
    return Damage(f"page {source} of the other snapshot as page {target}", patches)


def _zero_sectors(rng: random.Random, originals: Originals) -> Damage:
    sectors = sorted(rng.sample(range(len(originals.small) // SECTOR), rng.choice((1, 1, 1, 2, 4))))
    patches = tuple((sector * SECTOR, bytes(SECTOR)) for sector in sectors)
    return Damage(f"sectors {sectors} zeroed", patches)


def _change_header(rng: random.Random, _originals: Originals) -> Damage:
    at, value = rng.randrange(DATABASE_HEADER_BYTES), rng.randrange(256)
    return Damage(f"byte {at} of the header set to {value}", ((at, bytes([value])),))


def _change_page_header(rng: random.Random, originals: Originals) -> Damage:
    """Change a page's kind, free block, cell count, cell start or last child."""
    number = rng.randrange(originals.pages)
    at, value = _find_page_header(number) + rng.randrange(12), rng.randrange(256)
    return Damage(f"page {number}: byte {at} set to {value}", ((at, bytes([value])),))


def _change_cell_pointer(rng: random.Random, originals: Originals) -> Damage:
    """Point a cell to another place in its page, sometimes to another cell."""
    number = rng.randrange(originals.pages)
    pointers = _list_cell_pointers(originals, number)
    at = rng.choice(pointers)
    another = rng.choice(pointers)
    places = (
        rng.randrange(PAGE).to_bytes(2),
        originals.small[another : another + 2],
        (int.from_bytes(originals.small[at : at + 2]) ^ 1 << rng.randrange(14)).to_bytes(2),
    )
    place = rng.choice(places)
    return Damage(f"page {number}: the cell pointer at {at} set to {place.hex()}", ((at, place),))


def _swap_cells(rng: random.Random, originals: Originals) -> Damage:
    """Swap two cells: the rows stay intact but are out of order."""
    number = rng.randrange(originals.pages)
    first, second = rng.choices(_list_cell_pointers(originals, number), k=2)
    small = originals.small
    patches = ((first, small[second : second + 2]), (second, small[first : first + 2]))
    return Damage(f"page {number}: the cell pointers at {first} and {second} swapped", patches)


def _change_cell(rng: random.Random, originals: Originals) -> Damage:
    """Change a byte of a cell, usually near the start of its row."""
    number = rng.randrange(originals.pages)
    pointer = rng.choice(_list_cell_pointers(originals, number))
    start = int.from_bytes(originals.small[pointer : pointer + 2]) % PAGE
    at = number * PAGE + min(start + rng.randrange(rng.choice((10, 100, 1000))), PAGE - 1)
    value = rng.randrange(256)
    return Damage(f"page {number}: byte {at} of a cell set to {value}", ((at, bytes([value])),))


def _flip_bit(rng: random.Random, originals: Originals) -> Damage:
    at, place = rng.randrange(len(originals.small)), rng.randrange(8)
    patch = bytes([originals.small[at] ^ 1 << place])
    return Damage(f"bit {place} of byte {at} flipped", ((at, patch),))


def _write_random_bytes(rng: random.Random, originals: Originals) -> Damage:
    count = rng.randrange(2, 201)
    size = len(originals.small)
    if rng.random() < 0.5:
        at = rng.randrange(size - count)
        return Damage(f"{count} random bytes from {at} on", ((at, rng.randbytes(count)),))
    patches = tuple((rng.randrange(size), rng.randbytes(1)) for _ in range(count))
    return Damage(f"{count} random bytes, the first at {patches[0][0]}", patches)


def _change_byte(rng: random.Random, originals: Originals) -> Damage:
    at, value = rng.randrange(len(originals.small)), rng.randrange(256)
    return Damage(f"byte {at} set to {value}", ((at, bytes([value])),))


def _make_page_patches(pages: dict[int, bytes]) -> tuple[tuple[int, bytes], ...]:
    return tuple((number * PAGE, page) for number, page in pages.items())


def _find_page_header(number: int) -> int:
    """Return the offset of a page's own header; on the first page it follows the file header."""
    return number * PAGE if number else DATABASE_HEADER_BYTES


def _list_cell_pointers(originals: Originals, number: int) -> Sequence[int]:
    """Return the offsets of a page's cell pointers; without cells, the offset of the first."""
    header = _find_page_header(number)
    is_interior = originals.small[header] in {2, 5}
    count = int.from_bytes(originals.small[header + 3 : header + 5])
    first = header + (12 if is_interior else 8)
    return range(first, first + 2 * max(1, min(count, 1000)), 2)


KINDS: tuple[Callable[[random.Random, Originals], Damage], ...] = (
    _truncate,
    _truncate_with_header,
    _swap_pages,
    _copy_page,
    _shift_page,
    _splice_pages,
    _misplace_page,
    _zero_sectors,
    _change_header,
    _change_page_header,
    _change_cell_pointer,
    _swap_cells,
    _change_cell,
    _write_random_bytes,
    _change_byte,
    _flip_bit,
)


@dataclass(frozen=True, slots=True)
class _Prepared:
    originals: Originals
    path: str
    of_small: Sequence[Answer]
    of_other: Sequence[Answer]


@cache
def _prepare() -> _Prepared:
    """Build two small snapshots, and ask both, once a process."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        small, other = (build_small_snapshot(Path(name, str(seed)), seed) for seed in (1, 2))
        originals = Originals(small.read_bytes(), other.read_bytes(), _find_root_page(small))
        assert len(originals.small) == len(originals.other) == originals.pages * PAGE
        assert _find_root_page(other) == originals.root_page
    path = str(Path(_create_directory().name, "damaged.db"))
    answers = []
    for content in (originals.small, originals.other):
        Path(path).write_bytes(content)
        answers.append(ask_everything(path))
    assert not [answer for answer in answers[0] if is_refusal(answer, path)]
    return _Prepared(originals, path, *answers)


@cache
def _create_directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(dir=MEMORY)


def _find_root_page(path: Path) -> int:
    query = "SELECT rootpage FROM sqlite_schema WHERE name = 'snapshot'"
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute(query).fetchone()
    return int(page) - 1


def _run_block(rng: random.Random, count: int) -> Result:
    prepared = _prepare()
    counts: Counter[str] = Counter()
    failures = []
    for number in range(count):
        damage = KINDS[number % len(KINDS)](rng, prepared.originals)
        outcome, findings = _run_case(prepared, damage)
        counts[outcome] += 1
        failures += [f"{damage.text}: {finding}" for finding in findings]
    return Result(count, counts, tuple(failures))


def _run_case(prepared: _Prepared, damage: Damage) -> tuple[str, list[str]]:
    path = Path(prepared.path)
    damaged = damage.apply_to(prepared.originals.small)
    path.write_bytes(damaged)
    found = ask_everything(prepared.path)
    truth = prepared.of_other if damage.is_other else prepared.of_small
    findings = find_wrong_answers(found, truth, prepared.path)
    if os.listdir(path.parent) != [path.name] or path.read_bytes() != damaged:
        findings.append("reading created or changed a file")
    if findings:
        return "wrong", findings
    is_refused = any(is_refusal(answer, prepared.path) for answer in found)
    return "refused" if is_refused else "the same answers", []


def _run(seed: int, count: int) -> Result:
    return run_in_blocks(_run_block, seed, count, size=1_000)


CAMPAIGN = Campaign(
    name="damage",
    promise="a damaged snapshot gives a correct answer or an error",
    run=_run,
    short=20,
    long=4_000,
    unit="damaged files",
)
