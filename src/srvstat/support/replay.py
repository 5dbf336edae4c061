"""Respond to recorded requests again, and compare the responses with the recorded responses."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from http import HTTPStatus
from types import NoneType
from typing import Any, Literal, NamedTuple

from srvstat.contract import errors, http, requests
from srvstat.contract.requests import CompareRequest, ServerReference, build_server_reference
from srvstat.contract.responses import ErrorResponse, Response
from srvstat.contract.time import format_instant
from srvstat.contract.windows import DAY_MS, DAYS, Range
from srvstat.contract.wire import EncodedJson
from srvstat.documents import support as documents
from srvstat.operations import answers as operations
from srvstat.operations.access import Access, Plan
from srvstat.operations.redaction import HIDDEN_PART, KeyFilter
from srvstat.snapshot.read.file import MissingGameError
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.snapshot.rows import REDACTIONS
from srvstat.support import comparing
from srvstat.support.recordings import Exchange, RecordedResponse, Unreadable, drop_filler

AtRule = Literal["recorded", "snapshot", "search"]
"""The rules for choosing the as-of time of a response. `--at` accepts these and times."""

_REFUSALS = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}

_MAX_FOREIGN_LENGTH = 1_000
"""The maximum length of an unrelated request's path. Thousands of long paths would fill the
memory.
"""

Request = ServerReference | CompareRequest

Clock = Literal["client", "service"]

_MOST_CLOCK_ERROR = DAY_MS // 24
_MOST_ROUNDING = 1_500

Findings = dict[str, Any]
"""Fields of a ReplayedExchange."""

_PLACEHOLDER = re.compile(
    r"(?=.)[\W_]*+(?:x++[\W_]*+)?|<.*>|\[.*\]|\{.*\}|\$.*"
    r"|\W*(?:(?:your|my|the|api|gateway|secret)[\W_]*)*"
    r"(?:redacted|removed|hidden|masked|filtered|stripped|sanitized|omitted|secret|key|token)\W*",
    re.IGNORECASE,
)
"""Matches the text that people and programs write in place of a key, such as `***`, `<key>` and
`REDACTED`.
"""

_UPDATED_AT = "/data/updatedAt"
_RECORD_FIELD = re.compile(r"/data/(?!(?:id|cfxId)(?:/|\Z)).+")

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
"""A JSON string."""


class NotReproducibleError(Exception):
    """The recorded status can't be reproduced from the request and the snapshot.

    The message gives the reason.
    """


class RecomputedAnswer(NamedTuple):
    """The recomputed response to a request.

    - `body`: empty for HEAD.
    - `request`: None if it is invalid.
    - `reason`: explains an error.
    """

    status: int
    body: bytes
    request: Request | None
    reason: str | None


class ReplaySettings(NamedTuple):
    """How to recompute responses, and how to compare them.

    - `at`: a rule, or a time in Unix milliseconds for all exchanges.
    - `within`: how far before the request a search begins, in milliseconds. It ends an hour after
      the request, because clocks can differ, but not after the end of the snapshot. For a request
      long after the end of the snapshot, the recorded as_of or the end of the snapshot replaces the
      time of the request.
    - `plan`: overrides the caller's plan.
    - `access`: without `plan`, gives the plan of the caller's key. Without both, everything is
      allowed.
    - `prefix`: precedes the paths of the API, as behind a proxy. Default: the first prefix found.
    """

    at: AtRule | int = "recorded"
    within: int = 2 * DAY_MS
    tolerance: Decimal = comparing.EXACT
    plan: Plan | None = None
    access: Access | None = None
    is_explained: bool = False
    prefix: bytes | None = None


def replay(
    snapshot: Snapshot, exchanges: Iterable[Exchange | Unreadable], settings: ReplaySettings
) -> documents.Replay:
    """Respond to all exchanges again, and compare the responses with the recorded responses.

    Raises SnapshotError if the snapshot is damaged, and the errors of the exchanges' iterator.
    """
    replayer = _Replayer(snapshot, settings, settings.prefix)
    replayed = tuple(map(replayer.replay, exchanges))
    counts, end, root = count_classes(replayed), snapshot.as_of, snapshot.root
    return documents.Replay(as_of=end, root=root, exchanges=replayed, counts=counts)


def count_classes(exchanges: Iterable[documents.ReplayedExchange]) -> documents.ReplayCounts:
    """Count exchanges by their class."""
    counts = Counter(exchange.class_ for exchange in exchanges)
    return documents.ReplayCounts.model_validate(counts, by_alias=True)


@dataclass(slots=True)
class _Replayer:
    snapshot: Snapshot
    settings: ReplaySettings
    prefix: bytes | None

    def replay(self, exchange: Exchange | Unreadable) -> documents.ReplayedExchange:
        if isinstance(exchange, Unreadable):
            reason = KeyFilter((), self._is_registered).hide_reason(exchange.reason)
            return documents.ReplayedExchange(
                place=exchange.place, class_="unreadable", reason=reason
            )
        head = exchange.head
        keys = KeyFilter.for_headers(head.headers, self._is_registered)
        is_foreign = exchange.is_foreign or head.method == "OPTIONS"  # a preflight
        if exchange.prefix and not is_foreign and self.prefix is None:
            self.prefix = exchange.prefix
        is_other = not is_foreign and exchange.prefix not in (b"", self.prefix)
        path = exchange.prefix + head.path
        if is_foreign or is_other:
            shown = keys.hide_text(exchange.host) + keys.hide_foreign_path(path)
            shown = shown[:_MAX_FOREIGN_LENGTH]
        else:
            shown = keys.hide_target(path + (b"?" + head.query if head.query else b""))
        replayed = documents.ReplayedExchange(
            place=exchange.place,
            request_id=exchange.request_id and keys.hide_text(exchange.request_id),
            method=keys.hide_method(head.method),
            path=shown,
            requested_at=exchange.requested_at,
            answered_at=exchange.answered_at,
            class_="foreign",
            reason=f"add --prefix {keys.hide_text(exchange.prefix.decode())}" if is_other else None,
        )
        if is_foreign or is_other:
            return replayed
        try:
            findings = self._judge(exchange)
        except (NotReproducibleError, operations.NotInBundleError, MissingGameError) as error:
            findings = {"class_": "notReproducible", "reason": str(error)}
        return replayed.model_copy(update=_hide_findings(keys, findings))

    def _is_registered(self, key: bytes) -> bool:
        access = self.settings.access
        return access is not None and access.find_plan(key) is not None

    def _check_reproducible(self, status: int) -> None:
        """Check that a recorded status depends only on the request, the data and the access file.

        Raises NotReproducibleError if it depends on anything else.
        """
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            reason = "only the service counts requests"
        elif status == HTTPStatus.REQUEST_TIMEOUT or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            reason = "an error of the service or of a proxy; its log has the cause"
        elif HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            reason = "a redirect, which the API never sends"
        elif status in _REFUSALS and self.settings.access is None:
            reason = "depends on the access file of the service; give it with --access"
        elif status == HTTPStatus.UNAUTHORIZED and self.settings.plan is not None:
            reason = "--plan skips the check of the key"
        else:
            return
        raise NotReproducibleError(f"status {status}: {reason}")

    def _judge(self, exchange: Exchange) -> Findings:
        """Respond to an API request, and compare the response with the recorded response.

        Raises NotReproducibleError if the recording lacks information, and SnapshotError if data
        are damaged.
        """
        response = exchange.response
        if response is not None:
            self._check_reproducible(response.status)
            if exchange.head.method == "HEAD":
                response = RecordedResponse(response.status, b"")
        at, clock = self._choose_instant(exchange)
        answered = self._answer(exchange, at)
        if response is None or (response.body is None and response.status == answered.status):
            part = "response" if response is None else "body of the response"
            reason = f"the {part} was not recorded"
            reason += f", but the status {response.status} is right" if response else ""
            if answered.reason is not None:
                reason += f"; the response is an error: {answered.reason}"
            findings: Findings = {"class_": "unrecorded", "reason": reason}
            return findings | {"clock": clock} | self._describe_answer(answered, at)
        differences = self._compare(exchange, response, answered)
        findings = {"reason": answered.reason, "clock": clock}
        is_search = self.settings.at == "search"
        if is_search or (self.settings.at == "recorded" and _can_be_dated(answered, differences)):
            findings["searched_around"] = at if exchange.list_times() else None
            later = 0 if exchange.as_of is not None or clock is None else _MOST_CLOCK_ERROR
            until = max(at, min(at + later, self.snapshot.as_of))
            findings |= self._search(response, answered, differences, at, until)
            times = findings["true_during"] if is_search else ()
            if not findings["true_during"] and (is_search or not exchange.list_times()):
                # Choose a time at which at least one server's result was correct, so that only the
                # wrong numbers differ.
                times = next(
                    (one.true_during for one in findings["servers"] if one.true_during), ()
                )
            if times:
                at = _move(at, documents.find_nearest(times, at)[0])
                findings["clock"] = None
                answered = self._answer(exchange, at)
                differences = self._compare(exchange, response, answered)
        if len(differences) == comparing.MAX_DIFFERENCES:
            count = len(differences)
            findings["reason"] = f"only the first {count:,} differences are listed"
        if _has_value(differences) and _has_hidden_key(exchange):
            raise NotReproducibleError("the recording hides a key that the request had")
        findings["class_"] = "differs" if _has_value(differences) else "match"
        findings["differences"] = tuple(differences)
        return findings | self._describe_answer(answered, at)

    def _choose_instant(self, exchange: Exchange) -> tuple[int, Clock | None]:
        """Return the time for a response, and for a request's time, whose clock it is from."""
        found: list[tuple[int | None, Clock | None]] = []
        recorded, asked = (exchange.as_of, None), _find_request_time(exchange)
        match self.settings.at:
            case int() as at:
                return at, None
            case "recorded":
                found = [recorded, asked]
            case "search":
                # After the end of the data, no observation enters a window.
                is_late = (asked[0] or 0) - self.settings.within > self.snapshot.as_of
                found = [recorded] if is_late else [asked, recorded]
        found.append((self.snapshot.as_of, None))
        return next((at, clock) for at, clock in found if at is not None)

    def _answer(self, exchange: Exchange, at: int) -> RecomputedAnswer:
        """Respond to a request as the service would, in the order of D11.

        Raises NotReproducibleError if the access file lacks the plan, and SnapshotError if data are
        damaged.
        """
        head = exchange.head
        if exchange.response and exchange.response.status != HTTPStatus.BAD_REQUEST:
            # The original service accepted the cookies and other headers, however long they are.
            head = head._replace(headers=drop_filler(head.headers))
        request: Request | None = None
        status: int = HTTPStatus.OK.value
        reason = None
        try:
            plan = self._find_plan(exchange)
            endpoint = http.check_method(head.method, http.find_endpoint(head.path))
            if endpoint.operation == "compareServers":
                http.check_compare_head(head)
                request = requests.parse_compare_request(exchange.body)
            else:
                request = http.parse_get_server(head, endpoint.identifier)
            if plan is not None:
                plan.check_request(request)
            response: Response = (
                operations.get_server(self.snapshot, request)
                if isinstance(request, ServerReference)
                else operations.compare(self.snapshot, request, at=at)
            )
        except errors.ApiError as error:
            status, response = error.http_status, ErrorResponse.from_error(error)
            reason = error.reason
        body = b"" if head.method == "HEAD" else response.to_json()
        return RecomputedAnswer(status, body, request, reason)

    def _find_plan(self, exchange: Exchange) -> Plan | None:
        """Return the caller's plan, or None (everything allowed) for an unknown caller.

        Raises GatewayUnauthorizedError for an invalid key, and NotReproducibleError if the access
        file lacks the recorded plan.
        """
        access = self.settings.access
        if self.settings.plan is not None or access is None:
            return self.settings.plan
        if exchange.plan is not None:
            if exchange.plan not in access.plans:
                raise NotReproducibleError(f"the access file has no plan {exchange.plan}")
            return access.plans[exchange.plan]
        keys = http.find_values(exchange.head.headers, http.KEY_NAME)
        plan = access.find_plan(keys[0]) if len(keys) == 1 else None
        if plan is None and not all(map(_is_placeholder, keys)):
            http.find_key(exchange.head.headers)
            raise errors.GatewayUnauthorizedError(
                f"{http.KEY_HEADER}: not a key of the access file"
            )
        is_refused = exchange.response and exchange.response.status == HTTPStatus.UNAUTHORIZED
        if plan is None and is_refused:
            raise errors.GatewayUnauthorizedError(f"{http.KEY_HEADER}: not recorded")
        return plan

    def _compare(
        self, exchange: Exchange, response: RecordedResponse, answered: RecomputedAnswer
    ) -> list[documents.Difference]:
        theirs, ours = {"status": response.status}, {"status": answered.status}
        if theirs != ours:
            return comparing.find_differences(theirs, ours)
        recorded, tolerance = response.body or b"", self.settings.tolerance
        found = comparing.compare_bodies(recorded, answered.body, tolerance)
        if not isinstance(answered.request, ServerReference):
            return found
        # If `updatedAt` differs, the record is from another time, and only its identifiers are
        # comparable.
        is_now = self.settings.at == "snapshot" or self.snapshot.as_of in exchange.list_times()
        is_other = not is_now and any(each.pointer == _UPDATED_AT for each in found)
        return [
            each.model_copy(update={"class_": "notComparable"})
            if _is_of_record(each) and (is_other or each.recomputed in REDACTIONS)
            else each
            for each in found
        ]

    def _search(
        self,
        response: RecordedResponse,
        answered: RecomputedAnswer,
        differences: list[documents.Difference],
        at: int,
        until: int,
    ) -> Findings:
        """Find the times at which a response was correct.

        Only results of comparisons change over time.
        """
        # Importing numpy takes longer than most replays, which read no observations.
        from srvstat.support import search  # noqa: PLC0415

        request = answered.request
        searched = wanted = (max(at - self.settings.within, 0), until)
        found = None
        if isinstance(request, CompareRequest) and answered.status == HTTPStatus.OK:
            searched = search.limit_search(self.snapshot, request.range, searched)
            if response.status == HTTPStatus.OK:
                body, tolerance = response.body or b"", self.settings.tolerance
                results = search.read_results(body, differences, len(request.servers))
                found = search.find_true_times(self.snapshot, request, results, searched, tolerance)
        (interval,) = search.describe_intervals([searched])
        whole, servers = found or (() if _has_value(differences) else (interval,), ())
        findings: Findings = {"searched": interval, "true_during": whole, "servers": servers}
        if not whole and searched != wanted:
            findings["reason"] = "the bundle covers only a part of the search"
        return findings

    def _describe_answer(self, answered: RecomputedAnswer, at: int) -> Findings:
        body = EncodedJson(answered.body.decode()) if answered.body else None
        answer = documents.Answer(status=answered.status, body=body)
        findings: Findings = {"as_of": at, "answer": answer}
        request = answered.request
        if request is not None:
            servers = (request,) if isinstance(request, ServerReference) else request.servers
            names = tuple(f"{server.by}:{server.identifier}" for server in servers)
            length = getattr(request, "range", None)
            findings["request"] = documents.ReferencedServers(servers=names, range=length)
        if self.settings.is_explained and request is not None and answered.status == HTTPStatus.OK:
            findings["explanation"] = self._explain(request, at)
        return findings

    def _explain(self, request: Request, at: int) -> documents.Explanation | None:
        """Explain a response. Returns None for Get Server as of a time before the bundle."""
        from srvstat.support.explain import explain  # noqa: PLC0415 - see _search

        try:
            return explain(self.snapshot, request, at)
        except operations.NotInBundleError:
            return None


