"""Write the rejects of a build to a file, to a stream, or nowhere."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from srvstat.contract import wire
from srvstat.files.atomic import atomic_write
from srvstat.files.errors import convert_write_errors
from srvstat.files.streams import Stream, is_stream, open_stream
from srvstat.snapshot.write.rejects import Rejects
from srvstat.snapshot.write.rules import RowsRejectedError


class RejectsFile:
    """Writes the lines of the rejects; without an output, discards them.

    The methods raise OutputError.
    """

    def __init__(self, path: str, output: BinaryIO | Stream | None) -> None:
        self._path = path
        self._output = output

    def write(self, line: bytes) -> None:
        """Write a line that ends with a newline."""
        if self._output:
            with convert_write_errors(self._path):
                self._output.write(line)

    def flush(self) -> None:
        """Write the buffered lines: a full disk must stop the build before its output exists."""
        if self._output:
            with convert_write_errors(self._path):
                self._output.flush()


def write_rejects(rejects: Rejects, file: RejectsFile, *, strict: bool) -> str | None:
    """Write the rejects, and return the place and reason of the first one.

    `strict` raises SourceError for the first one instead.
    """
    first = None
    for reject in rejects:
        if strict:
            raise reject.source.build_error(reject.line, reject.reason)
        if first is None:
            first = reject.describe()
        fields = {
            "file": reject.source.title,
            "line": reject.line,
            "reason": reject.reason,
            "text": reject.text,
        }
        file.write(wire.encode(fields) + b"\n")
    file.flush()
    return first


@contextmanager
def open_rejects(path: str | None) -> Iterator[RejectsFile]:
    """Open the rejects at a path, or discard them without a path.

    A stream is appended to. A file is replaced at the end of the block, also if the block raises
    RowsRejectedError: the rejects then show why the build was refused.
    """
    if path is None:
        yield RejectsFile("", None)
        return
    if is_stream(path):
        with open_stream(path) as stream:
            yield RejectsFile(path, stream)
        return
    refusal = None
    with atomic_write(path, overwrite=True) as draft:
        with convert_write_errors(path):
            file = open(draft, "wb")  # noqa: SIM115 - closed below
        try:
            yield RejectsFile(path, file)
        except RowsRejectedError as error:
            refusal = error
        finally:
            # `flush` has reported write errors, unless the build failed for another reason.
            with suppress(OSError):
                file.close()
    if refusal:
        raise refusal
