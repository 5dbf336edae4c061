"""The result of verifying a snapshot."""

from typing import Literal

from srvstat.documents.document import SnapshotDocument


class Verification(SnapshotDocument):
    """The root of a verified snapshot, as 64 hexadecimal digits, and the counts of its rows.

    `days` counts each day of each server.
    """

    document: Literal["verification"] = "verification"
    version: Literal[1] = 1
    servers: int
    observations: int
    days: int
