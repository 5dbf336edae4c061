"""Exact statistics of game servers from one local file.

    import srvstat

    with srvstat.open_snapshot("snapshot.db") as snapshot:
        answer = snapshot.compare(["id:srv-1", "cfxId:abc123"], range="7d")
        print(answer.data[0].medianPlayers)
        body = answer.to_json()  # the exact bytes of the API

Errors of the API raise ApiError or a subclass, an unusable file raises SnapshotError, and an
invalid window, zone or other value of the analyzer raises UsageError, which is a ValueError.
Threads may share a snapshot; one call runs at a time. After `close`, any use raises ValueError.
"""

# Type checkers know this name without an import. Importing `typing` would take longer than
# everything else that runs before the command line installs its signal handlers.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from srvstat.analysis.api import Snapshot as Snapshot
    from srvstat.analysis.api import open_snapshot as open_snapshot
    from srvstat.contract.errors import ApiError as ApiError
    from srvstat.contract.errors import InvalidRequestError as InvalidRequestError
    from srvstat.contract.errors import ServerNotFoundError as ServerNotFoundError
    from srvstat.contract.errors import SnapshotError as SnapshotError
    from srvstat.contract.errors import SrvstatError as SrvstatError
    from srvstat.contract.errors import UsageError as UsageError
    from srvstat.contract.responses import CompareResponse as CompareResponse
    from srvstat.contract.responses import ServerResponse as ServerResponse
    from srvstat.contract.version import __version__ as __version__


_MODULE_OF = {
    "Snapshot": "srvstat.analysis.api",
    "open_snapshot": "srvstat.analysis.api",
    "ApiError": "srvstat.contract.errors",
    "InvalidRequestError": "srvstat.contract.errors",
    "ServerNotFoundError": "srvstat.contract.errors",
    "SnapshotError": "srvstat.contract.errors",
    "SrvstatError": "srvstat.contract.errors",
    "UsageError": "srvstat.contract.errors",
    "CompareResponse": "srvstat.contract.responses",
    "ServerResponse": "srvstat.contract.responses",
    "__version__": "srvstat.contract.version",
}

__all__ = [*_MODULE_OF]  # noqa: PLE0604 - the names above, loaded on first use


def __getattr__(name: str) -> "Any":
    """Load a public name on first use, so that the command line starts without it."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only needed here

    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
