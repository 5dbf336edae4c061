"""Call the service through the client of openapi-python-client."""

import json
import sys

from srvstat_client import AuthenticatedClient
from srvstat_client.api.comparison import compare_servers
from srvstat_client.api.servers import get_server
from srvstat_client.models import (
    CompareRequest,
    CompareResponse,
    ErrorResponse,
    Namespace,
    ServerReference,
    ServerResponse,
)

url, key = sys.argv[1:]
with AuthenticatedClient(
    base_url=url, token=key, prefix="", auth_header_name="X-Gateway-Key"
) as client:
    found = get_server.sync("x-busy", client=client, by=Namespace.CFXID)
    assert isinstance(found, ServerResponse)
    references = [
        ServerReference(identifier="busy", by=Namespace.ID),
        ServerReference(identifier="x-silent", by=Namespace.CFXID),
    ]
    comparison = compare_servers.sync(client=client, body=CompareRequest(servers=references))
    assert isinstance(comparison, CompareResponse)
    failure = get_server.sync_detailed("nobody", client=client)
    assert isinstance(failure.parsed, ErrorResponse)
assert all(result.uptime is None for result in comparison.data)
error = failure.parsed.error
answers = {
    "server": [found.data.id, found.data.players.current, found.data.icon_url],
    "comparison": comparison.to_dict(),
    "error": [failure.status_code, error.code, error.message],
}
json.dump(answers, sys.stdout)
