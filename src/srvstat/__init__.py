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

# Type checkers know this name without an import. Importing `typing` would take longer than
# everything else that runs before the command line installs its signal handlers.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from srvstat.api import *  # noqa: F403


def _load_api() -> "Any":
    from importlib import import_module  # noqa: PLC0415 - only needed here

    return import_module("srvstat.api")


def __getattr__(name: str) -> "Any":
    """Load the public names on first use, so that the command line starts without them."""
    api = _load_api()
    if name != "__all__" and name not in api.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(api, name)


def __dir__() -> "list[str]":
    return sorted(_load_api().__all__)
