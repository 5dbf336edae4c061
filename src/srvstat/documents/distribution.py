"""How often servers had how many players: the document `distribution`."""

from typing import Literal

from srvstat.documents.document import Part, SnapshotDocument, WindowPart


class ServerDistribution(Part):
    """One server; `counts` has the number of observations of each bin.

    The quartiles are quantiles after Hyndman and Fan's definition 2. Without observations, all
    figures are None.
    """

    server_id: str
    cfx_id: str
    hostname: str
    sample_count: int
    lowest_players: int | None
    lower_quartile: float | None
    median_players: float | None
    upper_quartile: float | None
    peak_players: int | None
    counts: tuple[int, ...]


class Distribution(SnapshotDocument):
    """The observations of servers by their number of players, in bins that all servers share.

    Bin `i` has the counts from `first_players + i * bin_players` up to, but not including,
    the start of the next bin.
    """

    document: Literal["distribution"] = "distribution"
    version: Literal[1] = 1
    window: WindowPart
    first_players: int
    bin_players: int
    servers: tuple[ServerDistribution, ...]
