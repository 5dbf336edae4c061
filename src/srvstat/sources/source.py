"""An input: its name and kind, its text in blocks of lines, and its observations in batches."""

import errno
import gzip
import io
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import NamedTuple, Self

import numpy as np

from srvstat.contract.arrays import Numbers
from srvstat.contract.errors import SourceError, UsageError
from srvstat.files.paths import convert_errors
from srvstat.files.reading import STDIN, OnBytes, format_title, is_url, open_input
from srvstat.sources import registry
from srvstat.sources.mapping import STRICT, ColumnMapping
from srvstat.sources.values import NO_COUNT, RowError, check_identifier, is_utf8

# A process substitution such as <(zcat week.gz), or another descriptor that a shell opened.
_DESCRIPTOR_NAME = re.compile("/dev/fd/[0-9]+|/proc/(self|[0-9]+)/fd/[0-9]+")
_GZIP_MAGIC = b"\x1f\x8b"
MAX_LINE_BYTES = 1 << 20
"""Longer lines are refused, so that an input can't exhaust memory."""
BLOCK_BYTES = 1 << 17

_UNENDED = "the last line has no newline, so it may be cut off; add one if the line is complete"

IN_MEMORY = ":memory:"
"""DuckDB's name of a database that is not a file."""


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Whole lines, joined by newlines, and the number of the first one, counted from 1."""

    first_line: int
    text: str

    def split_lines(self) -> Iterator[tuple[int, str]]:
        """Return the lines with their numbers."""
        return enumerate(self.text.split("\n"), self.first_line)


@dataclass(frozen=True, slots=True)
class Source:
    """An input file, standard input or a database, and the name of its kind.

    `name` is a path, `-` or a URL. `mapping` says what its columns mean, and `query` is an SQL
    query that returns them. `folder` is the folder that was named, if the file was found in it.
    With `accepts_any_id`, identifiers may have a form that the contract does not allow; the build
    judges them.

    `on_bytes` is called with the number of stored bytes after each read. `on_warning` is called
    with one line about a possible defect that does not stop the reading. `keep_text` is called with
    each block whose original text can't be restored from its observations.
    """

    name: str
    kind: str
    mapping: ColumnMapping = STRICT
    query: str | None = None
    folder: str | None = None
    accepts_any_id: bool = False
    on_bytes: OnBytes | None = None
    on_warning: Callable[[str], None] | None = None
    keep_text: Callable[[TextBlock], None] | None = None

    @classmethod
    def from_name(cls, name: str, default: str | None, mapping: ColumnMapping = STRICT) -> Self:
        """Return the source with a name, of the kind of its extension or of the default kind.

        Raises UsageError if there is neither, MissingLibraryError.
        """
        title = format_title(name)
        found = default
        if is_url(name):
            found = registry.SCHEMES.get(name.partition(":")[0].lower())
            if found is None:
                known = ", ".join(registry.SCHEMES)
                raise UsageError(f"{title}: unknown kind of URL; use one of {known}")
        elif name != STDIN:
            extension = os.path.splitext(name.lower().removesuffix(".gz"))[1]
            is_folder = default is None and os.path.isdir(name)
            found = registry.EXTENSIONS.get(
                extension, registry.FOLDER_KIND if is_folder else default
            )
        if found is None:
            if name != STDIN:  # a missing folder has no format
                with convert_errors(title, UsageError):
                    os.stat(name)
            known = " or ".join(registry.TEXT_KINDS)
            raise UsageError(f"{title}: unknown format; add --format {known}, or --from KIND")
        registry.load_reader(found)  # now, because a signal must not interrupt an import
        return cls(name, found, mapping)

    @property
    def given_title(self) -> str:
        """The title of what the user named: for a file found in a folder, the folder."""
        return self.title if self.folder is None else format_title(self.folder)

    @property
    def server_id(self) -> str:
        """The identifier of all rows of a source without a column of identifiers."""
        folder, name = os.path.split(self.title)
        stem = name.removesuffix(".gz").rpartition(".")[0] or name
        found = (self.mapping.server or "{file}").replace("{file}", stem)
        return found.replace("{folder}", os.path.basename(folder))

    @property
    def is_in_memory(self) -> bool:
        """Whether the source is a query without a database of its own."""
        return self.kind == "duckdb" and self.name == IN_MEMORY

    @property
    def title(self) -> str:
        """The name as valid Unicode, without secrets; other bytes are escaped."""
        return "query" if self.is_in_memory else format_title(self.name)

    @property
    def stored_name(self) -> str:
        """The name that a snapshot stores, without directory or descriptor number."""
        if self.name == "/dev/stdin":
            return format_title(STDIN)
        if _DESCRIPTOR_NAME.fullmatch(self.name):
            return "file descriptor"
        if is_url(self.name):
            return self.title
        return os.path.basename(self.given_title.rstrip(os.sep))

    def get_size(self) -> int | None:
        """Return the size of a regular file in bytes, as stored, and None for any other input.

        It is None for a DuckDB database, too, because the part that a query reads is unknown.
        """
        if self.kind == "duckdb":
            return None
        try:
            status = os.stat(self.name)
        except (OSError, ValueError):
            return None
        return status.st_size if stat.S_ISREG(status.st_mode) and self.name != STDIN else None

    def check_regular(self) -> None:
        """Check that a library can open the source: it would wait for the writer of a FIFO.

        Raises SourceError.
        """
        with convert_errors(self.title, SourceError):
            is_regular = self.name != STDIN and stat.S_ISREG(os.stat(self.name).st_mode)
        if not is_regular:
            raise SourceError(f"{self.title}: not a regular file; name a file")

    def report_rows(self, done: int, more: int, total: int) -> None:
        """Report the share of the stored bytes that `more` rows have, after the first `done`."""
        if self.on_bytes and total > 0:
            size = self.get_size() or 0
            self.on_bytes(size * (done + more) // total - size * done // total)

    def format_place(self, place: int) -> str:
        """Return a place for messages: a line of a text, or a row of any other source."""
        return f"{self.title}, {'line' if self.kind in registry.TEXT_KINDS else 'row'} {place}"

    def build_error(self, place: int, reason: str) -> SourceError:
        """Return the error for a place that makes the source unusable."""
        return SourceError(f"{self.format_place(place)}: {reason}")

    def read_blocks(self, *, warn_if_unended: bool = False) -> Iterator[TextBlock]:
        """Read the text, a block of whole lines at a time.

        Gzip is recognized by its first bytes. One byte order mark at the start is skipped.
        `warn_if_unended` warns of a last line without a newline.

        Raises SourceError if the input can't be read, is truncated gzip data, is not UTF-8 or has a
        line that is too long.
        """
        line, rest = 1, b""
        with self._open() as stream:
            while chunk := self._read(stream, line):
                whole, newline, rest = (rest + chunk).rpartition(b"\n")
                # A chunk is shorter than the longest line, so only its first line can be too long.
                self._check_length(line, whole.partition(b"\n")[0])
                if newline:
                    yield self._decode(line, whole)
                    line += whole.count(b"\n") + 1
                self._check_length(line, rest)
        if rest:
            if self.on_warning and warn_if_unended:
                self.on_warning(self.build_error(line, _UNENDED).reason)
            yield self._decode(line, rest)

    def read_chunks(self) -> Iterator[bytes]:
        """Read the bytes, decompressed, in chunks of any length.

        Raises SourceError if the input can't be read or is truncated gzip data.
        """
        with self._open() as stream:
            while chunk := self._read(stream, None):
                yield chunk

    def read_lines(self) -> Iterator[tuple[int, str]]:
        """Read the lines that are not empty, with their numbers and without line ends."""
        for block in self.read_blocks():
            for number, line in block.split_lines():
                if text := line.removesuffix("\r"):
                    yield number, text

    @contextmanager
    def _open(self) -> Iterator[io.BufferedIOBase]:
        with open_input(self.name, self.on_bytes, fills_buffer=True) as stored:
            buffered = io.BufferedReader(stored, BLOCK_BYTES)
            is_gzip = buffered.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
            yield gzip.GzipFile(fileobj=buffered) if is_gzip else buffered

    def _read(self, stream: io.BufferedIOBase, line: int | None) -> bytes:
        """Read as much as one call returns, so that all text before a truncation is used."""
        try:
            return stream.read1(BLOCK_BYTES)
        except EOFError:
            reason = "the gzip data is cut off"
        except (zlib.error, gzip.BadGzipFile):
            reason = "the gzip data is damaged"
        if line is None:
            raise SourceError(f"{self.title}: {reason}")
        raise self.build_error(line, f"{reason} here")

    def _check_length(self, line: int, text: bytes) -> None:
        if len(text) > MAX_LINE_BYTES:
            raise self.build_error(line, f"longer than {MAX_LINE_BYTES:,} bytes")

    def _decode(self, line: int, text: bytes) -> TextBlock:
        try:
            decoded = text.decode("utf-8")
        except UnicodeDecodeError as error:
            at = line + text.count(b"\n", 0, error.start)
            raise self.build_error(at, "not UTF-8") from None
        return TextBlock(line, decoded.removeprefix("\ufeff") if line == 1 else decoded)


def list_stored_names(sources: Iterable[Source]) -> list[str]:
    """Return the names that a snapshot stores: a folder once, and other sources each."""
    names: list[str] = []
    for folder, group in groupby(sources, key=attrgetter("folder")):
        found = [source.stored_name for source in group]
        names += found if folder is None else found[:1]
    return names


def check_stdin_once(names: Iterable[str]) -> None:
    """Check that standard input is named at most once.

    Raises UsageError.
    """
    if [*names].count(STDIN) > 1:
        raise UsageError("standard input (-) can be read only once")


_MAX_VALUE_LENGTH = 100
"""The characters of a malformed value that are kept for messages."""


class Reject(NamedTuple):
    """A malformed row.

    `value` is the text of the value that is malformed, and `column` its column; None if the row as
    a whole is malformed. The column is also None if the mapping names it, or if there is none.
    `rows` is the number of rows that are lost, which are the counts of a wide row.
    """

    place: int
    reason: str
    text: str
    value: str | None = None
    column: str | None = None
    rows: int = 1

    def find_value(self) -> tuple[str, str | None]:
        """Return the value for messages and its column: the text of the row without a value."""
        if self.value is None:
            return cut_value(self.text), ""
        return cut_value(self.value), self.column


def cut_value(value: str) -> str:
    """Return the beginning of a value as text that can be stored: JSON can have lone surrogates."""
    return value[:_MAX_VALUE_LENGTH].encode("utf-8", "backslashreplace").decode("utf-8")


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive observations of a source in reading order, as columns of equal length.

    Row i is of the server `names[codes[i]]`; names are the identifiers as the source writes them,
    in the order in which they appear. `instants` are Unix milliseconds. A place is the number of a
    line or row in its source; places never descend, also from batch to batch, and only observations
    of different servers share one. `skipped` counts, by reason, the rows that are well-formed but
    no observations, such as a failed ping.
    """

    names: Sequence[str]
    codes: Numbers
    instants: Numbers
    players: Numbers
    places: Numbers
    rejects: Sequence[Reject] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[tuple[str, int, int, int]],
        rejects: Sequence[Reject] = (),
        skipped: Mapping[str, int] = MappingProxyType({}),
    ) -> Self:
        """Return a batch of rows, each an identifier, an instant, a player count and a place."""
        codes: dict[str, int] = {}
        numbers = [(codes.setdefault(name, len(codes)), *row) for name, *row in rows]
        of_codes, instants, players, places = np.array(numbers, np.int64).reshape(-1, 4).T.copy()
        return cls(list(codes), of_codes, instants, players, places, rejects, skipped)

    def count_rows(self) -> int:
        """Return the number of rows that were read: observations, and rows that are none."""
        return len(self.places) + self.count_rejected() + sum(self.skipped.values())

    def count_rejected(self) -> int:
        """Return the number of rows that are malformed."""
        return sum(reject.rows for reject in self.rejects)


