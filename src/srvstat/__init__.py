"""Exact statistics of game servers from one local file.

    import srvstat

    with srvstat.open_snapshot("snapshot.db") as snapshot:
        response = snapshot.compare(["harbor-city", "cfxId:ns6r0b"], range="7d")
        print(response.data[0].median_players)
        body = response.to_json()  # the exact bytes of the API

Query a snapshot:

    get, compare                           the responses of the API
    servers, top                           find and rank servers
    stats, growth, peak_hours, history     statistics of any window
    events, integrity, today, together     unusual events, correlations, a daily summary
    timeline, distribution                 the data behind the pictures
    plot, report                           pictures and reports (displayed by notebooks)

Write a snapshot:

    build(data, path)                      from a pandas, polars or Arrow data frame
    Snapshot.update(data)                  add new observations

Results have snake_case attributes and, except History and Picture, `to_json()`. Analysis results,
including History, also have `to_polars()`, `to_pandas()` and `to_arrow()`. Picture and Report have
`save()` instead.

The errors that srvstat defines derive from SrvstatError; `reason` explains the problem:

    ApiError                               an error response of the API
    SnapshotError                          an unusable snapshot file
    UsageError (a ValueError)              an invalid value
    SourceError, OutputError               unreadable or refused data, an unwritable file

`srvstat.testing` has pytest fixtures that run the service. `srvstat.fleet.spark` computes the same
statistics with Spark.
"""

# Type checkers read these names without an import at run time. Importing `typing` would take longer
# than everything else that runs before the command line installs its signal handlers.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from srvstat.api.frames import build
    from srvstat.api.snapshot import Snapshot, open_snapshot
    from srvstat.contract import __version__
    from srvstat.contract.errors import (
        ApiError,
        InvalidRequestError,
        OutputError,
        ServerNotFoundError,
        SnapshotError,
        SourceError,
        SrvstatError,
        UsageError,
    )
    from srvstat.contract.responses import CompareResponse, ServerResponse

__all__ = [
    "ApiError",
    "CompareResponse",
    "InvalidRequestError",
    "OutputError",
    "ServerNotFoundError",
    "ServerResponse",
    "Snapshot",
    "SnapshotError",
    "SourceError",
    "SrvstatError",
    "UsageError",
    "__version__",
    "build",
    "open_snapshot",
]

_HOMES = {
    "CompareResponse": "srvstat.contract.responses",
    "ServerResponse": "srvstat.contract.responses",
    "Snapshot": "srvstat.api.snapshot",
    "__version__": "srvstat.contract",
    "build": "srvstat.api.frames",
    "open_snapshot": "srvstat.api.snapshot",
}
"""The modules that define public names. `srvstat.contract.errors` defines all others."""


def __getattr__(name: str) -> "Any":
    """Load a public name on first use, so that the command line starts without loading them all."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only needed here

    return getattr(import_module(_HOMES.get(name, "srvstat.contract.errors")), name)


def __dir__() -> "list[str]":
    return sorted(__all__)
