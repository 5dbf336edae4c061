"""Read observations as CSV in the form of a mapping: long or wide, with any delimiter."""

from array import array
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import compress

from srvstat.contract.instants import InstantError
from srvstat.sources.batch import NO_COUNT, Batch, RowError, Runs
from srvstat.sources.csv_header import Columns, recognize_columns
from srvstat.sources.csv_records import parse_blocks, read_header
from srvstat.sources.source import Block, Source
from srvstat.sources.text_rows import Row, WideRow, parse_records, parse_wide_records
from srvstat.sources.values import ValueParser


def read(source: Source) -> Iterator[Batch]:
    """Read the observations of a source, a block at a time.

    Raises SourceError for a missing or repeated column and as `Source.read_blocks` does.
    """
    header = read_header(source, "a header")
    columns = recognize_columns(source, header)
    values = ValueParser(source.mapping)
    if source.mapping.is_wide:
        return parse_blocks(
            source,
            header.blocks,
            columns.form,
            partial(_parse_wide_block, columns, values),
            lambda _, records: parse_wide_records(
                source, records, lambda text: _split_wide_record(text, columns)
            ),
            has_text=lambda _: False,
        )
    return parse_blocks(
        source,
        header.blocks,
        columns.form,
        partial(_parse_long_block, columns, values),
        lambda block, records: parse_records(
            source, block, records, lambda text: _split_long_record(text, columns)
        ),
        has_text=lambda _: True,
    )


def _parse_long_block(columns: Columns, values: ValueParser, block: Block) -> Batch | None:
    """Parse a block of valid rows, one for each observation; return None for any other block."""
    cells = _split_cells(block, columns)
    if cells is None:
        return None
    server_ids, written, counts = (cells[at :: columns.width] for at in columns.wanted)
    try:
        instants = values.parse_instants(written)
        players = values.parse_counts(counts)
    except (InstantError, RowError):
        return None
    lines = range(block.first_line, block.first_line + len(instants))
    kept = [count for count in players if count is not None]
    if len(kept) == len(players):
        return Batch(server_ids, instants, kept, lines)
    is_kept = [count is not None for count in players]
    return Batch(
        list(compress(server_ids, is_kept)),
        list(compress(instants, is_kept)),
        kept,
        list(compress(lines, is_kept)),
        skipped={NO_COUNT: is_kept.count(False)},
    )


def _parse_wide_block(columns: Columns, values: ValueParser, block: Block) -> Batch | None:
    """Parse a block of valid rows of many servers; return None for any other block."""
    cells = _split_cells(block, columns)
    if cells is None:
        return None
    (time_at,) = columns.wanted
    server_columns = [cells[at :: columns.width] for at in columns.servers.values()]
    try:
        instants = array("q", values.parse_instants(cells[time_at :: columns.width]))
        counts = [values.parse_counts(column) for column in server_columns]
    except (InstantError, RowError):
        return None
    lines = array("q", range(block.first_line, block.first_line + len(instants)))
    all_instants, all_players, all_lines = (array("q") for _ in range(3))
    names, ends = [], []
    for name, players in zip(columns.servers, counts, strict=True):
        is_kept = [count is not None for count in players]
        if not any(is_kept):
            continue
        names.append(name)
        all_instants.extend(compress(instants, is_kept))
        all_players.extend(count for count in players if count is not None)
        all_lines.extend(compress(lines, is_kept))
        ends.append(len(all_lines))
    return Batch(Runs(names, ends), all_instants, all_players, all_lines)


def _split_cells(block: Block, columns: Columns) -> Sequence[str] | None:
    """Return the cells of all rows; None if a row has another number of cells or is empty."""
    delimiter, width = columns.form.delimiter, columns.width
    # Each line end becomes a cell, whose position shows how many cells its row has.
    text = f"{block.text}\n".replace("\r\n", "\n").replace("\n", f"{delimiter}\n{delimiter}")
    cells = text.split(delimiter)
    del cells[-1]
    rows = block.text.count("\n") + 1
    if len(cells) != rows * (width + 1) or cells[width :: width + 1].count("\n") != rows:
        return None
    del cells[width :: width + 1]
    return cells


def _split_long_record(text: str, columns: Columns) -> Row:
    fields = _split_fields(text, columns)
    return Row(*(fields[at] for at in columns.wanted))


def _split_wide_record(text: str, columns: Columns) -> WideRow:
    fields = _split_fields(text, columns)
    (time_at,) = columns.wanted
    return WideRow(fields[time_at], [(name, fields[at]) for name, at in columns.servers.items()])


def _split_fields(text: str, columns: Columns) -> Sequence[str]:
    fields = columns.form.split_fields(text)
    if fields is None or len(fields) != columns.width:
        raise RowError(columns.form.describe_problem(text, columns.width))
    return fields
