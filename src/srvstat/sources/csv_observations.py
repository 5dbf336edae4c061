"""Read observations as CSV, in our own form or in that of a mapping.

Our own form has the header `serverId,observedAt,players` and quotes as in RFC 4180.
"""

import re
from collections.abc import Iterator

from srvstat.contract.instants import UTC_INSTANT, InstantError, parse_utc_instants
from srvstat.contract.requests import MAX_IDENTIFIER_LENGTH
from srvstat.sources import csv_mapped
from srvstat.sources.batch import Batch, RowError
from srvstat.sources.csv_records import get_form, parse_blocks, read_header
from srvstat.sources.source import Block, Source
from srvstat.sources.text_rows import Row, parse_records

HEADER = ("serverId", "observedAt", "players")

# A block of plain rows is parsed at once. These patterns limit the digits, so that every value is
# valid and every integer has the form in which it is written again. Other blocks are parsed record
# by record.
_PLAIN_ROWS, _UTC_ROWS = (
    re.compile(
        rf"(?:[A-Za-z0-9-]{{1,{MAX_IDENTIFIER_LENGTH}}},{instant},(?:0|[1-9][0-9]{{0,14}})\r?\n)*+"
    )
    for instant in (r"(?:0|[1-9][0-9]{0,13})", UTC_INSTANT)
)

_HEADER_TEXT = ",".join(HEADER)

_FORM = get_form(",")


def read(source: Source) -> Iterator[Batch]:
    """Read the observations of a source, a block at a time.

    Raises SourceError for a wrong header and as `Source.read_blocks` does.
    """
    if not source.mapping.is_strict:
        yield from csv_mapped.read(source)
        return
    header = read_header(source, f"the header {_HEADER_TEXT}")
    fields = _FORM.split_fields(header.text)
    if fields is None or tuple(fields) != HEADER:
        raise source.build_error(header.line, f"must be the header {_HEADER_TEXT}")
    yield from parse_blocks(
        header.blocks,
        _FORM,
        lambda block: _parse_plain_block(source, block),
        lambda block, records: parse_records(source, block, records, _split_record),
    )


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


def _split_record(text: str) -> Row:
    fields = _FORM.split_fields(text)
    if fields is None or len(fields) != len(HEADER):
        raise RowError(_FORM.describe_problem(text, len(HEADER)))
    return Row(*fields)