def _move(at: int, interval: documents.Interval) -> int:
    """Return the instant in an interval nearest to a time.

    If the interval ends before the time, this is its end, rounded down to a whole second if that is
    still in the interval.
    """
    if at > interval.to:
        at = interval.to // 1_000 * 1_000  # so that people can type it
    return max(at, interval.from_)


def _find_request_time(exchange: Exchange) -> tuple[int | None, Clock]:
    """Return the time of a request, and whose clock it is from."""
    client, service = exchange.requested_at, exchange.answered_at
    # A date has whole seconds. If the client's clock agrees with it, that clock is more precise.
    if service is not None and (client is None or abs(client - service) > _MOST_ROUNDING):
        return service, "service"
    return client, "service" if exchange.is_from_service else "client"


def _is_placeholder(value: bytes) -> bool:
    return _PLACEHOLDER.fullmatch(value.decode("latin-1")) is not None


def _can_be_dated(answered: RecomputedAnswer, differences: Sequence[documents.Difference]) -> bool:
    """Return whether a differing comparison may have been correct earlier."""
    is_result = isinstance(answered.request, CompareRequest) and answered.status == HTTPStatus.OK
    is_other = any(each.pointer in ("", "/status") for each in differences)
    return is_result and _has_value(differences) and not is_other


