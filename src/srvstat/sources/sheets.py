"""Read observations from a sheet of an Excel workbook (.xlsx)."""

import re
import zipfile
import zlib
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import IO, Any

import python_calamine as calamine

from srvstat.contract.errors import SourceError, UsageError
from srvstat.files.paths import convert_errors
from srvstat.sources.mapping import list_names
from srvstat.sources.source import BLOCK_BYTES, Batch, Source
from srvstat.sources.tables import SAMPLE_ROWS, Sample, Table, convert_table

_MAX_BYTES = 1 << 30
_MAX_CELLS = 1 << 25
"""The maximum decompressed size of a workbook in bytes, and the maximum number of cells of a
sheet.
"""

_WIDE = re.compile(rb"""\br\s*=\s*["'][A-Z]{2}""")
_CELL = re.compile(rb"""\br\s*=\s*["']([A-Z]{1,3})([0-9]{1,7})["']""")
_COUNT = re.compile(rb"""ount\s*=\s*["']([0-9]+)""")
"""Match a cell reference such as B12, beyond column Z or in any column, and a number of texts."""


def read(source: Source) -> Iterator[Batch]:
    """Read the rows of the sheet that the mapping names, or else of the only sheet with rows.

    Raises SourceError if the workbook can't be read. Raises UsageError if the sheet is ambiguous.
    """
    return map(partial(convert_table, source), _read_tables(source, _open_sheet(source)))


def read_sample(source: Source) -> Sample:
    """Return the first rows of a sheet.

    Raises the errors of `read`.
    """
    sheet = _open_sheet(source)
    table = next(_read_tables(source, sheet))
    return Sample(f"Excel, sheet {sheet.name}", table, is_whole=sheet.height <= SAMPLE_ROWS)


def _open_sheet(source: Source) -> calamine.CalamineSheet:
    source.check_regular()
    try:
        with convert_errors(source.title, SourceError), open(source.name, "rb") as file:
            _check_size(source, file)
            file.seek(0)
            workbook = calamine.CalamineWorkbook.from_filelike(file)
            return _choose_sheet(source, workbook)
    except (calamine.CalamineError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        reason = " ".join(str(error).split())
        raise SourceError(f"{source.title}: can't be read as .xlsx: {reason}") from None


def _check_size(source: Source, file: IO[bytes]) -> None:
    """Check a workbook's decompressed size and the extent of its cells.

    The library holds a sheet in memory as a rectangle, however few cells have values, and ends the
    process if the rectangle is too large.

    Raises SourceError if the workbook is too large.
    """
    total = 0
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            last_row = last_column = 0
            rest = b""
            for part in _read_parts(archive, member):
                total += len(part)
                text = rest + part
                counts = map(int, _COUNT.findall(text))  # the library allocates the declared counts
                if _WIDE.search(text):  # a full sheet of 26 columns fits the limit
                    for column, row in _CELL.findall(text):
                        last_row = max(last_row, int(row))
                        last_column = max(last_column, _number_column(column))
                cells = max(last_row * last_column, *counts, 0)
                if total > _MAX_BYTES or cells > _MAX_CELLS:
                    raise SourceError(f"{source.title}: too large; save the sheet as CSV")
                rest = text[-64:]


def _read_parts(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    with archive.open(member) as content:
        while part := content.read(BLOCK_BYTES):
            yield part


def _number_column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - ord("A") + 1
    return number


def _choose_sheet(source: Source, workbook: calamine.CalamineWorkbook) -> calamine.CalamineSheet:
    wanted = source.mapping.table
    sheets = [
        workbook.get_sheet_by_name(sheet.name)
        for sheet in workbook.sheets_metadata
        if sheet.typ == calamine.SheetTypeEnum.WorkSheet
        and (
            sheet.visible == calamine.SheetVisibleEnum.Visible
            if wanted is None
            else wanted == sheet.name
        )
    ]
    if wanted is None:
        sheets = [sheet for sheet in sheets if sheet.height > 1]
    if len(sheets) != 1:
        names = list_names([sheet.name for sheet in sheets] or workbook.sheet_names)
        raise UsageError(f"{source.title}: name one of its sheets with --input-table: {names}")
    return sheets[0]


def _read_tables(source: Source, sheet: calamine.CalamineSheet) -> Iterator[Table]:
    """Read the rows of a sheet. Their places are Excel's row numbers.

    The header is the first row with two values, because a title may precede it.

    Raises SourceError if there is no header.
    """
    # Where points separate thousands, a decimal point would be misread.
    point = "," if source.mapping.thousands == "." else "."
    rows = (
        (at, [_format_cell(cell, point) for cell in row])
        for at, row in enumerate(sheet.iter_rows(), 1)
    )
    used = ((at, row) for at, row in rows if any(row))
    header = next((row for _, row in used if sum(map(bool, row)) > 1), None)
    if header is None:
        raise SourceError(f"{source.title}: sheet {sheet.name} has no columns")
    names = [name.strip() for name in header]
    while True:
        chunk = list(islice(used, SAMPLE_ROWS))
        columns = list(zip(*(row for _, row in chunk), strict=True)) or [()] * len(names)
        yield Table(names, columns, [at for at, _ in chunk])
        if len(chunk) < SAMPLE_ROWS:
            return


def _format_cell(value: Any, point: str) -> str:
    """Format a cell.

    A date at midnight becomes a date alone, so that a clock time column can follow.
    """
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() else repr(value).replace(".", point)
    return str(value)
