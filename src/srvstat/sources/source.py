"""An input: its name and kind, its text in blocks of lines, and its observations in batches."""

import codecs
import errno
import glob
import gzip
import io
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple, Self

from srvstat.contract.arrays import Numbers
from srvstat.contract.errors import SourceError, UsageError
from srvstat.files.paths import convert_errors
from srvstat.files.reading import STDIN, OnBytes, format_title, is_url, open_input
from srvstat.sources import recognition, registry
from srvstat.sources.mapping import STRICT, ColumnMapping
from srvstat.sources.values import is_utf8

# A process substitution such as <(zcat week.gz), or another descriptor opened by a shell.
_DESCRIPTOR_NAME = re.compile("/dev/fd/[0-9]+|/proc/(self|[0-9]+)/fd/[0-9]+")
MAX_LINE_BYTES = 1 << 20
"""Longer lines are rejected, so that an input can't exhaust memory."""
BLOCK_BYTES = 1 << 18

_UNENDED = "the last line has no newline, so it may be cut off; add one if the line is complete"

IN_MEMORY = ":memory:"
"""DuckDB's name for an in-memory database."""


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Whole lines, joined by newlines, and the number of the first line, counted from 1."""

    first_line: int
    text: str

    def split_lines(self) -> Iterator[tuple[int, str]]:
        """Return the lines with their numbers."""
        return enumerate(self.text.split("\n"), self.first_line)


@dataclass(frozen=True, slots=True)
class Source:
    """An input file, standard input or a database.

    - `name`: a path, `-` or a URL.
    - `kind`: the name of its kind in the registry.
    - `mapping`: the meaning of its columns.
    - `query`: an SQL query that returns those columns.
    - `folder`: the folder that the user named and that contains the file, or None.
    - `accepts_any_id`: whether identifiers may have a form that the contract does not allow. The
      build checks them.
    - `on_bytes`: called after each read with the number of stored bytes.
    - `on_warning`: called with one line about a possible defect that does not stop the reading.
    """

    name: str
    kind: str
    mapping: ColumnMapping = STRICT
    query: str | None = None
    folder: str | None = None
    accepts_any_id: bool = False
    on_bytes: OnBytes | None = None
    on_warning: Callable[[str], None] | None = None

    @classmethod
    def from_name(cls, name: str, default: str | None, mapping: ColumnMapping = STRICT) -> Self:
        """Return the source with this name.

        `default`: the kind of standard input and of files with an unknown extension. Without it,
        the content of a regular file determines its kind, and the extension determines the kind of
        any other file.

        Raises UsageError if the kind can't be determined. Raises SourceError if the content has no
        readable kind. Raises MissingLibraryError if a required library is not installed.
        """
        title = format_title(name)
        found = default
        if is_url(name):
            found = registry.SCHEMES.get(name.partition(":")[0].lower())
            if found is None:
                known = ", ".join(registry.SCHEMES)
                raise UsageError(f"{title}: unsupported URL; download the file, or use {known}")
        elif name != STDIN:
            stem = _strip_compression(name.lower())
            found = registry.EXTENSIONS.get(os.path.splitext(stem)[1]) or default
            if default is None:
                found = _recognize(cls(name, found or "csv", mapping), found)
        if found is None:
            if name != STDIN:  # a missing folder has no format
                with convert_errors(title, SourceError):
                    os.stat(name)
            known = " or ".join(registry.TEXT_KINDS)
            raise UsageError(
                f"{title}: unknown format; add --input-format {known}, or --source KIND"
            )
        registry.load_reader(found)  # now, because a signal must not interrupt an import
        return cls(name, found, mapping)

    @property
    def given_title(self) -> str:
        """The title of what the user named: the folder in which a file was found, or the file."""
        return self.title if self.folder is None else format_title(self.folder)

    @property
    def server_id(self) -> str:
        """The identifier of all rows if the source has no identifier column."""
        folder, name = os.path.split(os.path.abspath(self.title))
        stem = os.path.splitext(_strip_compression(name))[0]
        found = (self.mapping.server or "{file}").replace("{file}", stem)
        return found.replace("{folder}", os.path.basename(folder))

    @property
    def is_in_memory(self) -> bool:
        """Whether the source is a query without a database."""
        return self.kind == "duckdb" and self.name == IN_MEMORY

    @property
    def title(self) -> str:
        """The name as valid Unicode, without secrets. Invalid bytes are escaped."""
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
        """Return a regular file's size in bytes, as stored, or None for any other input.

        It is None for a DuckDB database, because the share that a query reads is unknown.
        """
        if self.kind == "duckdb":
            return None
        try:
            status = os.stat(self.name)
        except (OSError, ValueError):
            return None
        return status.st_size if stat.S_ISREG(status.st_mode) and self.name != STDIN else None

    def check_regular(self) -> None:
        """Check that a library can open the source. On a FIFO it would wait for a writer.

        Raises SourceError if the source is not a regular file.
        """
        with convert_errors(self.title, SourceError):
            is_regular = self.name != STDIN and stat.S_ISREG(os.stat(self.name).st_mode)
        if not is_regular:
            raise SourceError(f"{self.title}: not a regular file; name a file")

    def report_rows(self, done: int, more: int, total: int) -> None:
        """Report progress in bytes: the estimated size of the `more` rows after `done` rows."""
        if self.on_bytes and total > 0:
            size = self.get_size() or 0
            self.on_bytes(size * (done + more) // total - size * done // total)

    def format_place(self, place: int) -> str:
        """Format a place for messages: the source with a line, or with a row if it is not text."""
        return f"{self.title}, {'line' if self.kind in registry.TEXT_KINDS else 'row'} {place}"

    def build_error(self, place: int, reason: str) -> SourceError:
        """Return the error for a place that makes the source unusable."""
        return SourceError(f"{self.format_place(place)}: {reason}")

    def read_blocks(self, *, warn_if_unended: bool = False) -> Iterator[TextBlock]:
        """Read the text in blocks of whole lines.

        Gzip is recognized by its first bytes. A byte order mark at the start is skipped.
        `warn_if_unended` warns if the last line has no newline.

        Raises SourceError if the input can't be read, is truncated gzip data, is not UTF-8 or has a
        line that is too long.
        """
        line, rest = 1, b""
        with self._open() as stream:
            while chunk := self._read(stream, line):
                whole, newline, rest = (rest + chunk).rpartition(b"\n")
                # A chunk is shorter than the maximum line, so only its first line can be too long.
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
        """Read the decompressed bytes, in chunks of any length.

        Raises SourceError if the input can't be read or is truncated gzip data.
        """
        with self._open() as stream:
            while chunk := self._read(stream, None):
                yield chunk

    def read_text(self) -> Iterator[str]:
        """Read the decompressed text, in chunks of any length.

        Raises EncodingError if the text is not UTF-8, and the errors of `read_chunks`.
        """
        try:
            yield from codecs.iterdecode(self.read_chunks(), "utf-8-sig")
        except UnicodeDecodeError:
            raise EncodingError(f"{self.title}: {NOT_UTF8}") from None

    def read_lines(self) -> Iterator[tuple[int, str]]:
        """Read the nonempty lines, with their numbers and without line endings."""
        for block in self.read_blocks():
            for number, line in block.split_lines():
                if text := line.removesuffix("\r"):
                    yield number, text

    @contextmanager
    def _open(self) -> Iterator["_Text"]:
        with open_input(self.name, self.on_bytes, fills_buffer=True) as stored:
            buffered = io.BufferedReader(stored, BLOCK_BYTES)
            yield _Text(buffered, self.mapping.encoding)

    def _read(self, stream: "_Text", line: int | None) -> bytes:
        """Read what a single call returns, so that all text before a truncation is used."""
        try:
            return stream.read1(BLOCK_BYTES)
        except EOFError:
            reason = f"the {stream.compression} data is cut off"
        except (zlib.error, gzip.BadGzipFile):
            reason = f"the {stream.compression} data is damaged"
        except UnicodeDecodeError:
            raise self._build_encoding_error(line or 1) from None
        if line is None:
            raise SourceError(f"{self.title}: {reason}")
        raise self.build_error(line, f"{reason} here")

    def read_head(self) -> tuple[bytes, bool]:
        """Return the beginning of the decompressed bytes, and whether the file is compressed.

        Defects after the first bytes are left to the reader.

        Raises SourceError if nothing can be read.
        """
        head = b""
        with self._open() as stream:
            try:
                while len(head) < recognition.HEAD_BYTES and (chunk := self._read(stream, None)):
                    head += chunk
            except SourceError:
                if not head:
                    raise
            return head, stream.compression is not None

    def _check_length(self, line: int, text: bytes) -> None:
        if len(text) > MAX_LINE_BYTES:
            raise self.build_error(line, f"longer than {MAX_LINE_BYTES:,} bytes")

    def _decode(self, line: int, text: bytes) -> TextBlock:
        try:
            decoded = text.decode("utf-8")
        except UnicodeDecodeError as error:
            at = line + text.count(b"\n", 0, error.start)
            raise self._build_encoding_error(at) from None
        return TextBlock(line, decoded.removeprefix("\ufeff") if line == 1 else decoded)

    def _build_encoding_error(self, line: int) -> "EncodingError":
        encoding = self.mapping.encoding
        reason = f"not {encoding}; if it is text, set its --encoding" if encoding else NOT_UTF8
        return EncodingError(self.build_error(line, reason).reason)


NOT_UTF8 = "not UTF-8; if it is Windows-1252, add --encoding cp1252"


class EncodingError(SourceError):
    """A text is not in the encoding of its mapping, which is UTF-8 by default."""


class _Zstd(io.RawIOBase):
    """The decompressed bytes of consecutive zstd frames."""

    def __init__(self, stored: "io.BufferedReader[Any]") -> None:
        self._stored = stored
        self._library = registry.load_module("zstd", "zstandard", "files")
        self._frame: Any = None
        self._rest = self._text = b""

    def readable(self) -> bool:
        """Return True, as buffered readers require."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with at least one decompressed byte. Return 0 at the end.

        Raises gzip's errors: EOFError if the data are cut off, zlib.error if the data are damaged.
        """
        while not self._text:
            # A compressed frame of 1024 bytes decompresses to at most 32 MiB.
            if not (stored := self._rest or self._stored.read(1024)):
                if self._frame is not None:
                    raise EOFError
                return 0
            if self._frame is None:
                self._frame = self._library.ZstdDecompressor().decompressobj()
            try:
                self._text = self._frame.decompress(stored)
            except self._library.ZstdError:
                raise zlib.error from None
            self._rest = self._frame.unused_data
            if self._frame.eof:
                self._frame = None
        count = min(len(buffer), len(self._text))
        buffer[:count], self._text = self._text[:count], self._text[count:]
        return count


class _Text:
    """The bytes of a text converted to UTF-8 from any encoding. UTF-16 is detected.

    A malformed character becomes bytes that are not valid UTF-8.
    """

    def __init__(self, stored: "io.BufferedReader[Any]", encoding: str | None) -> None:
        self.compression = recognition.find_compression(stored.peek(4))
        self._stream: io.BufferedIOBase = stored
        if self.compression == "gzip":
            self._stream = gzip.GzipFile(fileobj=stored)
        elif self.compression == "zstd":
            self._stream = io.BufferedReader(_Zstd(stored), BLOCK_BYTES)
        self._encoding = encoding
        self._decoder: codecs.IncrementalDecoder | None = None
        self._is_start = True

    def read1(self, size: int) -> bytes:
        """Return what a single call reads, or nothing at the end.

        Raises UnicodeDecodeError if a character is malformed, and the errors of decompression.
        """
        while True:
            data = self._stream.read1(size)
            if self._is_start:
                is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
                encoding = self._encoding or ("utf-16" if is_utf16 else None)
                if encoding:
                    self._decoder = codecs.getincrementaldecoder(encoding)("surrogateescape")
                self._is_start = False
            if self._decoder is None:
                return data
            text = self._decoder.decode(data, final=not data)
            if text or not data:
                return text.encode("utf-8", "surrogatepass")


def _strip_compression(name: str) -> str:
    return name.removesuffix(".gz").removesuffix(".zst")


def _recognize(source: Source, kind: str | None) -> str | None:
    """Return the kind of a file by its content. `kind` is the kind of its extension, if any.

    Raises SourceError if the file can't be read or has no readable kind.
    """
    try:
        if not stat.S_ISREG(os.stat(source.name).st_mode):
            return kind
        head, is_compressed = source.read_head()
    except (OSError, ValueError, SourceError):
        if kind is None and os.path.isfile(source.name):
            raise
        return kind
    try:
        found = recognition.recognize(head, source.name, is_compressed=is_compressed)
    except recognition.UnknownError as error:
        if kind in {"parquet", "duckdb", "sqlite"}:  # the kind's reader explains what is wrong
            return kind
        raise NoDataError(f"{source.title}: {error}") from None
    if kind and (not head or (kind == "ndjson" and recognition.fits_ndjson(found, head))):
        return kind
    if found not in registry.KINDS:  # higher-level packages register their kinds when imported
        raise NoDataError(f"{source.title}: {found}, which can't be read here")
    return found


class NoDataError(SourceError):
    """A file has no readable kind."""


def list_stored_names(sources: Iterable[Source]) -> list[str]:
    """Return the names that a snapshot stores; a folder only once."""
    names: list[str] = []
    for folder, group in groupby(sources, key=attrgetter("folder")):
        found = [source.stored_name for source in group]
        names += found if folder is None else found[:1]
    return names


def check_stdin_once(names: Iterable[str]) -> None:
    """Check that standard input is named at most once.

    Raises UsageError if it is named twice.
    """
    if [*names].count(STDIN) > 1:
        raise UsageError("standard input (-) can be read only once")


_MAX_VALUE_LENGTH = 100
"""The maximum number of characters of a malformed value that messages quote."""


class Reject(NamedTuple):
    """A malformed row.

    - `place`: the number of the line or row.
    - `reason`: the reason for messages.
    - `text`: the row as written.
    - `value`: the malformed value, or None if the whole row is malformed.
    - `rows`: the number of rows lost; for a wide row, the number of its counts.
    """

    place: int
    reason: str
    text: str
    value: str | None = None
    rows: int = 1

    def cut_value(self) -> str:
        """Return the beginning of the malformed value or row, for messages."""
        value = self.text if self.value is None else self.value
        # JSON can contain lone surrogates, which can't be stored.
        return value[:_MAX_VALUE_LENGTH].encode("utf-8", "backslashreplace").decode("utf-8")


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive observations of a source in reading order, as columns of equal length.

    - `names`: the server identifiers as the source writes them, in order of appearance.
    - `codes`: the index in `names` of each row's server.
    - `instants`: Unix milliseconds.
    - `players`: the player counts.
    - `places`: the line or row numbers in the source. They never descend, even across batches, and
      only observations of different servers share a number.
    - `rejects`: the malformed rows.
    - `skipped`: the numbers of well-formed rows that are not observations, such as failed pings, by
      reason.
    """

    names: Sequence[str]
    codes: Numbers
    instants: Numbers
    players: Numbers
    places: Numbers
    rejects: Sequence[Reject] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)

    def count_rows(self) -> int:
        """Return the number of rows read, including rejected and skipped rows."""
        return len(self.places) + self.count_rejected() + sum(self.skipped.values())

    def count_rejected(self) -> int:
        """Return the number of malformed rows."""
        return sum(reject.rows for reject in self.rejects)


