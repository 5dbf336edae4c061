"""Load an engine by its name; no engine and no library of one is imported before."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from srvstat.contract.errors import MissingLibraryError
from srvstat.fleet.request import EngineOptions

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from srvstat.fleet.counts import Engine, Job, Progress


class EngineKind(NamedTuple):
    """Where an engine is opened, its libraries and their extra, and the options that it takes."""

    module: str
    function: str
    libraries: tuple[str, ...]
    extra: str
    options: tuple[str, ...]


ENGINES: Mapping[str, EngineKind] = {
    "duckdb": EngineKind(
        module="srvstat.fleet.duckdb_engine",
        function="open_duckdb",
        libraries=("duckdb", "pyarrow"),
        extra="bulk",
        options=("memory", "threads"),
    ),
    "spark": EngineKind(
        module="srvstat.fleet.spark.engine",
        function="open_spark",
        libraries=("pyspark.sql", "pandas", "pyarrow"),
        extra="spark",
        options=("master",),
    ),
}
"""The engines by the names that `--engine` takes; the first one is the default."""


def load_engine(name: str) -> None:
    """Import an engine and its libraries, before signals may interrupt imports.

    Raises MissingLibraryError.
    """
    kind = ENGINES[name]
    try:
        for library in kind.libraries:
            import_module(library)
    except ModuleNotFoundError as error:
        library = (error.name or library).partition(".")[0]
        raise MissingLibraryError(
            f"--engine {name}: needs the library {library}; run pip install 'srvstat[{kind.extra}]'"
        ) from None
    import_module(kind.module)


def open_engine(
    name: str, job: "Job", options: EngineOptions, progress: "Progress"
) -> "AbstractContextManager[Engine]":
    """Open an engine for a job.

    Raises UsageError, MissingLibraryError, SourceError, EngineError.
    """
    kind = ENGINES[name]
    given = {option: getattr(options, option) for option in kind.options}
    opened: AbstractContextManager[Engine] = getattr(import_module(kind.module), kind.function)(
        job, **given, progress=progress
    )
    return opened
