"""Divide a snapshot into shards: the shard of a server, the names of files, one root over all."""

from collections.abc import Sequence
from hashlib import sha256

MANIFEST = "manifest.json"
"""The name of the file that lists the shards of a folder."""

MAX_SHARDS = 4096

_SERVER_LABEL = b"srvstat shard\0"
_ROOT_LABEL = b"srvstat shards\0"
_INTEGER_BYTES = 8


def find_shard(server_id: str, shards: int) -> int:
    """Return the number of a server's shard, from 0 on; it depends on the id only."""
    digest = sha256(_SERVER_LABEL + server_id.encode()).digest()
    return int.from_bytes(digest[:_INTEGER_BYTES]) % shards


def name_shard(number: int) -> str:
    """Return the name of a shard's file, such as `shard-007.db`."""
    return f"shard-{number:03}.db"


def compute_shards_root(as_of: int, roots: Sequence[str]) -> str:
    """Return the root over shards, as 64 hexadecimal digits like the root of each.

    The hashed bytes are: a label and a zero byte; the number of shards and the as_of, each in 8
    bytes, big-endian; the roots in the order of the shards, 32 bytes each.
    """
    numbers = (value.to_bytes(_INTEGER_BYTES) for value in (len(roots), as_of))
    return sha256(b"".join((_ROOT_LABEL, *numbers, *map(bytes.fromhex, roots)))).hexdigest()
