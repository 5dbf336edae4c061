"""The formats of observations. To add one, write its reader and add a line to FORMATS."""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import NamedTuple


class Format(NamedTuple):
    """The file name endings of a format, and the module whose `read(source)` yields its batches."""

    endings: tuple[str, ...]
    reader: str


FORMATS: Mapping[str, Format] = {
    "csv": Format((".csv",), "srvstat.sources.csv_observations"),
    "ndjson": Format((".ndjson", ".jsonl"), "srvstat.sources.ndjson_observations"),
}
"""The formats by the names that `--format` takes. A reader is imported for its first source."""

ENDINGS: Mapping[str, str] = {
    ending: name for name, (endings, _) in FORMATS.items() for ending in endings
}
"""The format of each file name ending."""


def load_reader(format: str) -> ModuleType:
    """Return the module that reads a format."""
    return import_module(FORMATS[format].reader)