def read_batches(source: Source) -> Iterator[Batch]:
    """Read the observations of a source, batch by batch.

    Raises SourceError if the source can't be read or is not of its kind.
    """
    batches: Iterator[Batch] = registry.load_reader(source.kind)(source)
    return batches


def check_sources(sources: Sequence[Source]) -> None:
    """Check that all files are readable before any of them is read.

    Raises SourceError for an unreadable file.
    """
    for source in sources:
        is_file = source.name != STDIN and not source.is_in_memory and not is_url(source.name)
        # A server name that is not a URL may contain a password.
        if is_file and source.kind != "postgresql":
            with convert_errors(source.title, SourceError):
                os.stat(source.name)
                if not os.access(source.name, os.R_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def expand_name(
    name: str,
    build: Callable[[str], Source],
    on_warning: Callable[[str], None],
    servers: str | None = None,
) -> list[Source]:
    """Return the sources that a name stands for: a file, or the files of a folder or pattern.

    `build` returns the source of a file. Skips the file `servers`, and non-data files in a folder
    with a warning. If the folder has Parquet files, reads only them.

    Raises UsageError if no file matches a pattern. Raises SourceError if a folder has no data.
    """
    paths = [name]
    if not is_url(name) and glob.has_magic(name) and not os.path.lexists(name):
        paths = sorted(glob.glob(name, recursive=True))
    if not paths:
        raise UsageError(f"{format_title(name)}: no file matches the pattern")
    found: list[Source] = []
    for path in paths:
        is_folder = path not in {STDIN, IN_MEMORY} and os.path.isdir(path)
        found += _list_folder(path, build, on_warning, servers) if is_folder else [build(path)]
    return found


def _list_folder(
    folder: str,
    build: Callable[[str], Source],
    on_warning: Callable[[str], None],
    servers: str | None,
) -> list[Source]:
    title = format_title(folder)
    found, others, skipped = [], list[str](), list[str]()
    known = os.path.realpath(servers or os.devnull)
    paths = [path for path in _list_paths(folder) if os.path.realpath(path) != known]
    parquet = [path for path in paths if path.lower().endswith(".parquet")]
    for path in paths:
        name = os.path.basename(path).lower()
        is_other = name.startswith("readme") or name.endswith(_NO_DATA)
        if is_other or (parquet and path not in parquet):
            (others if is_other else skipped).append(path)
            continue
        try:
            found.append(replace(build(path), folder=folder))
        except NoDataError:
            others.append(path)
    if not found:
        raise SourceError(f"{title}: no data files found; name a file")
    for paths, reason in (
        (skipped, "not Parquet like the others, left out (name them to read them)"),
        (others, "not data, left out"),
    ):
        if paths:
            names = ", ".join(os.path.basename(format_title(path)) for path in paths[:_MAX_NAMES])
            more = f" and {len(paths) - _MAX_NAMES:,} more" if len(paths) > _MAX_NAMES else ""
            are = "file is" if len(paths) == 1 else "files are"
            on_warning(f"{title}: {len(paths):,} {are} {reason}: {names}{more}")
    return found


def _list_paths(folder: str) -> list[str]:
    """Return the files below a folder that are not hidden, sorted by path.

    Raises SourceError if the folder can't be read.
    """
    paths: list[str] = []
    with convert_errors(format_title(folder), SourceError):
        for parent, subfolders, names in os.walk(folder, onerror=_raise_error):
            subfolders[:] = [name for name in subfolders if not name.startswith(_HIDDEN)]
            paths += [os.path.join(parent, name) for name in names if not name.startswith(_HIDDEN)]
    return sorted(paths)


def _raise_error(error: OSError) -> None:
    raise error


_MAX_NAMES = 5
_HIDDEN = (".", "_")
_NO_DATA = (
    *(".md", ".rst", ".html", ".css", ".js", ".py", ".sh", ".r", ".sql", ".toml", ".yaml", ".yml"),
    *(".ini", ".cfg", ".lock", ".har", "servers.ndjson", "servers.json", "license", "license.txt"),
)
"""Name endings of non-data files: documentation, code, configuration and server records."""


TABLE = "observations"
"""The table that is read if there is no query."""


def describe_no_table(source: Source) -> str:
    """Describe that a database lacks the table to read."""
    missing = source.mapping.table or TABLE
    return f"no table {missing}; name one with --input-table, or rows with --query"


def build_query(source: Source) -> str:
    """Return the SQL query of a source, for use as a subquery. It may end in a comment.

    Raises SourceError if the query is not UTF-8; Python keeps such bytes as lone surrogates.
    """
    if source.query is None:
        return f"SELECT * FROM {quote_identifier(source.mapping.table or TABLE)}"  # noqa: S608 - quoted
    if not is_utf8(source.query):
        raise SourceError(f"{source.title}: the query is not UTF-8")
    return source.query.rstrip("; \t\r\n")


def quote_identifier(name: str) -> str:
    """Quote a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Quote a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
