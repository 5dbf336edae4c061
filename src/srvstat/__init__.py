"""Exact statistics of game servers from one local file.

    import srvstat

    with srvstat.open_snapshot("snapshot.db") as snapshot:
        answer = snapshot.compare(["id:srv-1", "cfxId:abc123"], range="7d")
        print(answer.data[0].median_players)
        body = answer.to_json()  # the exact bytes of the API

Errors of the API raise ApiError or a subclass, an unusable file raises SnapshotError, and an
invalid window, zone or other value of the analyzer raises UsageError, which is a ValueError.
Threads may share a snapshot; one call runs at a time. After `close`, any use raises ValueError.
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
