"""Open an input by its name, decompress it, and cut it into blocks of whole lines."""

import errno
import gzip
import io
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Self

from srvstat.contract.errors import SourceError, UsageError
from srvstat.files.paths import convert_errors
from srvstat.files.reading import STDIN, Input, format_title, is_url, open_input
from srvstat.sources.mapping import STRICT, ColumnMapping
from srvstat.sources.registry import EXTENSIONS, FOLDER_KIND, SCHEMES, TEXT_KINDS, load_reader

# A process substitution such as <(zcat week.gz), or another descriptor that a shell opened.
_DESCRIPTOR_NAME = re.compile("/dev/fd/[0-9]+|/proc/(self|[0-9]+)/fd/[0-9]+")
_GZIP_MAGIC = b"\x1f\x8b"
MAX_LINE_BYTES = 1 << 20
"""Longer lines are refused, so that an input can't exhaust memory."""
_BLOCK_BYTES = 1 << 17

_UNENDED = "the last line has no newline, so it may be cut off; add one if the line is complete"

IN_MEMORY = ":memory:"
"""DuckDB's name of a database that is not a file."""


@dataclass(frozen=True, slots=True)
class Block:
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
    each block that has observations whose text is not that of their columns as CSV.
    """

    name: str
    kind: str
    mapping: ColumnMapping = STRICT
    query: str | None = None
    folder: str | None = None
    accepts_any_id: bool = False
    on_bytes: Callable[[int], None] | None = None
    on_warning: Callable[[str], None] | None = None
    keep_text: Callable[[Block], None] | None = None

    @classmethod
    def from_name(cls, name: str, default: str | None, mapping: ColumnMapping = STRICT) -> Self:
        """Return the source with a name, of the kind of its extension or of the default kind.

        Raises UsageError if there is neither, MissingLibraryError.
        """
        stem = name.lower().removesuffix(".gz")
        found = default
        if is_url(name):
            found = SCHEMES.get(name.partition(":")[0].lower())
            if found is None:
                raise UsageError(
                    f"{format_title(name)}: unknown kind of URL; use one of {', '.join(SCHEMES)}"
                )
        elif name != STDIN:
            is_folder = default is None and os.path.isdir(name)
            found = EXTENSIONS.get(os.path.splitext(stem)[1], FOLDER_KIND if is_folder else default)
        if found is None:
            title = format_title(name)
            if name != STDIN:  # a missing folder has no format
                with convert_errors(title, UsageError):
                    os.stat(name)
            raise UsageError(
                f"{title}: unknown format; add --format {' or '.join(TEXT_KINDS)}, or --from KIND"
            )
        load_reader(found)  # now, because a signal must not interrupt an import
        return cls(name, found, mapping)

    @property
    def given_title(self) -> str:
        """The title of what the user named: for a file found in a folder, the folder."""
        return self.title if self.folder is None else format_title(self.folder)

    @property
    def is_in_memory(self) -> bool:
        """Whether the source is a query without a database of its own."""
        return self.kind == "duckdb" and self.name == IN_MEMORY

    @property
    def title(self) -> str:
        """The name as valid Unicode, without secrets; other bytes are escaped."""
        if self.is_in_memory:
            return "query"
        return format_title(self.name)

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

    def report_rows(self, done: int, more: int, total: int) -> None:
        """Report the share of the stored bytes that `more` rows have, after the first `done`."""
        if self.on_bytes and total > 0:
            size = self.get_size() or 0
            self.on_bytes(size * (done + more) // total - size * done // total)

    def format_place(self, place: int) -> str:
        """Return a place for messages: a line of a text, or a row of any other source."""
        return f"{self.title}, {'line' if self.kind in TEXT_KINDS else 'row'} {place}"

    def build_error(self, place: int, reason: str) -> SourceError:
        """Return the error for a place that makes the source unusable."""
        return SourceError(f"{self.format_place(place)}: {reason}")

    def read_blocks(self, *, warn_if_unended: bool = False) -> Iterator[Block]:
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
        with open_input(self.name) as stored:
            counted = _CountedInput(stored, self.on_bytes, is_pipe=self.get_size() is None)
            buffered = io.BufferedReader(counted, _BLOCK_BYTES)
            is_gzip = buffered.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
            yield gzip.GzipFile(fileobj=buffered) if is_gzip else buffered

    def _read(self, stream: io.BufferedIOBase, line: int | None) -> bytes:
        """Read as much as one call returns, so that all text before a truncation is used."""
        try:
            return stream.read1(_BLOCK_BYTES)
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

    def _decode(self, line: int, text: bytes) -> Block:
        try:
            decoded = text.decode("utf-8")
        except UnicodeDecodeError as error:
            at = line + text.count(b"\n", 0, error.start)
            raise self.build_error(at, "not UTF-8") from None
        return Block(line, decoded.removeprefix("\ufeff") if line == 1 else decoded)


def list_stored_names(sources: Iterable[Source]) -> list[str]:
    """Return the names that a snapshot stores, that of a folder once for all of its files."""
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


def check_readable(sources: Iterable[Source]) -> None:
    """Check that files exist and may be read, before any of them is read.

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


class _CountedInput(io.RawIOBase):
    """The bytes of a file as stored; reports how many each read returns."""

    def __init__(
        self, stored: Input, on_bytes: Callable[[int], None] | None, *, is_pipe: bool
    ) -> None:
        self._stored = stored
        self._is_pipe = is_pipe
        self._on_bytes = on_bytes

    def readable(self) -> bool:
        """Return True, as io.BufferedReader requires."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # narrower than typeshed's buffer
        """Read from a file once, but from a pipe until the buffer is full or the pipe ends.

        A pipe returns at most 64 KiB at a time, and larger blocks take less time for each row.
        """
        count = self._stored.readinto(buffer)
        while 0 < count < len(buffer) and self._is_pipe:
            more = self._stored.readinto(buffer[count:])
            if not more:
                break
            count += more
        if self._on_bytes:
            self._on_bytes(count)
        return count
