"""The kinds of sources. To add a kind, write its module and add a line to KINDS.

Higher-level packages register their own kinds when they are imported.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from srvstat.contract.errors import MissingLibraryError


class Kind(NamedTuple):
    """A kind of source: its file extensions, its reader functions and its properties.

    A function is written as `module:name`, or None if sources of this kind have no such data.

    - `extensions`: the file extensions.
    - `observations`: the function that yields batches of observations.
    - `records`: the function that returns server records.
    - `sample`: the function that returns the first rows.
    - `is_fixed`: whether observations are read without mapping options.
    - `uses_slugs`: whether identifiers never have the contract's form, so that slugs replace them.
    - `is_whole`: whether a source contains the records of all its servers.
    - `takes_query`: whether observations can be the rows of an SQL query.
    - `extra`: the extra that installs the required libraries.
    - `is_object`: whether sources are Python objects, so that `--source` does not accept the kind.
    """

    extensions: tuple[str, ...] = ()
    observations: str | None = None
    records: str | None = None
    sample: str | None = None
    is_fixed: bool = False
    uses_slugs: bool = False
    is_whole: bool = False
    takes_query: bool = False
    extra: str = "bulk"
    is_object: bool = False


def _describe_module(module: str, *extensions: str, **others: Any) -> Kind:
    """Return a kind whose module has the functions `read` and `read_sample`."""
    path = f"srvstat.sources.{module}"
    return Kind(extensions, f"{path}:read", sample=f"{path}:read_sample", **others)


KINDS: dict[str, Kind] = {
    "csv": _describe_module("csv", ".csv"),
    "ndjson": _describe_module(
        "json", ".ndjson", ".jsonl", records="srvstat.sources.servers:read_records"
    ),
    "json": Kind(
        (".json",),
        "srvstat.sources.json:read_document",
        sample="srvstat.sources.json:read_document_sample",
    ),
    "sqlite": _describe_module("sqlite", ".sqlite", ".sqlite3", takes_query=True),
    "cfx": Kind(records="srvstat.sources.trackers:read_cfx_records"),
    "parquet": _describe_module("parquet", ".parquet"),
    "duckdb": _describe_module("duckdb", ".duckdb", takes_query=True),
    "postgresql": _describe_module("postgresql", takes_query=True),
    "rrd": _describe_module("rrd"),
    "xlsx": _describe_module("sheets", extra="files"),
    "minetrack": Kind(
        (),
        "srvstat.sources.trackers:read_minetrack",
        "srvstat.sources.trackers:read_minetrack_records",
        is_fixed=True,
        uses_slugs=True,
    ),
    "battlemetrics": Kind((), "srvstat.sources.trackers:read_battlemetrics", is_fixed=True),
    "prometheus": Kind(
        (),
        "srvstat.sources.trackers:read_prometheus",
        sample="srvstat.sources.trackers:read_prometheus_sample",
    ),
}
"""The kinds by name. Each module is imported on first use."""

TEXT_KINDS = ("csv", "ndjson")
"""The kinds that `--input-format` accepts for standard input and unknown extensions."""

SCHEMES: Mapping[str, str] = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    **dict.fromkeys(("file", "hdfs", "viewfs", "s3a", "gs", "abfs", "abfss"), "parquet"),
}
"""The kind of each URL scheme. Only Spark reads Parquet from the Hadoop schemes."""

EXTENSIONS: Mapping[str, str] = {
    extension: name for name, kind in KINDS.items() for extension in kind.extensions
}
"""The kind of each file extension."""


def list_choices() -> tuple[str, ...]:
    """Return the names of the kinds that `--source` accepts."""
    return tuple(name for name, kind in KINDS.items() if not kind.is_object)


def load_reader(kind: str) -> Callable[..., Any]:
    """Return the function that reads observations of a kind.

    Raises MissingLibraryError if a required library is not installed.
    """
    return load_function(kind, KINDS[kind].observations)


def load_record_reader(kind: str) -> Callable[..., Any]:
    """Return the function that reads server records of a kind.

    Raises MissingLibraryError if a required library is not installed.
    """
    return load_function(kind, KINDS[kind].records)


def load_function(kind: str, name: str | None) -> Callable[..., Any]:
    """Return the function with a name such as `module:function`.

    Raises MissingLibraryError if a required library is not installed.
    """
    assert name, f"{kind} has no such data"  # noqa: S101 - callers check what a kind has
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(load_module(kind, module, KINDS[kind].extra), function)
    return found


def load_module(user: str, module: str, extra: str) -> ModuleType:
    """Import a library, or a module that needs a library.

    `user` names what needs the library, and `extra` the extra that installs it, for the message.

    Raises MissingLibraryError if the library is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        if (error.name or "").startswith("srvstat"):
            raise
        # psycopg without libpq raises an ImportError without a name.
        needed = f"needs the library {error.name}" if error.name else " ".join(str(error).split())
        remedy = f"run pip install 'srvstat[{extra}]'"
        raise MissingLibraryError(f"{user}: {needed}; {remedy}") from None
