"""What the row of the file says about a whole snapshot."""

from contextlib import AbstractContextManager

from srvstat.contract.errors import SnapshotError
from srvstat.snapshot.format.rows import FileRow
from srvstat.snapshot.read.connection import build_damage_error, convert_decode_errors
from srvstat.snapshot.read.decoding import Totals, check_coverage, check_instant, read_totals

FILE_ROW = "the table snapshot"


class SnapshotHeader:
    """A snapshot's path, instant, root and totals; instants are Unix milliseconds.

    Raises SnapshotError for a row that no build writes.
    """

    def __init__(self, path: str, file_row: FileRow) -> None:
        self.path = path
        self.file_row = file_row
        """The verified row of `snapshot`."""
        with self.convert_decode_errors(FILE_ROW):
            self.as_of = check_instant(file_row.as_of)
            check_coverage(file_row)

    @property
    def root(self) -> str:
        """The digest of the whole content, as 64 hexadecimal digits."""
        return self.file_row.root.hex()

    @property
    def parent_root(self) -> str | None:
        """The root of a bundle's parent, as 64 hexadecimal digits; None for a whole snapshot."""
        root = self.file_row.parent_root
        return None if root is None else root.hex()

    @property
    def covered_from(self) -> int | None:
        """The first instant that a bundle covers; None for a whole snapshot."""
        return self.file_row.covered_from

    def is_same_as(self, other: "SnapshotHeader") -> bool:
        """Check whether both have equal content and equal counts of their sources."""
        return self.file_row == other.file_row

    def read_totals(self) -> Totals:
        """Return the counts in the row of the file.

        Raises SnapshotError.
        """
        with self.convert_decode_errors(FILE_ROW):
            return read_totals(self.file_row)

    def build_damage_error(self, part: str) -> SnapshotError:
        """Return the error that reports a damaged part of the snapshot."""
        return build_damage_error(self.path, part)

    def convert_decode_errors(self, part: str) -> AbstractContextManager[None]:
        """Report values that can't be decoded as damage of a part of the snapshot."""
        return convert_decode_errors(self.path, part)
