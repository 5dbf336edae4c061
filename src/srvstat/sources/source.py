"""A named input: opened, unpacked, and cut into blocks of whole lines."""

import gzip
import io
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

from srvstat.contract.errors import SourceError, UsageError
from srvstat.files.reading import STDIN, Input, format_title, open_input
from srvstat.sources.formats import Format

_FORMAT_OF: dict[str, Format] = {".csv": "csv", ".ndjson": "ndjson", ".jsonl": "ndjson"}
# A process substitution such as <(zcat week.gz), or another descriptor that a shell opened.
_DESCRIPTOR_NAME = re.compile("/dev/fd/[0-9]+|/proc/(self|[0-9]+)/fd/[0-9]+")
_GZIP_MAGIC = b"\x1f\x8b"
MAX_LINE_BYTES = 1 << 20
"""A line beyond this is no line of ours; holding it whole would be the input's to decide."""
_BLOCK_BYTES = 1 << 17

_UNENDED = "the last line has no newline, so it may be cut off; add one if the line is complete"


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of a text, joined by newlines; the first one's number counts from 1."""

    first_line: int
    text: str


@dataclass(frozen=True, slots=True)
class Source:
    """One input file, or standard input, and the format of what it holds.

    `on_bytes` is told how many bytes of the file, as stored, have just been read. `on_warning` is
    called with one line about what may be wrong with a file that is read all the same.
    """

    name: str
    format: Format
    on_bytes: Callable[[int], None] | None = None
    on_warning: Callable[[str], None] | None = None

    @classmethod
    def of(cls, name: str, default: Format | None) -> Self:
        """Return the source that a command line names; `default` serves a name that says nothing.

        Raises UsageError where neither the name nor `default` tells the format.
        """
        stem = name.lower().removesuffix(".gz")
        found = default if name == STDIN else _FORMAT_OF.get(os.path.splitext(stem)[1], default)
        if found is None:
            what = "standard input" if name == STDIN else name
            raise UsageError(
                f"{what}: its name does not say its format; add --format csv or ndjson"
            )
        return cls(name, found)

    @property
    def title(self) -> str:
        """The source's name as text that any file can hold, whatever its bytes."""
        return format_title(self.name)

    @property
    def stored_name(self) -> str:
        """The name that a snapshot keeps: no folder, and no number that a shell has chosen."""
        if self.name == "/dev/stdin":
            return format_title(STDIN)
        if _DESCRIPTOR_NAME.fullmatch(self.name):
            return "file descriptor"
        return os.path.basename(self.title)

    def size(self) -> int | None:
        """Return the bytes of the file as stored, or None where that can't be known."""
        try:
            status = os.stat(self.name)
        except (OSError, ValueError):
            return None
        return status.st_size if stat.S_ISREG(status.st_mode) and self.name != STDIN else None

    def refuse(self, line: int, reason: str) -> SourceError:
        """Return the error that refuses the source because of one of its lines."""
        return SourceError(f"{self.title}, line {line}: {reason}")

    def blocks(self) -> Iterator[Block]:
        """Read the text, a block of whole lines at a time.

        Gzip is recognised by its first bytes, and one leading byte order mark is skipped.

        Raises SourceError, with the line, for what can't be read, is cut, or is not UTF-8.
        """
        line, rest = 1, b""
        with self._opened() as stream:
            while chunk := self._read(stream, line):
                whole, newline, rest = (rest + chunk).rpartition(b"\n")
                # No chunk is longer than a line may be: only its first line can be too long.
                self._check_length(line, whole.partition(b"\n")[0])
                if newline:
                    yield self._decoded(line, whole)
                    line += whole.count(b"\n") + 1
                self._check_length(line, rest)
        if rest:
            # A row of CSV may still be one when its end is missing; a JSON object can't be.
            if self.on_warning and self.format == "csv":
                self.on_warning(self.refuse(line, _UNENDED).reason)
            yield self._decoded(line, rest)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Read the text line by line, numbered from 1, without line ends and empty lines."""
        for block in self.blocks():
            for number, line in enumerate(block.text.split("\n"), block.first_line):
                if text := line.removesuffix("\r"):
                    yield number, text

    @contextmanager
    def _opened(self) -> Iterator[io.BufferedIOBase]:
        with open_input(self.name) as stored:
            counted = _Counted(stored, self.on_bytes)
            is_gzip = counted.starts_with(_GZIP_MAGIC)
            buffered = io.BufferedReader(counted, _BLOCK_BYTES)
            yield gzip.GzipFile(fileobj=buffered) if is_gzip else buffered

    def _read(self, stream: io.BufferedIOBase, line: int) -> bytes:
        """Read what one call gives at once, so that a cut loses nothing that came before it."""
        try:
            return stream.read1(_BLOCK_BYTES)
        except EOFError:
            raise self.refuse(line, "the gzip data is cut off here") from None
        except (zlib.error, gzip.BadGzipFile):
            raise self.refuse(line, "the gzip data is damaged here") from None

    def _check_length(self, line: int, text: bytes) -> None:
        if len(text) > MAX_LINE_BYTES:
            raise self.refuse(line, f"longer than {MAX_LINE_BYTES:,} bytes")

    def _decoded(self, line: int, text: bytes) -> Block:
        try:
            decoded = text.decode("utf-8")
        except UnicodeDecodeError as error:
            at = line + text.count(b"\n", 0, error.start)
            raise self.refuse(at, "not UTF-8") from None
        return Block(line, decoded.removeprefix("\ufeff") if line == 1 else decoded)


def check_stdin_once(names: Iterable[str]) -> None:
    """Refuse to read standard input twice.

    Raises UsageError.
    """
    if [*names].count(STDIN) > 1:
        raise UsageError("standard input (-) can be read once only")


class _Counted(io.RawIOBase):
    """The bytes of a file as stored, counted as they are read and opened by their first ones."""

    def __init__(self, stored: Input, on_bytes: Callable[[int], None] | None) -> None:
        self._stored = stored
        self._on_bytes = on_bytes
        self._head = b""

    def starts_with(self, magic: bytes) -> bool:
        """Look at the first bytes; they are read again afterwards, also from a FIFO."""
        while len(self._head) < len(magic) and (
            more := self._stored.read(len(magic) - len(self._head))
        ):
            self._head += more
        return self._head == magic

    def readable(self) -> bool:
        """Say what Python's buffers ask."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # narrower than typeshed's buffer
        """Fill a buffer, first from the bytes looked at."""
        if self._head:
            count = min(len(buffer), len(self._head))
            buffer[:count] = self._head[:count]
            self._head = self._head[count:]
        else:
            count = self._stored.readinto(buffer)
        if self._on_bytes:
            self._on_bytes(count)
        return count