def _is_of_record(difference: documents.Difference) -> bool:
    """Return whether a difference can come from two versions of a server's record."""
    kinds = {type(difference.recorded), type(difference.recomputed)} - {NoneType}
    is_value = difference.class_ == "value" and difference.absent_in is None and len(kinds) == 1
    return is_value and bool(_RECORD_FIELD.fullmatch(difference.pointer))


def _has_hidden_key(exchange: Exchange) -> bool:
    """Return whether the service hid a key when it recorded the request."""
    head = exchange.head
    parts = (head.method.encode(), head.path, head.query, exchange.body)
    return exchange.is_from_service and any(HIDDEN_PART in part for part in parts)


def _has_value(differences: Iterable[documents.Difference]) -> bool:
    return any(difference.class_ == "value" for difference in differences)


def _hide_findings(keys: KeyFilter, findings: Findings) -> Findings:
    """Hide keys in the fields of a ReplayedExchange that can repeat a client's data.

    Differences are shortened afterwards, because half a key could not be recognized.
    """
    hidden = dict(findings)
    if hidden.get("reason") is not None:
        hidden["reason"] = keys.redact(hidden["reason"])
    if "request" in hidden:
        names = tuple(map(keys.hide_text, hidden["request"].servers))
        hidden["request"] = hidden["request"].model_copy(update={"servers": names})
    if "differences" in hidden:
        found = [_hide_difference(keys, each) for each in hidden["differences"]]
        hidden["differences"] = tuple(found)
    return hidden


