"""The result of verifying a snapshot."""

from srvstat.documents.document import Document, Instant


class Verification(Document):
    """The root of a verified snapshot, as 64 hexadecimal digits, and the counts of its rows.

    `days` counts each day of each server.
    """

    root: str
    as_of: Instant
    servers: int
    observations: int
    days: int
