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
    """Where an engine is opened, the extra with its libraries, and the options that it takes."""

    module: str
    function: str
    extra: str
    options: tuple[str, ...]


ENGINES: Mapping[str, EngineKind] = {
    "duckdb": EngineKind(
        "srvstat.fleet.duckdb_engine", "open_duckdb", "bulk", ("memory", "threads")
    ),
    "spark": EngineKind("srvstat.fleet.spark.engine", "open_spark", "spark", ("master",)),
}
"""The engines by the names that `--engine` takes; the first one is the default."""


def load_engine(name: str) -> None:
    """Import an engine and its libraries, before signals may interrupt imports.

    Raises MissingLibraryError.
    """
    kind = ENGINES[name]
    try:
        import_module(kind.module)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("srvstat"):
            raise
        raise MissingLibraryError(
            f"--engine {name}: needs the library {error.name}; run pip install"
            f" 'srvstat[{kind.extra}]'"
        ) from None


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