class Row(NamedTuple):
    """The time of a record, and the player counts of servers, which are one unless it is wide.

    All are text.
    """

    observed_at: str
    players: Sequence[tuple[str, str]]


def parse_records(
    source: Source,
    block: TextBlock,
    records: Iterable[tuple[int, str]],
    split_record: Callable[[str], Row],
) -> Batch:
    """Parse the records of a block one by one, and keep the block's text if it has observations.

    Each record comes with the number of its first line; empty records are skipped. `split_record`
    returns the fields of a record or raises RowError.

    A malformed time of a wide record rejects all its counts, and a malformed count only itself.
    Empty counts of a wide record are no rows, and its text is not kept.
    """
    mapping = source.mapping
    found: list[tuple[str, int, int, int]] = []
    rejects: list[Reject] = []
    without_count = 0
    texts = ((line, text.removesuffix("\r")) for line, text in records)
    for line, record in filter(itemgetter(1), texts):
        lost = 1
        try:
            observed_at, players = split_record(record)
            if mapping.is_wide:
                lost = sum(bool(written.strip()) for _, written in players) or 1
            elif mapping.is_strict and not source.accepts_any_id:
                check_identifier(players[0][0])
            instant = mapping.parse_time(observed_at)
        except RowError as error:
            rejects.append(Reject(line, str(error), record, error.value, rows=lost))
            continue
        for server_id, written in players:
            try:
                count = mapping.parse_count(written)
            except RowError as error:
                cell = f"{server_id},{observed_at},{written}" if mapping.is_wide else record
                column = server_id if mapping.is_wide else None
                rejects.append(Reject(line, str(error), cell, error.value, column))
                continue
            if count is not None:
                found.append((server_id, instant, count, line))
            elif not mapping.is_wide:
                without_count += 1
    if found and source.keep_text and not mapping.is_wide:
        source.keep_text(block)
    return Batch.from_rows(found, rejects, {NO_COUNT: without_count} if without_count else {})


