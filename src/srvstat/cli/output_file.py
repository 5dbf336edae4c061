"""Write the answer of a command to the file of --output."""

import os
from zoneinfo import ZoneInfo

from srvstat.cli.output import Outcome, report
from srvstat.cli.process import allow_cleanup
from srvstat.contract.errors import UsageError
from srvstat.documents.document import WindowPart
from srvstat.files.atomic import atomic_write, check_name, check_target
from srvstat.files.paths import convert_write_errors
from srvstat.render.text import format_count, format_size, format_window

STDOUT_NAME = "-"

SNAPSHOT_ENDINGS = (".db", ".sqlite", ".sqlite3")
NDJSON_ENDINGS = (".ndjson", ".jsonl")

_OTHER_ENDINGS = """
.7z .arrow .avif .avro .bmp .bz2 .csv .doc .docx .duckdb .eps .feather .gif .gz .har .htm .html
.jpeg .jpg .json .md .ods .orc .parquet .pdf .png .ppt .pptx .ps .rtf .sql .svg .tar .tex .tiff
.toml .tsv .txt .webp .xls .xlsx .xml .xz .yaml .yml .zip .zst
"""
_KNOWN_ENDINGS = frozenset((*_OTHER_ENDINGS.split(), *SNAPSHOT_ENDINGS, *NDJSON_ENDINGS))


def check_ending(path: str | None, *endings: str) -> None:
    """Check that the ending of an output names no other format than those that are written.

    Without endings, the output is a folder.

    Raises UsageError.
    """
    ending = os.path.splitext(path or "")[1].lower()
    if ending in _KNOWN_ENDINGS.difference(endings):
        remedy = f"end the name in {' or '.join(endings)}" if endings else "name a folder"
        raise UsageError(f"{path}: {ending} is another format; {remedy}")


def check_output(path: str, *, overwrite: bool) -> None:
    """Check, before an answer is computed, that it may be written to a file.

    Raises UsageError if the file may not be written, OutputError.
    """
    if path != STDOUT_NAME:
        check_name("-o", path)
        check_target(path, overwrite=overwrite)


def check_snapshot_is_kept(path: str, snapshot: str) -> None:
    """Check that a file to write is not the snapshot to read.

    Raises UsageError.
    """
    if path != STDOUT_NAME and os.path.realpath(path) == os.path.realpath(snapshot):
        raise UsageError(f"{path}: is the snapshot to read; name another file")


def describe_contents(server_count: int, window: WindowPart, zone: ZoneInfo) -> str:
    """Return a few words about what a file shows."""
    servers = format_count(server_count, "server")
    return f"{servers}, {format_window(window.from_, window.to, zone)} ({zone.key})"


def write_output(path: str, data: bytes, *, contents: str, overwrite: bool) -> Outcome:
    """Write all bytes to a file or not at all, and say so on standard error.

    `-` is standard output. `contents` describes the data in a few words.

    Raises UsageError if the file may not be replaced, OutputError.
    """
    if path == STDOUT_NAME:
        return Outcome([data])
    write_file(path, data, overwrite=overwrite)
    report(f"wrote {path}: {contents}, {format_size(len(data))}")
    return Outcome()


def write_file(path: str, data: bytes, *, overwrite: bool) -> None:
    """Write all bytes to a file or not at all.

    Raises UsageError if the file may not be replaced, OutputError.
    """
    with (
        allow_cleanup(),
        atomic_write(path, overwrite=overwrite) as draft,
        convert_write_errors(path),
        open(draft, "wb") as file,
    ):
        file.write(data)
