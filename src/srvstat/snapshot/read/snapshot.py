"""Open a snapshot of either kind: a file, or a folder of shards."""

import os
import stat
from typing import TYPE_CHECKING, TypeAlias

from srvstat.files.identity import Identity, compute_identity, identify_file
from srvstat.snapshot.format.digest import MANIFEST
from srvstat.snapshot.read.reader import SnapshotFile, open_file

if TYPE_CHECKING:
    from srvstat.snapshot.read.sharded import ShardedSnapshot

Snapshot: TypeAlias = "SnapshotFile | ShardedSnapshot"


def open_snapshot(path: str) -> Snapshot:
    """Open a snapshot for reading: a file, or a folder with a manifest of shards.

    Raises SnapshotError with a one-line reason that names the problem and a remedy, and shows
    nothing of the observations.
    """
    if not path or not os.path.isdir(path):
        return open_file(path)
    # Answers from one file need neither the manifest nor its model, which take 20 ms.
    from srvstat.snapshot.read.sharded import open_shards  # noqa: PLC0415

    return open_shards(path)


def identify_snapshot(path: str) -> Identity:
    """Return the identity of the file at a path; for a folder, that of its manifest."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(status.st_mode):
        return identify_file(os.path.join(path, MANIFEST))
    return compute_identity(status)
