"""Answer recorded requests again, and compare the answers with the recorded ones."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, get_args

from srvstat import operations
from srvstat.access import Access, Plan
from srvstat.contract import wire
from srvstat.contract.errors import (
    ApiError,
    ErrorCode,
    FeatureNotAvailableError,
    GatewayUnauthorizedError,
)
from srvstat.contract.http import (
    KEY_HEADER,
    Head,
    Headers,
    check_compare_head,
    check_method,
    find_key,
    find_target,
    find_values,
    parse_get_server,
)
from srvstat.contract.key_filter import HIDDEN_PART, KeyFilter
from srvstat.contract.ranges import DAY_MS
from srvstat.contract.requests import CompareRequest, ServerReference, parse_compare_request
from srvstat.contract.responses import ErrorResponse, Response
from srvstat.contract.wire import EncodedJson
from srvstat.documents.support import (
    Answer,
    Difference,
    Explanation,
    Interval,
    ReferencedServers,
    Replay,
    ReplayCounts,
    ReplayedExchange,
    ServerIntervals,
)
from srvstat.operations import NotInBundleError
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.support.comparing import (
    EXACT,
    MAX_DIFFERENCES,
    compare_bodies,
    escape_step,
    find_differences,
    shorten_difference,
    unescape_step,
)
from srvstat.support.exchange import Exchange, RecordedResponse, Unreadable, is_foreign_path
from srvstat.support.explain import explain_comparison, explain_server
from srvstat.support.search import (
    Instants,
    TrueTimes,
    find_true_times,
    limit_search,
    read_results,
)

AtRule = Literal["recorded", "snapshot", "search"]
"""How to choose the instant of an answer; also the values of `--at` besides times."""

_OK = 200
_FIRST_REDIRECT, _FIRST_ERROR, _FIRST_SERVER_ERROR = 300, 400, 500
_TIMEOUT, _RATE_LIMITED = 408, 429
_UNAUTHORIZED = GatewayUnauthorizedError.http_status
_FORBIDDEN = FeatureNotAvailableError.http_status

_MAX_FOREIGN_LENGTH = 1_000
"""Longer paths of foreign requests are cut. Thousands of them must not fill the memory."""

Findings = dict[str, Any]
"""Fields of a ReplayedExchange."""

_SECRET_PARAMETER = re.compile(
    r"([?&][^?=&]*(?:key|token|secret|password|signature|auth|authorization|session)(?:_?id)?=)"
    r"[^&]+",
    re.IGNORECASE,
)
"""A query parameter whose name says that its value is secret. No operation has one."""


_REST_OF_ADDRESS = re.compile(rb"[?#].*", re.DOTALL)
_USER = re.compile(rb".*@", re.DOTALL)
_REST_OF_METHOD = re.compile(r"[^A-Za-z0-9!#$%&'*+.^_`|~-].*", re.DOTALL)
_SECRETS_OF_ADDRESS = re.compile(r"""(?<=//)[^/\s"]*@|[?#](?:\\.|[^"\\])*""")
"""The user with the password, the query and the fragment of an address in a message."""


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


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """How to answer and to compare.

    `at` is a rule, or an instant in Unix milliseconds for all exchanges. A search begins `within`
    milliseconds before the request and ends at it. If it would begin after the end of the snapshot,
    it ends at the recorded as_of instead, or at the end of the snapshot. `plan` and `access` are as
    in `answer_exchange`.
    """

    at: AtRule | int = "recorded"
    within: int = 2 * DAY_MS
    tolerance: Decimal = EXACT
    plan: Plan | None = None
    access: Access | None = None
    is_explained: bool = False


def replay(
    snapshot: Snapshot, exchanges: Iterable[Exchange | Unreadable], settings: ReplaySettings
) -> Replay:
    """Answer all exchanges and compare the answers with the recorded responses.

    Raises SnapshotError, and what iterating over the exchanges raises.
    """
    replayer = _Replayer(snapshot, settings)
    replayed = tuple(map(replayer.replay, exchanges))
    counts = Counter(exchange.class_ for exchange in replayed)
    return Replay(
        as_of=snapshot.as_of,
        root=snapshot.root,
        exchanges=replayed,
        counts=ReplayCounts(
            match=counts["match"],
            differs=counts["differs"],
            unrecorded=counts["unrecorded"],
            foreign=counts["foreign"],
            not_reproducible=counts["notReproducible"],
            unreadable=counts["unreadable"],
        ),
    )


class _Replayer:
    def __init__(self, snapshot: Snapshot, settings: ReplaySettings) -> None:
        self._snapshot = snapshot
        self._settings = settings

    def replay(self, exchange: Exchange | Unreadable) -> ReplayedExchange:
        if isinstance(exchange, Unreadable):
            reason = KeyHider((), self._settings.access).hide_reason(exchange.reason)
            return ReplayedExchange(place=exchange.place, class_="unreadable", reason=reason)
        head = exchange.head
        hider = KeyHider(head.headers, self._settings.access)
        if is_foreign(head):
            path = hider.hide(exchange.host) + hider.hide_foreign_path(head.path)
            path = path[:_MAX_FOREIGN_LENGTH]
        else:
            path = hider.hide_target(head.path + (b"?" + head.query if head.query else b""))
        replayed = ReplayedExchange(
            place=exchange.place,
            method=hider.hide_method(head.method),
            path=path,
            requested_at=exchange.requested_at,
            class_="foreign",
        )
        if is_foreign(head):
            return replayed
        try:
            self._check_reproducible(exchange.response)
            findings = self._judge(exchange)
            if findings["class_"] == "differs" and _has_hidden_key(exchange):
                reason = "the recording hides a key that the request had"
                findings = {"class_": "notReproducible", "reason": reason}
        except NotReproducibleError as error:
            findings = {"class_": "notReproducible", "reason": str(error)}
        except NotInBundleError as error:
            findings = {"class_": "notReproducible", "reason": error.reason}
        return replayed.model_copy(update=hider.hide_findings(findings))

    def _check_reproducible(self, response: RecordedResponse | None) -> None:
        """Check that a recorded status follows from the request, the data and the access file.

        Raises NotReproducibleError.
        """
        status = response.status if response else _OK
        reason = None
        if status == _RATE_LIMITED:
            reason = "only the service counts requests"
        elif status == _TIMEOUT or status >= _FIRST_SERVER_ERROR:
            reason = "an error of the service or of a proxy; its log has the cause"
        elif _FIRST_REDIRECT <= status < _FIRST_ERROR:
            reason = "a redirect, which the API never sends"
        elif status in {_UNAUTHORIZED, _FORBIDDEN} and self._settings.access is None:
            reason = "depends on the access file of the service; give it with --access"
        elif status == _UNAUTHORIZED and self._settings.plan is not None:
            reason = "--plan skips the check of the key"
        if reason is not None:
            raise NotReproducibleError(f"status {status}: {reason}")

    def _judge(self, exchange: Exchange) -> Findings:
        """Answer a request of the contract and compare the answer with the recorded response.

        Raises NotReproducibleError, SnapshotError.
        """
        at = self._choose_instant(exchange)
        answered = self._answer(exchange, at)
        response = _prepare_response(exchange)
        if response is None or (response.body is None and response.status == answered.status):
            findings = _describe_missing(response, answered.reason)
            return findings | self._describe_answer(answered, at)
        differences = self._compare(response, answered)
        findings, reason = {}, answered.reason
        if self._settings.at == "search":
            searched = self._choose_search(answered, at)
            times = self._search(response, answered, differences, searched)
            findings = _describe_times(times, searched)
            if times.whole and times.whole[-1][1] != at:
                at = times.whole[-1][1]
                answered = self._answer(exchange, at)
                differences = self._compare(response, answered)
            elif not times.whole and searched[0] > max(at - self._settings.within, 0):
                reason = "the bundle covers only a part of the search"
        findings |= _describe_differences(differences, reason)
        return findings | self._describe_answer(answered, at)

    def _choose_instant(self, exchange: Exchange) -> int:
        match self._settings.at:
            case int() as at:
                return at
            case "snapshot":
                return self._snapshot.as_of
            case "search":
                recorded = [exchange.requested_at, exchange.as_of]
                # After the end of the data, no observation enters a window.
                if (recorded[0] or 0) - self._settings.within > self._snapshot.as_of:
                    recorded = [exchange.as_of]
            case "recorded":
                recorded = [exchange.as_of, exchange.requested_at]
        return next((at for at in recorded if at is not None), self._snapshot.as_of)

    def _choose_search(self, answered: RecomputedAnswer, at: int) -> Instants:
        searched = (max(at - self._settings.within, 0), at)
        if isinstance(answered.request, CompareRequest) and answered.status == _OK:
            return limit_search(self._snapshot, answered.request.range, searched)
        return searched

    def _answer(self, exchange: Exchange, at: int) -> RecomputedAnswer:
        settings = self._settings
        return answer_exchange(
            self._snapshot, exchange, plan=settings.plan, access=settings.access, at=at
        )

    def _compare(self, response: RecordedResponse, answered: RecomputedAnswer) -> list[Difference]:
        if response.status != answered.status:
            return _compare_errors(response, answered)
        return compare_bodies(response.body or b"", answered.body, self._settings.tolerance)

    def _search(
        self,
        response: RecordedResponse,
        answered: RecomputedAnswer,
        differences: list[Difference],
        searched: Instants,
    ) -> TrueTimes:
        """Find when a response was true; only the results of a comparison change with time."""
        request = answered.request
        if isinstance(request, CompareRequest) and response.status == answered.status == _OK:
            body = response.body or b""
            results = read_results(body, differences, len(request.servers))
            tolerance = self._settings.tolerance
            return find_true_times(self._snapshot, request, results, searched, tolerance)
        return TrueTimes([] if _has_value(differences) else [searched], [])

    def _describe_answer(self, answered: RecomputedAnswer, at: int) -> Findings:
        body = EncodedJson(answered.body.decode()) if answered.body else None
        findings: Findings = {"as_of": at, "answer": Answer(status=answered.status, body=body)}
        request = answered.request
        if request is not None:
            findings["request"] = _describe_request(request)
        if self._settings.is_explained and request is not None and answered.status == _OK:
            findings["explanation"] = self._explain(request, at)
        return findings

    def _explain(self, request: ServerReference | CompareRequest, at: int) -> Explanation | None:
        """Explain an answer; None as of a time before a bundle, at which Get Server has one."""
        if isinstance(request, CompareRequest):
            return explain_comparison(self._snapshot, request, at)
        try:
            return explain_server(self._snapshot, request, at)
        except NotInBundleError:
            return None


def is_foreign(head: Head) -> bool:
    """Return whether a request is not one to the API; a preflight is foreign too."""
    return is_foreign_path(head.path) or head.method == "OPTIONS"


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
        response: Response = (
            operations.get_server(snapshot, request)
            if isinstance(request, ServerReference)
            else operations.compare(snapshot, request, at=at)
        )
        status = _OK
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


def _has_hidden_key(exchange: Exchange) -> bool:
    """Return whether the service hid a key when it recorded the request."""
    head = exchange.head
    parts = (head.method.encode(), head.path, head.query, exchange.body)
    return exchange.is_from_service and any(HIDDEN_PART in part for part in parts)


def _prepare_response(exchange: Exchange) -> RecordedResponse | None:
    """Return the response of an exchange; that of HEAD has an empty body."""
    response = exchange.response
    if response is None or exchange.head.method != "HEAD":
        return response
    return RecordedResponse(response.status, b"")


def _compare_errors(response: RecordedResponse, answered: RecomputedAnswer) -> list[Difference]:
    """Return the difference of a status and, if an API error was recorded, of its code."""
    status = Difference(
        pointer="/status", recorded=response.status, recomputed=answered.status, class_="value"
    )
    recorded, recomputed = _find_code(response.body or b""), _find_code(answered.body)
    if recorded is None:
        return [status]
    ours = {} if recomputed is None else {"code": recomputed}
    return [status, *find_differences({"error": {"code": recorded}}, {"error": ours})]


def _find_code(body: bytes) -> str | None:
    """Return the code of an API error; None if the body is something else."""
    try:
        code = wire.decode(body)["error"]["code"]
    except (wire.JsonError, LookupError, TypeError):
        return None
    return code if isinstance(code, str) and code in get_args(ErrorCode) else None


def _has_value(differences: Iterable[Difference]) -> bool:
    return any(difference.class_ == "value" for difference in differences)


def _describe_differences(differences: list[Difference], reason: str | None) -> Findings:
    if len(differences) == MAX_DIFFERENCES:
        reason = f"only the first {MAX_DIFFERENCES:,} differences are listed"
    return {
        "class_": "differs" if _has_value(differences) else "match",
        "reason": reason,
        "differences": tuple(differences),
    }


def _describe_missing(response: RecordedResponse | None, reason: str | None) -> Findings:
    """Say that nothing can be compared, and why the answer is an error, if it is one."""
    part = "response" if response is None else "body of the response"
    missing = f"the {part} was not recorded"
    return {
        "class_": "unrecorded",
        "reason": missing if reason is None else f"{missing}; the answer is an error: {reason}",
    }


def _describe_times(times: TrueTimes, searched: Instants) -> Findings:
    return {
        "searched": _describe_intervals([searched])[0],
        "true_during": _describe_intervals(times.whole),
        "servers": tuple(
            ServerIntervals(server_id=name, true_during=_describe_intervals(intervals))
            for name, intervals in times.servers
        ),
    }


def _describe_intervals(intervals: Iterable[Instants]) -> tuple[Interval, ...]:
    return tuple(Interval(from_=start, to=end) for start, end in intervals)


def _describe_request(request: ServerReference | CompareRequest) -> ReferencedServers:
    if isinstance(request, ServerReference):
        return ReferencedServers(servers=(f"{request.by}:{request.identifier}",), range=None)
    names = tuple(f"{server.by}:{server.identifier}" for server in request.servers)
    return ReferencedServers(servers=names, range=request.range)


class KeyHider:
    """Hide the keys in the headers of a request, those of an access file, and generated ones."""

    def __init__(self, headers: Headers, access: Access | None) -> None:
        keys = find_values(headers, KEY_HEADER.lower().encode())
        self._filter = KeyFilter(
            [key.decode("latin-1") for key in keys],
            lambda key: access is not None and access.find_customer(key) is not None,
        )

    def hide(self, text: str) -> str:
        """Replace the keys in a text, however they are escaped."""
        return self._filter.hide(text.encode("utf-8", "backslashreplace")).decode(
            "utf-8", "replace"
        )

    def hide_target(self, target: bytes) -> str:
        """Return the target of a request as text, without keys and other secrets in its query."""
        hidden = self._filter.hide(target).decode("utf-8", "backslashreplace")
        return _SECRET_PARAMETER.sub(r"\1…", hidden)

    def hide_foreign_path(self, path: bytes) -> str:
        """Return the path of a request that is not to the API, without query and fragment.

        Those hold keys and codes of others, under any name. What is before an `@` may be a user
        with a password: not every client refuses an address with these in an unusual place.
        """
        kept = _USER.sub("/…@".encode(), _REST_OF_ADDRESS.sub(b"", path), count=1)
        return self._filter.hide(kept).decode("utf-8", "backslashreplace")

    def hide_method(self, method: str) -> str:
        """Return a method without what can't be in one, which may be a query."""
        return _REST_OF_METHOD.sub("…", self.hide(method))

    def hide_reason(self, reason: str) -> str:
        """Return why a part is unreadable, without keys, and only host and path of an address."""
        return _SECRETS_OF_ADDRESS.sub("", self.hide(reason))

    def hide_findings(self, findings: Mapping[str, Any]) -> dict[str, Any]:
        """Hide keys in the fields of a ReplayedExchange that can repeat what a client sent.

        Differences are shortened after that: half a key could not be found.
        """
        hidden = dict(findings)
        if hidden.get("reason") is not None:
            hidden["reason"] = self._filter.redact(hidden["reason"])
        if "request" in hidden:
            names = tuple(map(self.hide, hidden["request"].servers))
            hidden["request"] = hidden["request"].model_copy(update={"servers": names})
        if "differences" in hidden:
            hidden["differences"] = tuple(
                shorten_difference(self._hide_difference(each)) for each in hidden["differences"]
            )
        return hidden

    def _hide_difference(self, difference: Difference) -> Difference:
        steps = map(unescape_step, difference.pointer.split("/"))
        return difference.model_copy(
            update={
                "pointer": "/".join(escape_step(self.hide(step)) for step in steps),
                "recorded": self._hide_value(difference.recorded),
            }
        )

    def _hide_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, wire.EncodedJson) and self.hide(value.text) != value.text:
            decoded = wire.decode_text(value.text, keep_numbers=True)
            return wire.encode_once(self._hide_parts(decoded))
        return value

    def _hide_parts(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self.hide(key): self._hide_parts(member) for key, member in value.items()}
        if isinstance(value, list):
            return [self._hide_parts(item) for item in value]
        return self.hide(value) if isinstance(value, str) else value
