"""Call the service through openapi-generator's client for Python."""

import json
import sys

from openapi_client import (
    ApiClient,
    CompareRequest,
    ComparisonApi,
    Configuration,
    Namespace,
    ServerReference,
    ServersApi,
)
from openapi_client.exceptions import NotFoundException

url, key = sys.argv[1:]
with ApiClient(Configuration(host=url, api_key={"GatewayKey": key})) as client:
    servers = ServersApi(client)
    detail = servers.get_server("x-busy", by=Namespace.CFXID).data
    references = [
        ServerReference(identifier="busy", by=Namespace.ID),
        ServerReference(identifier="x-silent", by=Namespace.CFXID),
    ]
    comparison = ComparisonApi(client).compare_servers(CompareRequest(servers=references))
    try:
        servers.get_server("nobody")
    except NotFoundException as error:
        refused = [error.status, error.data.error.code, error.data.error.message]
assert all(result.uptime is None for result in comparison.data)
answers = {
    "server": [detail.id, detail.players.current, detail.icon_url],
    "comparison": comparison.to_dict(),
    "error": refused,
}
json.dump(answers, sys.stdout)
