"""Map the identifiers of sources to servers."""

from collections.abc import Sequence

from srvstat.sources.batch import IDENTIFIER, IDENTIFIER_RULE
from srvstat.sources.servers import ServerRecord

NOT_LISTED = 0
NOT_PUBLISHABLE = -1
MALFORMED = -2

SKIP_REASONS = {NOT_LISTED: "not in the servers file", NOT_PUBLISHABLE: "not publishable"}
"""Why the observations of a server are skipped, by the code that a roster has instead of a key."""

MALFORMED_REASON = f"serverId: {IDENTIFIER_RULE}"


class Roster(dict[str, int]):
    """Maps each identifier to the key of its server, or to a code below 1 if it has none.

    Keys are 1, 2, 3 … An identifier is judged when it is first looked up.
    """

    def __init__(self, records: Sequence[ServerRecord]) -> None:
        super().__init__()
        publishable = sorted(record.id for record in records if record.publishable)
        self.server_keys = {server_id: key for key, server_id in enumerate(publishable, 1)}
        self.withheld = {record.id for record in records if not record.publishable}

    def __missing__(self, identifier: str) -> int:
        """Judge an identifier and remember the result."""
        key = self[identifier] = self._judge(identifier)
        return key

    def _judge(self, identifier: str) -> int:
        if identifier in self.withheld:
            return NOT_PUBLISHABLE
        if not IDENTIFIER.fullmatch(identifier):
            return MALFORMED
        return self.server_keys.get(identifier, NOT_LISTED)
