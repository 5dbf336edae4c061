"""Exact statistics of game servers from one local file.

    import srvstat

    with srvstat.open_snapshot("snapshot.db") as snapshot:
        answer = snapshot.compare(["harbor-city", "cfxId:ns6r0b"], range="7d")
        print(answer.data[0].median_players)
        body = answer.to_json()  # the exact bytes of the API

Ask a snapshot:

    get, compare                           the responses of the API
    servers, top                           find and rank servers
    stats, growth, peak_hours, history     statistics of any window
    events, integrity, today, together     what is unusual, and what moves together
    timeline, distribution                 the data of pictures
    plot, report                           pictures and pages, which a notebook shows

Write one:

    build(data, path)                      from a data frame of pandas, polars or Arrow
    Snapshot.update(data)                  add the data of another day

Results have attributes in snake case and `to_json()`. Those of analyses also have `to_polars()`,
`to_pandas()` and `to_arrow()`.

Errors derive from SrvstatError, whose `reason` says what to do: ApiError for an error response of
the API, SnapshotError for an unusable file, and UsageError, which is a ValueError, for an invalid
value. `srvstat.testing` has pytest fixtures, and `srvstat.fleet.spark` computes with Spark.
"""

# Type checkers know the names without an import. Importing `typing` would take longer than
# everything else that runs before the command line installs its signal handlers.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from srvstat.api.frames import build
    from srvstat.api.snapshot import Snapshot, open_snapshot
    from srvstat.contract import __version__
    from srvstat.contract.errors import (
        ApiError,
        InvalidRequestError,
        ServerNotFoundError,
        SnapshotError,
        SrvstatError,
        UsageError,
    )
    from srvstat.contract.responses import CompareResponse, ServerResponse

__all__ = [
    "ApiError",
    "CompareResponse",
    "InvalidRequestError",
    "ServerNotFoundError",
    "ServerResponse",
    "Snapshot",
    "SnapshotError",
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
"""The modules of names; the others are errors."""


def __getattr__(name: str) -> "Any":
    """Load the public names on first use, so that the command line starts without them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only needed here

    return getattr(import_module(_HOMES.get(name, "srvstat.contract.errors")), name)


def __dir__() -> "list[str]":
    return sorted(__all__)
