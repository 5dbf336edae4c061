"""The Python API: an open snapshot, whose methods answer the questions of the command line."""

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from srvstat.api.frames import build

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
"""The names of the package `srvstat`, which loads them from here."""


def __getattr__(name: str) -> Any:
    if name != "build":
        raise AttributeError(name)
    # Whoever only asks needs none of what reads sources.
    from srvstat.api.frames import build  # noqa: PLC0415

    return build
