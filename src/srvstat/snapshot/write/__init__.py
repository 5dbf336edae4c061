"""Write a snapshot file from sources, of which another snapshot can be one."""

from srvstat.sources.registry import KINDS, Kind

_MODULE = f"{__name__}.from_snapshot"
KINDS["snapshot"] = Kind((), _MODULE, _MODULE, is_fixed=True, is_whole=True)
