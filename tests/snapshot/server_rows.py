"""Create rows of `servers` for tests."""

from typing import Any

from srvstat.snapshot.rows import ServerRow

_BLOBS = ("player_sum", "counts", "block_ends", "block_peaks", "block_digests")


def build_server(key: int, **columns: Any) -> ServerRow:
    """Return a row with identifiers and the given columns; the other columns are empty."""
    empty: dict[str, Any] = dict.fromkeys(ServerRow._fields, "")
    numbers = [name for name, kind in ServerRow.__annotations__.items() if kind is int]
    unknown = dict.fromkeys(
        ("icon_url", "source_id", "first_observed_at", "last_observed_at", "last_players")
    )
    named = {"server": key, "id": f"id-{key}", "cfx_id": f"cfx-{key}"}
    empty |= dict.fromkeys(numbers, 0) | dict.fromkeys(_BLOBS, b"") | unknown
    return ServerRow(**{**empty, **named, **columns})
