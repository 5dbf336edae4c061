"""The formats of observations. To add one, write its reader and add a line to FORMATS."""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import NamedTuple


class Format(NamedTuple):
    """The file extensions of a format, and the module whose `read(source)` yields its batches."""

    extensions: tuple[str, ...]
    reader: str


FORMATS: Mapping[str, Format] = {
    "csv": Format((".csv",), "srvstat.sources.csv_observations"),
    "ndjson": Format((".ndjson", ".jsonl"), "srvstat.sources.ndjson_observations"),
}
"""The formats by the names that `--format` takes. Each reader is imported on first use."""

EXTENSIONS: Mapping[str, str] = {
    extension: name for name, (extensions, _) in FORMATS.items() for extension in extensions
}
"""The format of each file extension."""


def load_reader(format: str) -> ModuleType:
    """Return the module that reads a format."""
    return import_module(FORMATS[format].reader)