def _hide_difference(keys: KeyFilter, difference: documents.Difference) -> documents.Difference:
    steps = map(comparing.unescape_step, difference.pointer.split("/"))
    pointer = "/".join(comparing.escape_step(keys.hide_text(step)) for step in steps)
    recorded = difference.recorded
    if isinstance(recorded, str):
        recorded = keys.hide_text(recorded)
    elif isinstance(recorded, EncodedJson):
        shown = _STRING.sub(lambda text: keys.hide_text(text[0]), recorded.text)
        recorded = EncodedJson(shown)
    update = {"pointer": pointer, "recorded": recorded}
    return comparing.shorten_difference(difference.model_copy(update=update))


_SHORTEST: Range = "24h"


class Case(NamedTuple):
    """The servers of all requests, and their longest range.

    - `starts_at`: the start of the earliest window, in Unix milliseconds.
    - `searched_from`: the start of the earliest window that a search would need.
    - `explained`: the arguments of a command that gives the response to a request: to the first
      request whose response differs, or else to the first request.
    """

    references: list[ServerReference]
    range: Range
    starts_at: int
    searched_from: int
    explained: list[str]


def find_case(replayed: documents.Replay) -> Case:
    """Return the servers and times that the requests of a replayed recording need.

    Raises SourceError if no request has a response.
    """
    exchanges = sorted(replayed.exchanges, key=lambda each: each.class_ != "differs")
    answered = [(each.request, each.as_of or 0) for each in exchanges if each.request]
    names = dict.fromkeys(name for request, _ in answered for name in request.servers)
    if not names:
        problem = "no request of the recording is one of the API that can be answered"
        raise errors.SourceError(problem)
    windows = [(as_of, request.range) for request, as_of in answered if request.range]
    windows = windows or [(replayed.as_of, _SHORTEST)]
    start = min(as_of - DAYS[length] * DAY_MS for as_of, length in windows)
    longest = max((length for _, length in windows), key=DAYS.__getitem__)
    references = [build_server_reference(name) for name in names]
    (request, as_of), *_ = answered
    explained = ["compare" if request.range else "get", *request.servers]
    explained += ["--range", request.range] if request.range else []
    explained += ["--at", format_instant(as_of)]
    return Case(references, longest, start, start - ReplaySettings().within, explained)
