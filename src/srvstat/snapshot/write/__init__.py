"""Write a snapshot file from sources, which can include another snapshot."""

from srvstat.sources.registry import KINDS, Kind

KINDS["snapshot"] = Kind(
    (),
    "srvstat.snapshot.write.copies:read",
    "srvstat.snapshot.write.copies:read_records",
    is_fixed=True,
    is_whole=True,
)
