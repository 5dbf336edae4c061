"""The ways to damage a file: each draws what is written over it, and where."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

PAGE = 16_384
SECTOR = 512
DATABASE_HEADER = 100
PAGE_COUNT_AT = 28
"""Where the header of a database says how many pages it has, in 4 bytes."""


@dataclass(frozen=True, slots=True)
class Originals:
    """A snapshot, and another of the same servers with other observations.

    `root_page` is the number of the page, counted from 0, that says which of the two a file is.
    """

    small: bytes
    other: bytes
    root_page: int

    @property
    def pages(self) -> int:
        """How many pages each of them has."""
        return len(self.small) // PAGE

    def page(self, number: int) -> bytes:
        """Return a page of the snapshot."""
        return self.small[number * PAGE : (number + 1) * PAGE]

    def page_of_other(self, number: int) -> bytes:
        """Return a page of the other one."""
        return self.other[number * PAGE : (number + 1) * PAGE]


@dataclass(frozen=True, slots=True)
class Damage:
    """What is done to a snapshot: bytes written at places of it, and then a cut.

    `is_other` says that the damaged file has become the other snapshot, or what is left of it.
    """

    text: str
    patches: tuple[tuple[int, bytes], ...]
    size: int | None = None
    is_other: bool = False

    def applied(self, original: bytes) -> bytes:
        """Return the damaged bytes."""
        damaged = bytearray(original)
        for at, patch in self.patches:
            damaged[at : at + len(patch)] = patch
        return bytes(damaged[: self.size])


def flipped(original: bytes, bit: int) -> Damage:
    """Flip a bit; they are numbered from the lowest of the first byte."""
    at, place = divmod(bit, 8)
    patch = bytes([original[at] ^ 1 << place])
    return Damage(f"bit {place} of byte {at} flipped", ((at, patch),))


def _cut(drawn: random.Random, originals: Originals) -> Damage:
    size = drawn.randrange(len(originals.small))
    return Damage(f"cut to {size} bytes", (), size)


def _cut_and_told(drawn: random.Random, originals: Originals) -> Damage:
    pages = drawn.randrange(1, originals.pages)
    told = (PAGE_COUNT_AT, pages.to_bytes(4))
    return Damage(f"cut to {pages} pages, as its header says", (told,), pages * PAGE)


def _swapped(drawn: random.Random, originals: Originals) -> Damage:
    first, second = drawn.sample(range(originals.pages), 2)
    patches = _pages({first: originals.page(second), second: originals.page(first)})
    return Damage(f"pages {first} and {second} swapped", patches)


def _duplicated(drawn: random.Random, originals: Originals) -> Damage:
    source, target = drawn.sample(range(originals.pages), 2)
    return Damage(
        f"page {source} copied over page {target}", _pages({target: originals.page(source)})
    )


def _shifted(drawn: random.Random, originals: Originals) -> Damage:
    number = drawn.randrange(originals.pages)
    page = originals.page(number)
    if drawn.random() < 0.5:
        return Damage(f"page {number} shifted to the right", _pages({number: b"\0" + page[:-1]}))
    return Damage(f"page {number} shifted to the left", _pages({number: page[1:] + b"\0"}))


def _spliced(drawn: random.Random, originals: Originals) -> Damage:
    count = drawn.randrange(1, originals.pages)
    numbers = sorted(drawn.sample(range(originals.pages), count))
    patches = _pages({number: originals.page_of_other(number) for number in numbers})
    is_other = originals.root_page in numbers
    return Damage(f"pages {numbers} of the other snapshot", patches, is_other=is_other)


def _misplaced(drawn: random.Random, originals: Originals) -> Damage:
    source, target = drawn.sample(range(originals.pages), 2)
    patches = _pages({target: originals.page_of_other(source)})
    return Damage(f"page {source} of the other snapshot as page {target}", patches)


def _zeroed(drawn: random.Random, originals: Originals) -> Damage:
    sectors = sorted(
        drawn.sample(range(len(originals.small) // SECTOR), drawn.choice((1, 1, 1, 2, 4)))
    )
    patches = tuple((sector * SECTOR, bytes(SECTOR)) for sector in sectors)
    return Damage(f"sectors {sectors} zeroed", patches)


def _header(drawn: random.Random, _originals: Originals) -> Damage:
    at, value = drawn.randrange(DATABASE_HEADER), drawn.randrange(256)
    return Damage(f"byte {at} of the header set to {value}", ((at, bytes([value])),))


def _page_header(drawn: random.Random, originals: Originals) -> Damage:
    """Change a page's kind, free block, count of cells, where they begin, or last child."""
    number = drawn.randrange(originals.pages)
    at, value = _b_tree_of(number) + drawn.randrange(12), drawn.randrange(256)
    return Damage(f"page {number}: byte {at} set to {value}", ((at, bytes([value])),))


