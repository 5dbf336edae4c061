"""Read observations as CSV: the header `serverId,observedAt,players`, quotes as in RFC 4180."""

import re
from collections.abc import Iterator

from srvstat.contract.errors import SourceError
from srvstat.contract.instants import UTC_INSTANT, InstantError, parse_utc_instants
from srvstat.contract.requests import MAX_IDENTIFIER_LENGTH
from srvstat.sources.batch import Batch, Row, RowError, parse_records
from srvstat.sources.source import Block, Source

HEADER = ("serverId", "observedAt", "players")

_FIELD = r'(?:"([^"]*)"|([^",]*))'
_ROW = re.compile(f"{_FIELD},{_FIELD},{_FIELD}")

# A block of plain rows is parsed at once. These patterns limit the digits, so that every value is
# valid and every integer has the form in which it is written again. Other blocks are parsed record
# by record.
_PLAIN_ROWS, _UTC_ROWS = (
    re.compile(
        rf"(?:[A-Za-z0-9-]{{1,{MAX_IDENTIFIER_LENGTH}}},{instant},(?:0|[1-9][0-9]{{0,14}})\r?\n)*+"
    )
    for instant in (r"(?:0|[1-9][0-9]{0,13})", UTC_INSTANT)
)

# A record of RFC 4180, and the beginning of one that ends inside quotes; "" is an escaped quote.
_ANY_FIELD = r'(?:"(?:[^"]|"")*+"|[^",]*+)'
_RECORD = re.compile(f"{_ANY_FIELD}(?:,{_ANY_FIELD})*+")
_OPEN_RECORD = re.compile(f'(?:{_ANY_FIELD},)*+"(?:[^"]|"")*+')

# No valid field contains a line break, so a quote open for longer is an error.
_LONGEST_RECORD = 65_536

_HEADER_TEXT = ",".join(HEADER)

_Lines = list[tuple[int, str]]


def read(source: Source) -> Iterator[Batch]:
    """Read the observations of a source, a block at a time.

    Raises SourceError for a wrong header and as `Source.read_blocks` does.
    """
    blocks = _skip_header(source)
    pending: _Lines = []
    for block in blocks:
        batch = None if pending or '"' in block.text else _parse_plain_block(source, block)
        if batch is None:
            lines = [*pending, *block.split_lines()]
            records, pending = _group_lines(lines, is_end=False)
            batch = _parse_records(source, records, lines)
        yield batch
    if pending:
        yield _parse_records(source, _group_lines(pending, is_end=True)[0], pending)


def _skip_header(source: Source) -> Iterator[Block]:
    """Check the first line that is not empty, and yield what follows it."""
    # A row of CSV that is cut off may look complete.
    blocks = source.read_blocks(warn_if_unended=True)
    for block in blocks:
        lines = block.text.split("\n")
        at = next((at for at, line in enumerate(lines) if line.removesuffix("\r")), None)
        if at is None:
            continue
        if _split_fields(lines[at].removesuffix("\r")) != HEADER:
            raise source.build_error(block.first_line + at, f"must be the header {_HEADER_TEXT}")
        yield Block(block.first_line + at + 1, "\n".join(lines[at + 1 :]))
        yield from blocks
        return
    raise SourceError(f"{source.title}: empty; must begin with the header {_HEADER_TEXT}")


def _parse_plain_block(source: Source, block: Block) -> Batch | None:
    """Parse a block of plain rows only; return None for any other block."""
    text = f"{block.text}\n"
    if is_integer := _PLAIN_ROWS.fullmatch(text) is not None:
        server_ids, written, players = _split_columns(text)
        instants = list(map(int, written))
    elif _UTC_ROWS.fullmatch(text):
        server_ids, written, players = _split_columns(text)
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
        find_text=None if is_integer else source.keep_text(block),
        latest_integer=max(instants) if is_integer else None,
    )


def _split_columns(text: str) -> tuple[list[str], list[str], list[str]]:
    """Return the columns of plain rows."""
    fields = text.replace("\r", "").replace("\n", ",").split(",")
    return fields[:-1:3], fields[1::3], fields[2::3]


def _group_lines(lines: _Lines, *, is_end: bool) -> tuple[list[_Lines], _Lines]:
    """Group lines into records; return also the last lines, whose quote may still be closed."""
    records: list[_Lines] = []
    at = 0
    while at < len(lines):
        length = _measure_record(lines, at)
        if length is None and not is_end:
            return records, lines[at:]
        # A quote that is never closed invalidates its own line only.
        records.append(lines[at : at + (length or 1)])
        at += length or 1
    return records, []


def _measure_record(lines: _Lines, start: int) -> int | None:
    """Return the number of lines of a record, or None if the lines end before its quote does.

    A record with misplaced quotes, or with one that stays open for too long, is one line.
    """
    is_open = False
    size = 0
    for at in range(start, len(lines)):
        # A line inside quotes parses like one that begins with a quote.
        text = f'"{lines[at][1]}' if is_open else lines[at][1]
        if _RECORD.fullmatch(text.removesuffix("\r")):
            return at - start + 1
        is_open = _OPEN_RECORD.fullmatch(text) is not None
        size += len(text)
        if not is_open or size > _LONGEST_RECORD:
            return 1
    return None


def _parse_records(source: Source, records: list[_Lines], lines: _Lines) -> Batch:
    texts = ((record[0][0], "\n".join(line for _, line in record)) for record in records)
    block = Block(lines[0][0], "\n".join(line for _, line in lines))
    return parse_records(source, block, texts, _split_record)


def _split_record(text: str) -> Row:
    fields = _split_fields(text)
    if fields is None:
        raise RowError(_describe_form(text))
    return Row(*fields)


def _split_fields(text: str) -> tuple[str, ...] | None:
    """Return the three fields of a record without their quotes, or None for another form."""
    if '"' not in text:
        fields = tuple(text.split(","))
        return fields if len(fields) == len(HEADER) else None
    match = _ROW.fullmatch(text)
    if match is None:
        return None
    quoted, plain = match.groups()[::2], match.groups()[1::2]
    return tuple(map(_choose_field, quoted, plain))


def _choose_field(quoted: str | None, plain: str | None) -> str:
    return quoted if quoted is not None else plain or ""


def _describe_form(text: str) -> str:
    """Describe why a record does not have three fields."""
    if _OPEN_RECORD.fullmatch(text):
        return "a quote is not closed"
    if '"' not in text:
        return f"must have {len(HEADER)} fields, not {text.count(',') + 1}"
    return f"must be {len(HEADER)} fields, quoted as in RFC 4180"
