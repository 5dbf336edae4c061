"""Observations as CSV: the header `serverId,observedAt,players`, quotes as in RFC 4180."""

import re
from collections.abc import Iterator

from srvstat.contract.errors import SourceError
from srvstat.contract.instants import UTC_INSTANT, InstantError, parse_utc_instants
from srvstat.contract.requests import MAX_IDENTIFIER_LENGTH
from srvstat.sources.batch import Batch, Row, RowError, judged
from srvstat.sources.source import Block, Source

HEADER = ("serverId", "observedAt", "players")

_FIELD = r'(?:"([^"]*)"|([^",]*))'
_ROW = re.compile(f"{_FIELD},{_FIELD},{_FIELD}")

# What nearly every line looks like, whole blocks at a time. Digits are few enough here, and written
# as they would be written again, to need no second look. Any other block is judged line by line.
_PLAIN_ROWS, _UTC_ROWS = (
    re.compile(
        rf"(?:[A-Za-z0-9-]{{1,{MAX_IDENTIFIER_LENGTH}}},{instant},(?:0|[1-9][0-9]{{0,14}})\r?\n)*+"
    )
    for instant in (r"(?:0|[1-9][0-9]{0,13})", UTC_INSTANT)
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
    text = f"{block.text}\n"
    if is_integer := _PLAIN_ROWS.fullmatch(text) is not None:
        server_ids, written, players = _columns(text)
        instants = list(map(int, written))
    elif _UTC_ROWS.fullmatch(text):
        server_ids, written, players = _columns(text)
        try:
            instants = parse_utc_instants(written)
        except InstantError:
            return None
    else:
        return None
    return Batch(
        server_ids,
        instants,
        list(map(int, players)),
        range(block.first_line, block.first_line + len(server_ids)),
        rejects=(),
        latest_integer=max(instants) if is_integer else None,
        text=None if is_integer else block.text,
        first_line=block.first_line,
    )


def _columns(text: str) -> tuple[list[str], list[str], list[str]]:
    """Take plain lines apart."""
    fields = text.replace("\r", "").replace("\n", ",").split(",")
    return fields[:-1:3], fields[1::3], fields[2::3]


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
    quote_value, plain = match.groups()[::2], match.groups()[1::2]
    return tuple(map(_either, quote_value, plain))


def _either(quote_value: str | None, plain: str | None) -> str:
    return quote_value if quote_value is not None else plain or ""


def _misshape(text: str) -> str:
    if _OPEN_RECORD.fullmatch(text):
        return "a quote is opened and not closed"
    if '"' not in text:
        return f"{len(HEADER)} fields are needed, not {text.count(',') + 1}"
    return f"not {len(HEADER)} fields with quotes as in RFC 4180"