def _cell_pointer(drawn: random.Random, originals: Originals) -> Damage:
    """Let a cell begin elsewhere in its page, at times where another cell does."""
    number = drawn.randrange(originals.pages)
    pointers = _pointers(originals, number)
    at = drawn.choice(pointers)
    another = drawn.choice(pointers)
    places = (
        drawn.randrange(PAGE).to_bytes(2),
        originals.small[another : another + 2],
        (int.from_bytes(originals.small[at : at + 2]) ^ 1 << drawn.randrange(14)).to_bytes(2),
    )
    place = drawn.choice(places)
    return Damage(f"page {number}: the cell pointer at {at} set to {place.hex()}", ((at, place),))


def _cells_swapped(drawn: random.Random, originals: Originals) -> Damage:
    """Change the order of two cells: the rows stay whole, and no longer stand in order."""
    number = drawn.randrange(originals.pages)
    first, second = drawn.choices(_pointers(originals, number), k=2)
    small = originals.small
    patches = ((first, small[second : second + 2]), (second, small[first : first + 2]))
    return Damage(f"page {number}: the cell pointers at {first} and {second} swapped", patches)


def _cell(drawn: random.Random, originals: Originals) -> Damage:
    """Change a byte of a cell, near its beginning where its row does."""
    number = drawn.randrange(originals.pages)
    pointer = drawn.choice(_pointers(originals, number))
    start = int.from_bytes(originals.small[pointer : pointer + 2]) % PAGE
    at = number * PAGE + min(start + drawn.randrange(drawn.choice((10, 100, 1000))), PAGE - 1)
    value = drawn.randrange(256)
    return Damage(f"page {number}: byte {at} of a cell set to {value}", ((at, bytes([value])),))


def _random_bytes(drawn: random.Random, originals: Originals) -> Damage:
    count = drawn.randrange(2, 201)
    size = len(originals.small)
    if drawn.random() < 0.5:
        at = drawn.randrange(size - count)
        return Damage(f"{count} random bytes from {at} on", ((at, drawn.randbytes(count)),))
    patches = tuple((drawn.randrange(size), drawn.randbytes(1)) for _ in range(count))
    return Damage(f"{count} random bytes, the first at {patches[0][0]}", patches)


def _one_byte(drawn: random.Random, originals: Originals) -> Damage:
    at, value = drawn.randrange(len(originals.small)), drawn.randrange(256)
    return Damage(f"byte {at} set to {value}", ((at, bytes([value])),))


def _pages(pages: dict[int, bytes]) -> tuple[tuple[int, bytes], ...]:
    return tuple((number * PAGE, page) for number, page in pages.items())


def _b_tree_of(number: int) -> int:
    """Return where a page's own header begins; the first page has the database's before it."""
    return number * PAGE if number else DATABASE_HEADER


def _pointers(originals: Originals, number: int) -> Sequence[int]:
    """Return where the cell pointers of a page lie, and its first bytes where it has no cells."""
    header = _b_tree_of(number)
    is_interior = originals.small[header] in {2, 5}
    count = int.from_bytes(originals.small[header + 3 : header + 5])
    first = header + (12 if is_interior else 8)
    return range(first, first + 2 * max(1, min(count, 1000)), 2)


KINDS: tuple[Callable[[random.Random, Originals], Damage], ...] = (
    _cut,
    _cut_and_told,
    _swapped,
    _duplicated,
    _shifted,
    _spliced,
    _misplaced,
    _zeroed,
    _header,
    _page_header,
    _cell_pointer,
    _cells_swapped,
    _cell,
    _random_bytes,
    _one_byte,
)
