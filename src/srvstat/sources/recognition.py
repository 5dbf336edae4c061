"""Recognize the kind of a file by its first bytes, regardless of its name."""

import json
import re
import zipfile
from typing import Any

HEAD_BYTES = 1 << 16
"""The number of decompressed bytes from which a file is recognized."""

_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}

_SNAPSHOT_ID = (0x73727673).to_bytes(4)  # the application_id in schema.sql
_SQLITE = b"SQLite format 3\x00"
_MINETRACK = re.compile(
    rb"CREATE TABLE [\"`\[]?pings\b[^)]*\bip\b[^)]*\bplayer(Count)?\b", re.IGNORECASE
)
_BINARY = {b"PAR1": "parquet", _SQLITE: "sqlite", b"PK\x03\x04": "xlsx"}

_SAVE_AS_XLSX = "save it as .xlsx or as CSV"
_EXTRACT = "extract it, and name the file in it"
_UNREADABLE = {
    b"RRD\x00": "a database of RRDtool; run rrdtool dump FILE > FILE.xml, and name FILE.xml",
    b"\xd0\xcf\x11\xe0": f"an old file of Excel; {_SAVE_AS_XLSX}",
    b"BZh": f"compressed with bzip2; {_EXTRACT}",
    b"\xfd7zXZ": f"compressed with xz; {_EXTRACT}",
    b"7z\xbc\xaf": f"an archive; {_EXTRACT}",
    b"Rar!": f"an archive; {_EXTRACT}",
    b"\x89PNG": "a picture, not data",
    b"\xff\xd8\xff": "a picture, not data",
    b"GIF8": "a picture, not data",
    b"%PDF": "a PDF, not data; export the table as CSV",
    b"ARROW1": "a file of Arrow; save it as Parquet",
}
"""Unreadable formats by their first bytes: a description, and what to do."""

_PAGE = re.compile(r"<!doctype html|<(html|head|body)\b", re.IGNORECASE)
_RRD = re.compile(r"<rrd\b")
_SQL = re.compile(r"(--[^\n]*\n\s*|/\*.*?\*/;?\s*)*(CREATE TABLE|PRAGMA|BEGIN|SET) ", re.DOTALL)
_SCRIPT = re.compile(r"(?:(?:var|let|const)\s+)?[\w.$]+\s*=\s*(?=[\[{])")
_JSON = re.compile(r'\{\s*["}]|\[\s*(?:[\[{"\d\]-]|null)')
_PROMETHEUS = re.compile(
    r'\{\s*"status"\s*:\s*"(success|error)".*"(resultType|errorType)"', re.DOTALL
)
_BATTLEMETRICS = re.compile(r'"type"\s*:\s*"dataPoint"')


def find_compression(start: bytes) -> str | None:
    """Return the compression that a file's first bytes show: gzip, zstd or None."""
    found = (name for magic, name in _COMPRESSIONS.items() if start.startswith(magic))
    return next(found, None)


class UnknownError(ValueError):
    """A file has no readable kind. The message says what the file is, if that is known."""


def recognize(head: bytes, path: str, *, is_compressed: bool) -> str:
    """Return the kind of a file from its first bytes. The path is needed for archives.

    Any other text is CSV, and so is an empty file.

    Raises UnknownError if the kind is not readable.
    """
    for start, problem in _UNREADABLE.items():
        if head.startswith(start):
            raise UnknownError(problem)
    kind = next((kind for start, kind in _BINARY.items() if head.startswith(start)), None)
    if head[8:12] == b"DUCK":
        kind = "duckdb"
    if kind == "xlsx" and not _is_workbook(path):
        raise UnknownError(f"an archive; {_EXTRACT}")
    if kind and is_compressed:
        raise UnknownError(f"{kind} in another compression; decompress it")
    if kind == "sqlite" and head[68:72] == _SNAPSHOT_ID:
        kind = "snapshot"
    elif kind == "sqlite" and _MINETRACK.search(head):
        kind = "minetrack"
    if kind is None and (head[257:262] == b"ustar" or b"\x00" in head):
        known = head[257:262] == b"ustar"
        raise UnknownError(f"an archive; {_EXTRACT}" if known else "not text, in an unknown format")
    return kind or _recognize_text(head)


def _is_workbook(path: str) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except (OSError, zipfile.BadZipFile, NotImplementedError):
        return False


def _recognize_text(head: bytes) -> str:
    text = head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    if _PAGE.match(text):
        raise UnknownError("a web page, not data; download the data itself")
    if text.startswith("<"):
        if _RRD.search(text):
            return "rrd"
        raise UnknownError("XML, but no dump of RRDtool; convert it to CSV")
    if _SQL.match(text):
        raise UnknownError("a dump of SQL; load it with sqlite3 NEW.db < FILE, and name NEW.db")
    if _SCRIPT.match(text):
        return "json"
    return _recognize_json(text) if _JSON.match(text) else "csv"


def _recognize_json(text: str) -> str:
    if _PROMETHEUS.match(text):
        return "prometheus"
    if _BATTLEMETRICS.search(text):
        return "battlemetrics"
    line, _, rest = text.partition("\n")
    value = _decode(line)
    if isinstance(value, list) and rest.strip():
        return "ndjson"
    if not isinstance(value, dict):
        return "json"
    is_row = not any(isinstance(each, dict | list) for each in value.values())
    return "ndjson" if is_row or rest.strip() else "json"  # or a document in one line


def _decode(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def fits_ndjson(kind: str, head: bytes) -> bool:
    """Return whether a file that was recognized as `kind` may be NDJSON, as its name says.

    The lines of NDJSON may be malformed and may have any length.
    """
    lines = [
        line for each in head.split(b"\n") if (line := each.removeprefix(b"\xef\xbb\xbf").strip())
    ]
    if kind == "csv":
        return not lines or any(line.startswith(b"{") for line in lines)
    return kind == "json" and lines[0] not in {b"[", b"{"} and not lines[0].startswith(b"[{")
