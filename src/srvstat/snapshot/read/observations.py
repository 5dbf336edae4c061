"""Read the observations of servers as arrays."""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from srvstat.contract.time import Window
from srvstat.snapshot.blocks import Observations, decode, join
from srvstat.snapshot.read.verified_rows import VerifiedRows
from srvstat.snapshot.rows import BLOCKS_PER_SERVER, ForgedRowError, ServerRow, read_block_ends


class Files(Protocol):
    """A snapshot of one file or of several."""

    def get_file(self, server: ServerRow, /) -> VerifiedRows:
        """Return the file that has a server."""


def read_observations(snapshot: Files, server: ServerRow, window: Window) -> Observations:
    """Return a server's observations in a window.

    Raises SnapshotError.
    """
    return join(list(iter_observations(snapshot, server, window)))


def iter_observations(snapshot: Files, server: ServerRow, window: Window) -> Iterator[Observations]:
    """Yield, a block at a time, what `read_observations` returns at once.

    Raises SnapshotError.
    """
    rows = snapshot.get_file(server)
    with rows.convert_decode_errors(f"the observations of {server.title}"):
        ends = read_block_ends(server)
        last = -1
        for block in rows.iter_blocks(server, *(bisect_right(ends, edge) for edge in window)):
            if block.first_observed_at <= last:
                raise ForgedRowError("not ascending")
            last = ends[block.server_block % BLOCKS_PER_SERVER]
            instants, players = decode(block, last)
            if window.start < block.first_observed_at and last <= window.end:
                yield Observations(instants, players)
                continue
            first, end = np.searchsorted(instants, window, "right")
            if first < end:
                yield Observations(instants[first:end], players[first:end])
