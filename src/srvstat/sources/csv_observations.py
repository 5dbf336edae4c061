"""Read observations as CSV, in our own form or in that of a mapping.

Our own form has the header `serverId,observedAt,players` and quotes as in RFC 4180.
"""

from collections.abc import Iterator

from srvstat.sources import csv_mapped
from srvstat.sources.batch import Batch, RowError
from srvstat.sources.column_names import list_names
from srvstat.sources.csv_header import DELIMITERS
from srvstat.sources.csv_records import get_form, parse_blocks, read_header
from srvstat.sources.plain_csv import parse_plain_block
from srvstat.sources.proposal import Sample
from srvstat.sources.source import Source
from srvstat.sources.text_rows import Row, parse_records

HEADER = ("serverId", "observedAt", "players")

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
        found = f", not the columns {list_names(fields)}" if fields else ""
        raise source.build_error(
            header.line,
            f"must be the header {_HEADER_TEXT}{found}; name other columns with --columns or"
            " --wide",
        )
    yield from parse_blocks(
        source,
        header.blocks,
        _FORM,
        parse_plain_block,
        lambda block, records: parse_records(source, block, records, _split_record),
        # Rows of integers can be written again as they are.
        has_text=lambda batch: not batch.has_integers,
    )


def read_sample(source: Source) -> Sample:
    """Return the first rows of a source, with the delimiter that divides it into most columns.

    Raises SourceError.
    """
    header = read_header(source, "a header")
    forms = [get_form(delimiter) for delimiter in DELIMITERS]
    form = max(forms, key=lambda each: len(each.split_fields(header.text) or ()))
    names = [name.strip(" ") for name in form.split_fields(header.text) or ()]
    lines = (line.removesuffix("\r") for _, line in next(header.blocks).split_lines())
    return Sample.from_rows(names, (form.split_fields(line) or () for line in lines if line))


def _split_record(text: str) -> Row:
    fields = _FORM.split_fields(text)
    if fields is None or len(fields) != len(HEADER):
        raise RowError(_FORM.describe_problem(text, len(HEADER)))
    return Row(*fields)
