"""Read the records of CSV, quoted as in RFC 4180: the header, blocks of records, and fields."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from typing import NamedTuple

from srvstat.contract.errors import SourceError
from srvstat.sources.batch import Batch
from srvstat.sources.source import Block, Source

# No valid field contains a line break, so a quote open for longer is an error.
_LONGEST_RECORD = 65_536

_Lines = list[tuple[int, str]]

ParseBlock = Callable[[Block], Batch | None]
"""Parses a block without quotes; returns None for a block whose rows must be parsed one by one."""

ParseRecords = Callable[[Block, Iterable[tuple[int, str]]], Batch]
"""Parses records, each with the number of its first line. They are the whole text of the block."""


class Header(NamedTuple):
    """The first line that is not empty, its number, and the blocks of the lines after it."""

    line: int
    text: str
    blocks: Iterator[Block]


class CsvForm:
    """The form of records whose fields are separated by a delimiter."""

    def __init__(self, delimiter: str) -> None:
        between = re.escape(delimiter)
        # In quotes, "" is an escaped quote.
        field = f'(?:"(?:[^"]|"")*+"|[^"{between}]*+)'
        self.delimiter = delimiter
        self._record = re.compile(f"{field}(?:{between}{field})*+")
        # The beginning of a record that ends inside quotes.
        self._open_record = re.compile(f'(?:{field}{between})*+"(?:[^"]|"")*+')
        self._field = re.compile(f"({field}){between}")

    def is_complete(self, text: str) -> bool:
        """Return whether a text is a record."""
        return self._record.fullmatch(text) is not None

    def is_open(self, text: str) -> bool:
        """Return whether a text is the beginning of a record that ends inside quotes."""
        return self._open_record.fullmatch(text) is not None

    def split_fields(self, text: str) -> list[str] | None:
        """Return the fields of a record without their quotes, or None if it is not a record."""
        if '"' not in text:
            return text.split(self.delimiter)
        if not self.is_complete(text):
            return None
        fields: list[str] = self._field.findall(f"{text}{self.delimiter}")
        return [
            field[1:-1].replace('""', '"') if field.startswith('"') else field for field in fields
        ]

    def describe_problem(self, text: str, width: int) -> str:
        """Describe why a record does not have a number of fields."""
        if self.is_open(text):
            return "a quote is not closed"
        if '"' not in text:
            return f"must have {width} fields, not {text.count(self.delimiter) + 1}"
        return f"must be {width} fields, quoted as in RFC 4180"


@cache
def get_form(delimiter: str) -> CsvForm:
    """Return the form of records with a delimiter."""
    return CsvForm(delimiter)


def read_header(source: Source, expected: str) -> Header:
    """Read a source up to its header.

    Raises SourceError if all lines are empty, and as `Source.read_blocks` does.
    """
    # A row of CSV that is cut off may look complete.
    blocks = source.read_blocks(warn_if_unended=True)
    for block in blocks:
        lines = block.text.split("\n")
        at = next((at for at, line in enumerate(lines) if line.removesuffix("\r")), None)
        if at is not None:
            rest = Block(block.first_line + at + 1, "\n".join(lines[at + 1 :]))
            text = lines[at].removesuffix("\r")
            return Header(block.first_line + at, text, chain([rest], blocks))
    raise SourceError(f"{source.title}: empty; must begin with {expected}")


def parse_blocks(  # noqa: PLR0913 - how to parse, and what
    source: Source,
    blocks: Iterable[Block],
    form: CsvForm,
    parse_plain_block: ParseBlock,
    parse_records: ParseRecords,
    *,
    has_text: Callable[[Batch], bool],
) -> Iterator[Batch]:
    """Parse blocks to batches.

    `parse_plain_block` may be called in another process. `has_text` tells whether the text of its
    batch is kept. Blocks with quotes, and those that it returns None for, are divided into records.
    """
    pending: _Lines = []
    for block, plain in source.compute(partial(_parse_unquoted, parse_plain_block), blocks):
        if plain is not None and not pending:
            batch = replace(plain, find_text=source.keep_text(block)) if has_text(plain) else plain
        else:
            lines = [*pending, *block.split_lines()]
            records, pending = _group_lines(lines, form, is_end=False)
            batch = parse_records(_join_lines(lines), map(_join_record, records))
        yield batch
    if pending:
        records, _ = _group_lines(pending, form, is_end=True)
        yield parse_records(_join_lines(pending), map(_join_record, records))


def _parse_unquoted(parse_block: ParseBlock, block: Block) -> Batch | None:
    return None if '"' in block.text else parse_block(block)


def _join_lines(lines: _Lines) -> Block:
    return Block(lines[0][0], "\n".join(line for _, line in lines))


def _join_record(lines: _Lines) -> tuple[int, str]:
    return lines[0][0], "\n".join(line for _, line in lines)


def _group_lines(lines: _Lines, form: CsvForm, *, is_end: bool) -> tuple[list[_Lines], _Lines]:
    """Group lines into records; return also the last lines, whose quote may still be closed."""
    records: list[_Lines] = []
    at = 0
    while at < len(lines):
        length = _measure_record(lines, at, form)
        if length is None and not is_end:
            return records, lines[at:]
        # A quote that is never closed invalidates its own line only.
        records.append(lines[at : at + (length or 1)])
        at += length or 1
    return records, []


def _measure_record(lines: _Lines, start: int, form: CsvForm) -> int | None:
    """Return the number of lines of a record, or None if the lines end before its quote does.

    A record with misplaced quotes, or with one that stays open for too long, is one line.
    """
    is_open = False
    size = 0
    for at in range(start, len(lines)):
        # A line inside quotes parses like one that begins with a quote.
        text = f'"{lines[at][1]}' if is_open else lines[at][1]
        if form.is_complete(text.removesuffix("\r")):
            return at - start + 1
        is_open = form.is_open(text)
        size += len(text)
        if not is_open or size > _LONGEST_RECORD:
            return 1
    return None
