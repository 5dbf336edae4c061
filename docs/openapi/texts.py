"""Define the descriptions of the service, its operations, models and errors."""

from collections.abc import Mapping

from srvstat.contract.errors import ErrorCode
from srvstat.contract.ranges import DEFAULT_RANGE
from srvstat.contract.requests import MAX_BODY_BYTES, MAX_SERVERS, MIN_SERVERS

CONDITIONS: Mapping[ErrorCode, str] = {
    "INVALID_REQUEST": "query, path, body, range or duplicate-reference validation failed",
    "GATEWAY_UNAUTHORIZED": "gateway authentication failed",
    "FEATURE_NOT_AVAILABLE": "the subscription lacks the feature or the range",
    "SERVER_NOT_FOUND": "a server is unknown or not publishable; the two are indistinguishable",
    "RATE_LIMITED": "a request limit was exceeded",
    "INTERNAL_ERROR": "unexpected service error",
}
"""The condition of each error code."""

GET_SERVER = "Returns the public details of one server."

COMPARE_SERVERS = """\
Returns the statistics of the servers over one range, in the order of the request. Each reference
has its own namespace, `by`; a request may mix namespaces. If any server is not found, the response
is 404.
"""

HEALTH = """\
Reports that the service is running, and which snapshot it uses. Requires no key. The path is
outside the contract's base path.
"""

READINESS = """\
Reads a server from the snapshot's file, another one each time. The response is 503 if it can't be
read or is damaged, if this takes longer than 2 seconds, or if the service is stopping.
Requires no key. The path is outside the contract's base path.
"""

KEY = "A customer key issued by the gateway. Without an access file, the service accepts any key."

MODELS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "CompareRequest": (
        "Two to five different references, and the range to compare them over.",
        {
            "servers": "The references must be unique.",
            "range": f"The default is `{DEFAULT_RANGE}`.",
        },
    ),
    "ServerReference": (
        "An identifier with its namespace.",
        {
            "identifier": "The canonical service ID, or the network ID if `by` is `cfxId`.",
            "by": "The namespace of the identifier. The service never guesses it.",
        },
    ),
    "Namespace": ("`id` for the canonical service ID, `cfxId` for the network ID.", {}),
    "Range": ("A number of 24-hour days, ending at the snapshot's `asOf`. `1y` is 365 days.", {}),
    "CompareResponse": (
        "One result for each requested server, in the order of the request.",
        {"range": "The requested range, or the default."},
    ),
    "ServerResult": (
        "The statistics of one server over one range.",
        {
            "serverId": "The canonical service ID.",
            "cfxId": "The network ID.",
            "currentPlayers": "The current player count, which is not the last observation.",
            "averagePlayers": "Null if there are no observations in the range.",
            "medianPlayers": "Null if there are no observations in the range.",
            "peakPlayers": "Null if there are no observations in the range.",
            "lowestPlayers": "Null if there are no observations in the range.",
            "uptime": "Always null in v1: missing observations are never treated as downtime.",
            "sampleCount": "The number of observations in the range.",
        },
    ),
    "GrowthFields": (
        "The change from the first to the last observation in the range; null for fewer than two.",
        {
            "players": "The last observation minus the first.",
            "percentage": "`players` as a percentage of the first observation; null if that is 0.",
        },
    ),
    "ServerResponse": ("The public details of one server.", {}),
    "ServerDetail": (
        "The public record of one server.",
        {
            "id": "The canonical service ID.",
            "cfxId": "The network ID.",
            "region": "A short region code.",
            "flags": "Short upper-case labels.",
            "chatUrl": "The URL of the community chat.",
            "iconUrl": "The URL of the icon, or null.",
            "firstSeenAt": "A UTC timestamp with milliseconds.",
            "updatedAt": "A UTC timestamp with milliseconds.",
        },
    ),
    "Players": ("The current and the maximum number of players.", {}),
    "HealthResponse": (
        "The snapshot in use.",
        {
            "asOf": "The instant at which every range ends.",
            "root": "The SHA-256 digest of the snapshot's content.",
        },
    ),
    "UnavailableResponse": ("The service is not ready. Its log has the reason.", {}),
    "ErrorResponse": ("The body of every error.", {}),
    "ErrorFields": ("The error code and its fixed message.", {}),
}
"""Model name to its description and the descriptions of its properties."""


_FORMATS = """\
## Formats and rules

- A response body is compact JSON in UTF-8, with its keys in the order of the schemas. Its
  bytes are those that ECMAScript's `JSON.stringify` produces: `12`, never `12.0`.
- Statistics are exact. The average is the IEEE 754 double nearest to sum / count. The median is the
  middle value, or the average of the two middle values. Nothing is rounded further.
- A range is a number of 24-hour days: `24h` is 1 day, `1y` is 365 days. It ends at the snapshot's
  `asOf`, which the health check returns. The start is exclusive, the end inclusive. If there are no
  observations in the range, the statistics are null and `sampleCount` is 0.
- Identifiers are case-sensitive. Two references are duplicates if both `by` and `identifier` are
  equal. The `id` and the `cfxId` of the same server are two different references.
- Requests are validated strictly, and no value is converted. `"range": null`, a number in place of
  a string, and unknown or repeated properties and query parameters are invalid.
"""


def describe_service(error_table: str) -> str:
    """Return the description of the service, in Markdown."""
    return f"""\
A read-only API for statistics of public game servers. Get Server returns the public details of one
server. Compare Servers returns the statistics of {MIN_SERVERS} to {MAX_SERVERS} servers over one
range.

The examples are responses of `srvstat serve` with the snapshot that `srvstat demo` writes.

## Errors

All errors have a body of the form `{{"error":{{"code":…,"message":…}}}}`.

{error_table}
There are no other codes. Two cases have the body of INVALID_REQUEST but another status: an unknown
path returns 404, and an unsupported method of a known path returns 405 with `Allow`. A content type
other than `application/json`, a content encoding, or a body of more than {MAX_BODY_BYTES:,} bytes
returns 400.

## Order of checks

The first check that fails determines the response:

1. the key (401)
2. the key's request limit (429)
3. the path (404) and the method (405)
4. the identifier, query, headers and body (400)
5. the plan (403)
6. the servers (404)

Statistics are computed only if all checks pass.

{_FORMATS}"""
