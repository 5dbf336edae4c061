"""Read the observations of servers as arrays."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from srvstat.arrays import Numbers
from srvstat.contract.windows import Window
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.snapshot import Snapshot


class Observations(NamedTuple):
    """Observations in ascending order of instants (Unix milliseconds): arrays of equal length."""

    instants: Numbers
    players: Numbers


def read_observations(snapshot: Snapshot, server: ServerRow, window: Window) -> Observations:
    """Return a server's observations in a window.

    Raises SnapshotError.
    """
    instants, players = snapshot.read_observations(server, window)
    return Observations(np.array(instants, np.int64), np.array(players, np.int64))


def iter_observations(
    snapshot: Snapshot, server: ServerRow, window: Window
) -> Iterator[Observations]:
    """Yield, a block at a time, what `read_observations` returns at once.

    Raises SnapshotError.
    """
    for instants, players in snapshot.iter_observations(server, window):
        if instants:
            yield Observations(np.array(instants, np.int64), np.array(players, np.int64))
