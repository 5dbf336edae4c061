"""Read a snapshot as docs/reference/snapshot.md describes it, with every check, in plain Python."""

import sqlite3
from bisect import bisect_right
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

Row = dict[str, Any]
Pairs = list[tuple[int, int]]
State = tuple[int, int, list[int]]


def verify(label: str, row: Sequence[Any], digest: bytes) -> None:
    """Raise ValueError unless a digest is the beginning of the SHA-256 of a row."""
    kinds = "".join({int: "i", str: "t", bytes: "b"}.get(type(value), "n") for value in row)
    blobs = [value for value in row if isinstance(value, bytes)]
    numbers = [value for value in row if isinstance(value, int)] + [*map(len, blobs)]
    head = f"{label}\0{kinds}\0".encode()
    packed = [number.to_bytes(8, "little", signed=True) for number in numbers]
    texts = [f"{value}\0".encode() for value in row if isinstance(value, str)]
    if sha256(b"".join([head, *packed, *texts, *blobs])).digest()[: len(digest)] != digest:
        raise ValueError(f"damaged: {label}")


def read_row(connection: sqlite3.Connection, table: str, condition: str) -> Row:
    """Return a row by the names of its columns, in their order."""
    cursor = connection.execute(f"SELECT * FROM {table} WHERE {condition}")  # noqa: S608
    row = cursor.fetchone() or (None,) * len(cursor.description)
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


def unpack(blob: bytes, width: int) -> list[int]:
    """Return the numbers of a blob."""
    return [int.from_bytes(blob[at : at + width], "little") for at in range(0, len(blob), width)]


def find_server(connection: sqlite3.Connection, identifier: str, by: str = "id") -> Row | None:
    """Return the row of a server, or None if no server has the identifier."""
    *columns, root, digest = read_row(connection, "snapshot", "true").values()
    verify("snapshot", [*columns, root], digest)
    digests, bundle = columns[-1], [value for value in columns[-3:-1] if value is not None]
    verify("bundle" if bundle else "root", [*columns[:5], *bundle, digests], root)
    hashed = sha256(f"{by}\0{identifier}".encode()).digest()[:8]
    count = len(digests) // 32
    number = (int.from_bytes(hashed) * count >> 64) + count * (by == "cfxId")
    _, entries, servers = read_row(connection, "directory", f"bucket = {number}").values()
    verify("directory", [number, entries], digests[16 * number :][:16])
    for at in range(0, len(entries), 24):
        if entries[at : at + 8] == hashed:
            key = int.from_bytes(servers[at // 6 :][:4], "little")
            server = read_row(connection, "servers", f"server = {key}")
            verify("servers", [*server.values()][1:], entries[at + 8 : at + 24])
            if identifier == server["id" if by == "id" else "cfx_id"]:
                return server
    return None


def read_block(connection: sqlite3.Connection, server: Row, k: int) -> tuple[Row, Pairs]:
    """Return block k of a server, and the instants and players of its observations."""
    block = read_row(connection, "blocks", f"server_block = {server['server'] * 10**9 + k}")
    *head, counts, marks = block.values()
    verify("blocks", [k, *head[1:]], server["block_digests"][16 * k :][:16])
    verify("counts", [counts, marks], block["counts_digest"])
    _, count, first, unit, *packed = head[:6]
    times, players = (unpack(blob, len(blob) // count) for blob in packed)
    return block, [(first + unit * time, of) for time, of in zip(times, players, strict=True)]


def read_observations(connection: sqlite3.Connection, server: Row, start: int, stop: int) -> Pairs:
    """Return the observations of a server with the positions start to stop - 1."""
    blocks = range(start // 2048, -(-stop // 2048))
    found = [pair for k in blocks for pair in read_block(connection, server, k)[1]]
    return found[start % 2048 :][: stop - start]


def find_state(connection: sqlite3.Connection, server: Row, instant: int) -> State:
    """Return for the observations up to an instant: number, sum, and how many have at most v."""
    number, total, counts = server["observation_count"], server["player_sum"], server["counts"]
    k, rest = bisect_right(unpack(server["block_ends"], 8), instant), []
    if k < len(server["block_ends"]) // 8:
        block, pairs = read_block(connection, server, k)
        number, total, counts = 2048 * k, block["sum_before"], block["counts_before"]
        rest = sorted(players for at, players in pairs if at <= instant)
    counts = unpack(counts, next(width for width in (1, 2, 4, 8) if number < 256**width))
    counts += (counts or [0])[-1:] * (4096 - len(counts))
    counts = [count + bisect_right(rest, v) for v, count in enumerate(counts)]
    return number + len(rest), int.from_bytes(total, "little") + sum(rest), counts


def compute_figures(
    connection: sqlite3.Connection, server: Row, start: int, end: int
) -> tuple[float, ...] | None:
    """Return count, mean, lowest, median, peak, first and last of the window after start."""
    before, sum_before, low = find_state(connection, server, start)
    number, total, high = find_state(connection, server, end)
    count, counts = number - before, [b - a for a, b in zip(low, high, strict=True)]
    if not count:
        return None
    ranks = [0, (count - 1) // 2, count // 2, count - 1]
    lowest, lower, upper, peak = (bisect_right(counts, rank) for rank in ranks)
    pairs = read_observations(connection, server, before, number)
    if peak == 4096:  # the counts end below
        players = sorted(players for _, players in pairs)
        lowest, lower, upper, peak = (players[rank] for rank in ranks)
    mean, median = (total - sum_before) / count, (lower + upper) / 2
    return count, mean, lowest, median, peak, pairs[0][1], pairs[-1][1]
