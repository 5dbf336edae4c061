"""The kinds of sources. To add one, write its module and add a line to KINDS.

A package above this one adds its kinds when it is imported.
"""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

from srvstat.contract.errors import MissingLibraryError


class Kind(NamedTuple):
    """The file extensions of a kind of source, and the modules that read it.

    The module `observations` has `read(source)`, which yields batches. The module `records` has
    `read_records(source)`, which returns server records. None means that sources of this kind
    have no such data. `needs_library` says that the extra `bulk` has the library of the modules.
    `is_fixed` says that the observations are read without the options of a mapping. `uses_slugs`
    says that identifiers never have the contract's form, so that slugs of them are used. `is_whole`
    says that a source has the records of all its servers. `takes_query` says that observations
    can be the rows of an SQL query.
    """

    extensions: tuple[str, ...]
    observations: str | None
    records: str | None = None
    needs_library: bool = False
    is_fixed: bool = False
    uses_slugs: bool = False
    is_whole: bool = False
    takes_query: bool = False


KINDS: dict[str, Kind] = {
    "csv": Kind((".csv",), "srvstat.sources.csv_observations"),
    "ndjson": Kind(
        (".ndjson", ".jsonl"), "srvstat.sources.ndjson_observations", "srvstat.sources.servers"
    ),
    "cfx": Kind((), None, "srvstat.sources.cfx"),
    "parquet": Kind((".parquet",), "srvstat.sources.parquet", needs_library=True),
    "duckdb": Kind(
        (".duckdb",), "srvstat.sources.duckdb_source", needs_library=True, takes_query=True
    ),
    "postgresql": Kind((), "srvstat.sources.postgresql", needs_library=True, takes_query=True),
    "minetrack": Kind(
        (),
        "srvstat.sources.minetrack",
        "srvstat.sources.minetrack",
        is_fixed=True,
        uses_slugs=True,
    ),
    "battlemetrics": Kind((), "srvstat.sources.battlemetrics", is_fixed=True),
    "prometheus": Kind((), "srvstat.sources.prometheus"),
}
"""The kinds by the names that `--from` takes. Each module is imported on first use."""

TEXT_KINDS = ("csv", "ndjson")
"""The kinds that `--format` takes for standard input and for other extensions."""

FOLDER_KIND = "parquet"
"""The kind of the files in a folder."""

SCHEMES: Mapping[str, str] = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    **dict.fromkeys(("file", "hdfs", "viewfs", "s3a", "gs", "abfs", "abfss"), "parquet"),
}
"""The kind of each scheme of URLs; only Spark reads Parquet from those of Hadoop."""

EXTENSIONS: Mapping[str, str] = {
    extension: name for name, kind in KINDS.items() for extension in kind.extensions
}
"""The kind of each file extension."""

INSTALL_BULK = "run pip install 'srvstat[bulk]'"


def load_reader(kind: str) -> ModuleType:
    """Return the module that reads the observations of a kind.

    Raises MissingLibraryError.
    """
    return _load(kind, KINDS[kind].observations)


def load_record_reader(kind: str) -> ModuleType:
    """Return the module that reads the server records of a kind.

    Raises MissingLibraryError.
    """
    return _load(kind, KINDS[kind].records)


def _load(kind: str, module: str | None) -> ModuleType:
    assert module, f"{kind} has no such data"  # noqa: S101 - callers check what a kind has
    try:
        return import_module(module)
    except ImportError as error:
        if not KINDS[kind].needs_library or (error.name or "").startswith("srvstat"):
            raise
        # psycopg without libpq raises an error without a name.
        needed = f"needs the library {error.name}" if error.name else " ".join(str(error).split())
        raise MissingLibraryError(f"{kind}: {needed}; {INSTALL_BULK}") from None
