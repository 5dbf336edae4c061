"""The kinds of sources. To add one, write its module and add a line to KINDS.

A package above this one adds its kinds when it is imported.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from srvstat.contract.errors import MissingLibraryError


class Kind(NamedTuple):
    """The file extensions of a kind of source, and the functions that read it.

    A function is written as `module:name`; None means that sources of this kind have no such data.
    `observations` yields batches, `records` returns server records, and `sample` returns the first
    rows. `is_fixed` says that the observations are read without the options of a mapping.
    `uses_slugs` says that identifiers never have the contract's form, so that slugs of them are
    used. `is_whole` says that a source has the records of all its servers. `takes_query` says that
    observations can be the rows of an SQL query. `extra` installs the libraries of the kind.
    `--source` does not take a kind that `is_object`: its sources are Python objects, not files.
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
    """Return a kind whose own module has the functions `read` and `read_sample`."""
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
"""The kinds by their names. Each module is imported on first use."""

TEXT_KINDS = ("csv", "ndjson")
"""The kinds that `--input-format` takes for standard input and for other extensions."""

SCHEMES: Mapping[str, str] = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    **dict.fromkeys(("file", "hdfs", "viewfs", "s3a", "gs", "abfs", "abfss"), "parquet"),
}
"""The kind of each scheme of URLs; only Spark reads Parquet from the schemes of Hadoop."""

EXTENSIONS: Mapping[str, str] = {
    extension: name for name, kind in KINDS.items() for extension in kind.extensions
}
"""The kind of each file extension."""


def list_choices() -> tuple[str, ...]:
    """Return the names of kinds that `--source` takes."""
    return tuple(name for name, kind in KINDS.items() if not kind.is_object)


def load_reader(kind: str) -> Callable[..., Any]:
    """Return the function that reads the observations of a kind.

    Raises MissingLibraryError.
    """
    return load_function(kind, KINDS[kind].observations)


def load_record_reader(kind: str) -> Callable[..., Any]:
    """Return the function that reads the server records of a kind.

    Raises MissingLibraryError.
    """
    return load_function(kind, KINDS[kind].records)


def load_function(kind: str, name: str | None) -> Callable[..., Any]:
    """Return the function with a name such as `module:function`.

    Raises MissingLibraryError for a library that an extra installs.
    """
    assert name, f"{kind} has no such data"  # noqa: S101 - callers check what a kind has
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(load_module(kind, module, KINDS[kind].extra), function)
    return found


def load_module(user: str, module: str, extra: str) -> ModuleType:
    """Import a module that needs a library, or a library.

    `user` is what needs it, and `extra` the extra that installs it, for the message.

    Raises MissingLibraryError.
    """
    try:
        return import_module(module)
    except ImportError as error:
        if (error.name or "").startswith("srvstat"):
            raise
        # psycopg without libpq raises an error without a name.
        needed = f"needs the library {error.name}" if error.name else " ".join(str(error).split())
        remedy = f"run pip install 'srvstat[{extra}]'"
        raise MissingLibraryError(f"{user}: {needed}; {remedy}") from None
