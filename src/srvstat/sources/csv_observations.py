"""Observations as CSV: the header `serverId,observedAt,players`, quotes as in RFC 4180."""

import re
from collections.abc import Iterator
from operator import itemgetter

from srvstat.contract.errors import SourceError
from srvstat.sources.batch import Batch, Row, RowError, judged
from srvstat.sources.source import Block, Source

HEADER = ("serverId", "observedAt", "players")

_FIELD = r'(?:"([^"]*)"|([^",]*))'
_ROW = re.compile(f"{_FIELD},{_FIELD},{_FIELD}")

# What nearly every line looks like; digits are few enough here to need no second look. Whatever
# it does not match is judged line by line.
_PLAIN_ROW = re.compile(
    r"^([A-Za-z0-9-]{1,128}),([0-9]{1,14}),(0|[1-9][0-9]{0,14})\r?$", re.MULTILINE
)

# A record as RFC 4180 has it, and one that ends within quotes, where two stand for one.
_ANY_FIELD = r'(?:"(?:[^"]|"")*+"|[^",]*+)'
_RECORD = re.compile(f"{_ANY_FIELD}(?:,{_ANY_FIELD})*+")
_OPEN_RECORD = re.compile(f'(?:{_ANY_FIELD},)*+"(?:[^"]|"")*+')

# No valid field holds a line break, so a quote that stays open this far was never closed.
_LONGEST_RECORD = 65_536

_HEADER_NEEDED = f"the header {','.join(HEADER)} is needed"

_Lines = list[tuple[int, str]]


def read(source: Source) -> Iterator[Batch]:
    """Read the observations of a source, a block at a time.

    Raises SourceError for a wrong header and for what `Source.blocks` refuses.
    """
    blocks = _after_header(source)
    pending: _Lines = []
    for block in blocks:
        batch = None if pending or '"' in block.text else _plain_batch(block)
        if batch is None:
            lines = pending + list(enumerate(block.text.split("\n"), block.first_line))
            records, pending = _records(lines, is_end=False)
            batch = _batch(records, lines)
        yield batch
    if pending:
        yield _batch(_records(pending, is_end=True)[0], pending)


def _after_header(source: Source) -> Iterator[Block]:
    """Check the first line that is not empty and hand on the blocks that follow it."""
    blocks = source.blocks()
    for block in blocks:
        lines = block.text.split("\n")
        at = next((at for at, line in enumerate(lines) if line.removesuffix("\r")), None)
        if at is None:
            continue
        if _fields(lines[at].removesuffix("\r")) != HEADER:
            raise source.refuse(block.first_line + at, _HEADER_NEEDED)
        yield Block(block.first_line + at + 1, "\n".join(lines[at + 1 :]))
        yield from blocks
        return
    raise SourceError(f"{source.title}: empty; {_HEADER_NEEDED}")


def _plain_batch(block: Block) -> Batch | None:
    """Read a block whose every line is plain, or return None."""
    rows = _PLAIN_ROW.findall(block.text)
    if len(rows) != block.text.count("\n") + 1:
        return None
    observations = [(server_id, int(at), int(players)) for server_id, at, players in rows]
    lines = range(block.first_line, block.first_line + len(rows))
    latest = max(map(itemgetter(1), observations))
    return Batch(observations, lines, (), latest, block.text, block.first_line)


def _records(lines: _Lines, *, is_end: bool) -> tuple[list[_Lines], _Lines]:
    """Cut lines into records and return with them the lines whose quote may yet be closed."""
    records: list[_Lines] = []
    at = 0
    while at < len(lines):
        length = _record_length(lines, at)
        if length is None and not is_end:
            return records, lines[at:]
        # A quote that is never closed costs its own line; the lines below are read on their own.
        records.append(lines[at : at + (length or 1)])
        at += length or 1
    return records, []


def _record_length(lines: _Lines, start: int) -> int | None:
    """Return how many lines a record has: 1 unless RFC 4180 lets it have more.

    None means that the lines end before its quote is closed.
    """
    is_open = False
    size = 0
    for at in range(start, len(lines)):
        # A line within quotes reads like one that begins with a quote.
        text = f'"{lines[at][1]}' if is_open else lines[at][1]
        if _RECORD.fullmatch(text.removesuffix("\r")):
            return at - start + 1
        is_open = _OPEN_RECORD.fullmatch(text) is not None
        size += len(text)
        if not is_open or size > _LONGEST_RECORD:
            return 1
    return None


def _batch(records: list[_Lines], lines: _Lines) -> Batch:
    texts = ((record[0][0], "\n".join(line for _, line in record)) for record in records)
    return judged(texts, _row, "\n".join(line for _, line in lines), lines[0][0])


def _row(text: str) -> Row:
    fields = _fields(text)
    if fields is None:
        raise RowError(_misshape(text))
    return Row(*fields)


def _fields(text: str) -> tuple[str, ...] | None:
    """Return the three fields of a record, without their quotes."""
    if '"' not in text:
        plain = tuple(text.split(","))
        return plain if len(plain) == len(HEADER) else None
    match = _ROW.fullmatch(text)
    if match is None:
        return None
    quoted, plain = match.groups()[::2], match.groups()[1::2]
    return tuple(map(_either, quoted, plain))


def _either(quoted: str | None, plain: str | None) -> str:
    return quoted if quoted is not None else plain or ""


def _misshape(text: str) -> str:
    if _OPEN_RECORD.fullmatch(text):
        return "a quote is opened and not closed"
    if '"' not in text:
        return f"{len(HEADER)} fields are needed, not {text.count(',') + 1}"
    return f"not {len(HEADER)} fields with quotes as in RFC 4180"
