"""Read the XML written by `rrdtool dump`: one archive of a round-robin database.

The rows of an archive have no times of their own. The last row ends at the last whole interval
before the last update. Dumps can be large and are machine-written, so they are read in parts with
regular expressions, without an XML parser and its entities.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from srvstat.contract.errors import SourceError, UsageError
from srvstat.contract.time import LATEST
from srvstat.sources.source import MAX_LINE_BYTES, Batch, Source
from srvstat.sources.tables import SAMPLE_ROWS, Sample, Table, convert_table

_TIME = "time"
_USUAL = "AVERAGE"
_NUMBER = re.compile(rb"<(step|lastupdate)>\s*([0-9]{1,15})\s*</")
_NAME = re.compile(rb"<ds>\s*<name>\s*([^<]*?)\s*</name>")
_ARCHIVE = re.compile(rb"<cf>\s*([A-Z]+)\s*</cf>\s*<pdp_per_row>\s*([0-9]{1,9})\s*</pdp_per_row>")
_ROW = re.compile(rb"<row>(.*?)</row>", re.DOTALL)
_VALUE = re.compile(rb"<v>\s*([^<\s]*)\s*</v>")


class _Archive(NamedTuple):
    """An archive: its number, consolidation function, seconds per row and number of rows."""

    number: int
    function: str
    seconds: int
    rows: int

    @property
    def name(self) -> str:
        return f"{self.function}/{self.seconds}"


class _Database(NamedTuple):
    """A database: its data source names, its last update in Unix seconds, and its archives."""

    names: Sequence[str]
    last_update: int
    archives: Sequence[_Archive]


def read(source: Source) -> Iterator[Batch]:
    """Read the archive that the mapping names, or else the finest archive of averages.

    Raises SourceError if the source is not a complete dump. Raises UsageError if the archive is
    ambiguous.
    """
    database = _read_archives(source)
    tables = _read_tables(source, database, _choose(source, database))
    return map(partial(convert_table, source), tables)


def read_sample(source: Source) -> Sample:
    """Return the first rows of an archive.

    Raises the errors of `read`.
    """
    database = _read_archives(source)
    chosen = _choose(source, database)
    table = next(_read_tables(source, database, chosen))
    others = len(database.archives) - 1
    seconds = chosen.seconds
    every = f"{seconds // 60} min" if seconds % 60 == 0 else f"{seconds} s"
    form = f"RRD, {chosen.function} every {every}" + (f" of {others + 1} archives" * bool(others))
    return Sample(form, table, is_whole=chosen.rows <= SAMPLE_ROWS)


def _split(source: Source) -> Iterator[bytes]:
    """Read the text in parts that begin with a row, except for the first part."""
    rest = b""
    for chunk in source.read_chunks():
        part, tag, end = (rest + chunk).rpartition(b"<row>")
        if tag:
            yield part
        rest = tag + end
        if len(rest) > MAX_LINE_BYTES:
            raise SourceError(f"{source.title}: not a dump of RRDtool")
    if b"</rrd>" not in rest:
        raise SourceError(f"{source.title}: the dump of RRDtool is cut off")
    yield rest


def _read_archives(source: Source) -> _Database:
    names: list[str] = []
    numbers: dict[bytes, int] = {}
    archives: list[_Archive] = []
    for part in _split(source):
        before, *following = part.split(b"<rra>")
        if not archives:
            names += [name.decode("utf-8", "replace") for name in _NAME.findall(before)]
            numbers |= {key: int(number) for key, number in _NUMBER.findall(before)}
        else:
            archives[-1] = archives[-1]._replace(rows=archives[-1].rows + before.count(b"<row>"))
        for text in following:
            found = _ARCHIVE.search(text)
            if found is None or not {b"step", b"lastupdate"} <= numbers.keys():
                raise SourceError(f"{source.title}: not a dump of RRDtool")
            seconds = int(found[2]) * numbers[b"step"]
            archive = _Archive(len(archives), found[1].decode(), seconds, text.count(b"<row>"))
            archives.append(archive)
    used = [archive for archive in archives if archive.rows and archive.seconds]
    if not used or not names or numbers[b"lastupdate"] > LATEST // 1000:
        raise SourceError(f"{source.title}: the dump of RRDtool has no rows")
    return _Database(names, numbers[b"lastupdate"], used)


def _choose(source: Source, database: _Database) -> _Archive:
    wanted = source.mapping.table
    functions = {archive.function for archive in database.archives}
    usual = _USUAL if _USUAL in functions or len(functions) > 1 else functions.pop()
    found = [
        archive
        for archive in database.archives
        if wanted == archive.name or (wanted is None and archive.function == usual)
    ]
    if not found:
        listed = ", ".join(archive.name for archive in database.archives)
        raise UsageError(f"{source.title}: name one of its archives with --input-table: {listed}")
    return min(found, key=lambda archive: (archive.seconds, -archive.rows))


def _read_tables(source: Source, database: _Database, chosen: _Archive) -> Iterator[Table]:
    """Read the rows of an archive. The place of a row is its number in the archive, from 1."""
    names = [_TIME, *database.names]
    last = database.last_update // chosen.seconds * chosen.seconds
    first = last - (chosen.rows - 1) * chosen.seconds
    rows = enumerate(_read_rows(source, chosen, len(database.names)))
    while chunk := list(islice(rows, SAMPLE_ROWS)):
        numbers = np.array([number for number, _ in chunk])
        seconds = (first + numbers * chosen.seconds).astype("M8[s]")
        times = [f"{at}Z" for at in np.datetime_as_string(seconds).tolist()]
        columns = zip(*(row for _, row in chunk), strict=True)
        yield Table(names, [times, *columns], (numbers + 1).tolist())


def _read_rows(source: Source, chosen: _Archive, width: int) -> Iterator[list[str]]:
    number = -1
    for part in _split(source):
        for index, text in enumerate(part.split(b"<rra>")):
            number += index > 0
            for row in _ROW.findall(text) if number == chosen.number else ():
                cells = [value.decode("utf-8", "replace") for value in _VALUE.findall(row)]
                if len(cells) != width:
                    raise SourceError(f"{source.title}: a row of {chosen.name} lacks values")
                yield [*map(_format_value, cells)]


def _format_value(text: str) -> str:
    """Format a number without an exponent, such as 41 for 4.1000000000e+01. NaN becomes empty."""
    try:
        value = float(text or "nan")
    except ValueError:
        return text
    if value != value:  # noqa: PLR0124 - not a number
        return ""
    return f"{value:.0f}" if value.is_integer() else repr(value)
