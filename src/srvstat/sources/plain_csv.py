"""Parse plain CSV, most of all that is read, a block at a time.

A plain row has no quotes, its instant is an integer or in UTC, and its numbers have no more digits
than they need. Other rows are parsed one by one.
"""

import re

from srvstat.contract.identifiers import MAX_IDENTIFIER_LENGTH
from srvstat.contract.instants import UTC_INSTANT, YEAR_2001, InstantError, parse_utc_instants
from srvstat.sources.batch import Batch
from srvstat.sources.source import Block

# The digits are limited so that every value is valid and every integer is written in the only way.
_INTEGER_ROWS, _UTC_ROWS = (
    re.compile(
        rf"(?:[A-Za-z0-9-]{{1,{MAX_IDENTIFIER_LENGTH}}}+,{instant},(?:0|[1-9][0-9]{{0,14}}+)\r?+\n)*+"
    )
    for instant in (r"[1-9][0-9]{11,13}+", UTC_INSTANT)
)


def parse_plain_block(block: Block) -> Batch | None:
    """Return the rows of a block, without `find_text`; None if one of them is not plain."""
    text = f"{block.text}\n"
    if is_integer := _INTEGER_ROWS.fullmatch(text) is not None:
        server_ids, written, players = _split_columns(text)
        instants = list(map(int, written))
        if min(instants) < YEAR_2001:
            return None
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
        has_integers=is_integer,
    )


def _split_columns(text: str) -> tuple[list[str], list[str], list[str]]:
    """Return the columns of plain rows."""
    fields = text.replace("\r", "").replace("\n", ",").split(",")
    return fields[:-1:3], fields[1::3], fields[2::3]
