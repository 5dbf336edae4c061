"""The result of verifying a snapshot."""

from srvstat.documents.document import Document, Instant


class Verification(Document):
    """A snapshot found sound: its root, as 64 hexadecimal digits, and the counts of its rows."""

    root: str
    as_of: Instant
    servers: int
    observations: int
    days: int