def renumber(codes: Numbers) -> tuple[Numbers, Numbers]:
    """Return the codes that occur, in ascending order, and each code's position among them."""
    is_used = np.bincount(codes) > 0
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[codes]


def read_batches(source: Source) -> Iterator[Batch]:
    """Read the observations of a source, a batch at a time.

    Raises SourceError if the source can't be read or is not of its kind.
    """
    batches: Iterator[Batch] = registry.load_reader(source.kind)(source)
    return batches


def check_sources(sources: Sequence[Source]) -> None:
    """Check files, before any of them is read: that they may be read, and that folders fit.

    Raises SourceError.
    """
    for source in sources:
        is_file = source.name != STDIN and not source.is_in_memory and not is_url(source.name)
        # A server's name in another form than a URL could have a password.
        if is_file and source.kind != "postgresql":
            with convert_errors(source.title, SourceError):
                os.stat(source.name)
                if not os.access(source.name, os.R_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    in_folders = [source for source in sources if source.folder is not None]
    for (kind, _), files in groupby(in_folders, key=attrgetter("kind", "folder")):
        registry.load_function(kind, "srvstat.sources.parquet:check_types")(files)


def split_folder(source: Source) -> list[Source]:
    """Return the files of a folder as sources, and any other source as it is.

    Raises SourceError.
    """
    if source.kind != registry.FOLDER_KIND or not os.path.isdir(source.name):
        return [source]
    found: list[Source] = registry.load_function(
        registry.FOLDER_KIND, "srvstat.sources.parquet:list_files"
    )(source)
    return found


TABLE = "observations"
"""The table that is read if there is no query."""

NO_TABLE = f"no table {TABLE}; choose other rows with --query"
"""The reason to refuse a database without that table."""


def build_query(source: Source) -> str:
    """Return the query of a source, for use as a subquery; it may end in a comment.

    Raises SourceError for bytes that are not UTF-8, which Python keeps as lone surrogates.
    """
    if source.query is None:
        return f"SELECT * FROM {TABLE}"  # noqa: S608 - a constant
    if not is_utf8(source.query):
        raise SourceError(f"{source.title}: the query is not UTF-8")
    return source.query.rstrip("; \t\r\n")


def quote_identifier(name: str) -> str:
    """Return a name as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
