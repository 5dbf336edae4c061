"""The descriptions of the document: the service, its models and its errors."""

from collections.abc import Mapping

from srvstat.contract.errors import ErrorCode
from srvstat.contract.ranges import DEFAULT_RANGE
from srvstat.contract.requests import MAX_BODY_BYTES, MAX_SERVERS, MIN_SERVERS

CONDITIONS: Mapping[ErrorCode, str] = {
    "INVALID_REQUEST": "query, path, body, range or duplicate-reference validation failed",
    "GATEWAY_UNAUTHORIZED": "gateway authentication failed",
    "FEATURE_NOT_AVAILABLE": "the subscription lacks the feature or the range",
    "SERVER_NOT_FOUND": "a server is unknown or not publishable; the two cannot be told apart",
    "RATE_LIMITED": "a request limit was exceeded",
    "INTERNAL_ERROR": "an unexpected error of the service",
}
"""The condition of each error code."""

GET_SERVER = "The public detail of one server, whose identifier is in the path."

COMPARE_SERVERS = """\
Statistics of the servers over one range, in the order of the request. The namespace of each
reference is its own `by`; one request may mix them. All servers must exist.
"""

HEALTH = """\
Says that the service answers, and from which snapshot. It needs no key and lies outside the
contract's base path.
"""

KEY = "A customer key that the gateway has issued. A service without access file takes any."

MODELS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "CompareRequest": (
        "Two to five different references and the range to compare them over.",
        {"servers": "No two of them are equal.", "range": f"`{DEFAULT_RANGE}` if absent."},
    ),
    "ServerReference": (
        "One server, named in its own namespace.",
        {
            "identifier": "The canonical service ID, or the network ID with `cfxId`.",
            "by": "The namespace of the identifier. It is never guessed.",
        },
    ),
    "Namespace": ("The kind of an identifier.", {}),
    "Range": ("A number of whole days of 24 hours that ends at the snapshot's instant.", {}),
    "CompareResponse": (
        "One result for each requested server, in the order of the request.",
        {"range": "The range used."},
    ),
    "ServerResult": (
        "The statistics of one server over one range.",
        {
            "serverId": "The canonical service ID.",
            "cfxId": "The network ID.",
            "currentPlayers": "The current player count. It is not the last observation.",
            "averagePlayers": "Null without observations in the range, like the next three.",
            "uptime": "Always null in v1: a missing observation is never taken for downtime.",
            "sampleCount": "How many observations the range has.",
        },
    ),
    "GrowthFields": (
        "From the first to the last observation in the range; null for fewer than two.",
        {
            "players": "The last minus the first.",
            "percentage": "Of the first; null where the first is 0.",
        },
    ),
    "ServerResponse": ("The public detail of one server.", {}),
    "ServerDetail": (
        "The public record of one server.",
        {
            "id": "The canonical service ID.",
            "cfxId": "The network ID.",
            "region": "A short region code.",
            "flags": "Short upper-case labels.",
            "chatUrl": "A URL.",
            "iconUrl": "A URL, or null.",
            "firstSeenAt": "UTC with milliseconds.",
            "updatedAt": "UTC with milliseconds.",
        },
    ),
    "Players": ("The current and the greatest possible number of players.", {}),
    "HealthResponse": (
        "The snapshot that answers come from.",
        {
            "asOf": "The instant that the snapshot speaks for.",
            "root": "The digest of all that the snapshot says.",
        },
    ),
    "ErrorResponse": ("The body of every error.", {}),
    "ErrorFields": ("What went wrong; the message belongs to the code.", {}),
}
"""Model name to its description and the descriptions of its properties."""


def describe_service(error_table: str) -> str:
    """Return the description of the service, in Markdown."""
    return f"""\
Statistics of public game servers, read-only: the public detail of one server (Get Server), and
statistics of {MIN_SERVERS} to {MAX_SERVERS} servers over one range (Compare Servers).

The examples are the answers of `srvstat serve` over the snapshot that `srvstat demo` writes.

## Errors

Every error has a body of the same shape, `{{"error":{{"code":…,"message":…}}}}`.

{error_table}
These six codes are all there are. So a path that is not in the contract answers 404, and a known
path with another method answers 405 with `Allow`, both with the body of INVALID_REQUEST. Another
content type than `application/json`, a content encoding, and a body of more than {MAX_BODY_BYTES:,}
bytes answer 400.

## Order of checks

The first check that fails decides the answer: the key (401) and its request limit (429), the path
and the method (404, 405), the request (400), the plan (403), the servers (404). Only then is
anything worked out.

## What is exact

- A body is JSON without white space, in UTF-8, with its keys in the order of the schemas. Its
  bytes are those that ECMAScript's `JSON.stringify` writes: `12`, never `12.0`.
- Statistics are exact. The average is the IEEE double nearest to sum / count, the median is the
  middle value or the average of the two middle values, and nothing is rounded further.
- A range is a number of whole days of 24 hours (24h is 1 day, 1y is 365) that ends at the instant
  the snapshot speaks for. Its start is left out, its end is in. Without an observation in it, the
  statistics are null and `sampleCount` is 0.
- Identifiers are compared as they are: case matters. Two references are duplicates when both
  `by` and `identifier` are equal. One server named by id and by cfxId is two references.
- Nothing in a request is converted or forgiven: no `"range": null`, no number for a string, no
  property or query parameter that is not described here, and none of them twice.
"""
