"""Answer a recorded request as the service would, for the caller who sent it."""

from dataclasses import dataclass

from srvstat import operations
from srvstat.access import Access, Plan
from srvstat.contract.errors import ApiError, GatewayUnauthorizedError
from srvstat.contract.http import (
    KEY_HEADER,
    Head,
    check_compare_head,
    check_method,
    find_key,
    find_target,
    find_values,
    parse_get_server,
)
from srvstat.contract.requests import CompareRequest, ServerReference, parse_compare_request
from srvstat.contract.responses import ErrorResponse, Response
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.support.recordings.exchange import Exchange
from srvstat.support.recordings.heads import is_foreign_path

_OK = 200
_UNAUTHORIZED = GatewayUnauthorizedError.http_status
_PREFLIGHT_METHOD = "OPTIONS"


class NotReproducibleError(Exception):
    """Only the service that answered knows why. The message gives the reason."""


@dataclass(frozen=True, slots=True)
class RecomputedAnswer:
    """The answer to a request. `body` is empty for HEAD.

    `request` is None if it is invalid; `reason` is that of an error.
    """

    status: int
    body: bytes
    request: ServerReference | CompareRequest | None
    reason: str | None


def is_foreign(head: Head) -> bool:
    """Return whether a request is not one to the API; a preflight is foreign too."""
    return is_foreign_path(head.path) or head.method == _PREFLIGHT_METHOD


def answer_exchange(
    snapshot: Snapshot,
    exchange: Exchange,
    *,
    plan: Plan | None,
    access: Access | None,
    at: int,
) -> RecomputedAnswer:
    """Answer the request of an exchange as of an instant, in the order of D11.

    `plan` overrides the caller's; without it, `access` gives the plan of the caller's key. Without
    both, everything is allowed.

    Raises NotReproducibleError, SnapshotError.
    """
    head = exchange.head
    request = None
    reason = None
    try:
        if plan is None and access is not None:
            plan = _find_plan(exchange, access)
        request = _parse_request(head, exchange.body)
        if plan is not None:
            plan.check_request(request)
        status, response = _OK, _answer_request(snapshot, request, at)
    except ApiError as error:
        status, response = error.http_status, ErrorResponse.from_error(error)
        reason = error.reason
    body = b"" if head.method == "HEAD" else response.to_json()
    return RecomputedAnswer(status, body, request, reason)


def _find_plan(exchange: Exchange, access: Access) -> Plan | None:
    """Return the plan of the caller; None if the recording does not identify the caller.

    Raises GatewayUnauthorizedError, NotReproducibleError.
    """
    is_rejected = exchange.response is not None and exchange.response.status == _UNAUTHORIZED
    if exchange.plan is not None:
        if exchange.plan not in access.plans:
            raise NotReproducibleError(f"the access file has no plan {exchange.plan}")
        return access.plans[exchange.plan]
    if find_values(exchange.head.headers, KEY_HEADER.lower().encode()):
        customer = access.find_customer(find_key(exchange.head.headers))
        if customer is None:
            raise GatewayUnauthorizedError(f"{KEY_HEADER}: not a key of the access file")
        return customer.plan
    if is_rejected:
        raise GatewayUnauthorizedError(f"{KEY_HEADER}: not recorded")
    return None


def _parse_request(head: Head, body: bytes) -> ServerReference | CompareRequest:
    target = check_method(head.method, find_target(head.path))
    if target.operation == "compareServers":
        check_compare_head(head)
        return parse_compare_request(body)
    return parse_get_server(head, target.identifier)


def _answer_request(
    snapshot: Snapshot, request: ServerReference | CompareRequest, at: int
) -> Response:
    if isinstance(request, ServerReference):
        return operations.get_server(snapshot, request)
    return operations.compare(snapshot, request, at=at)
