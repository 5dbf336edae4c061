"""Write a snapshot file from sources, of which another snapshot can be one."""

from srvstat.sources.registry import KINDS, Kind

KINDS["snapshot"] = Kind(
    (),
    f"{__name__}.from_snapshot:read",
    f"{__name__}.from_snapshot:read_records",
    is_fixed=True,
    is_whole=True,
)
