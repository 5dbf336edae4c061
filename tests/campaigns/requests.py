"""Compare srvstat's verdict on request bodies with that of an independent oracle."""

from dataclasses import replace
from random import Random

from campaigns.campaign import MAX_FAILURES, Campaign, Result, run_in_blocks
from campaigns.request_bodies import draw_body
from campaigns.request_oracle import Verdict, compute_verdict
from srvstat.contract.errors import InvalidRequestError
from srvstat.contract.requests import parse_compare_request

_BLOCK = 100_000
_MIN_VALID = 0.1


def run(seed: int, count: int) -> Result:
    """Compare verdicts; also check that enough of the bodies are valid."""
    result = run_in_blocks(_run_block, seed, count, _BLOCK)
    valid = result.counts["valid"]
    if valid < _MIN_VALID * result.cases:
        few = f"only {valid:,} of {result.cases:,} bodies are valid"
        return replace(result, failures=(*result.failures, few))
    return result


def _run_block(rng: Random, count: int) -> Result:
    valid = 0
    failures: list[str] = []
    for number in range(count):
        body = draw_body(rng)
        verdict = compute_verdict(body)
        valid += verdict is not None
        if failure := find_disagreement(body, verdict):
            failures.append(failure)
            if len(failures) == MAX_FAILURES:
                count = number + 1
                break
    return Result(count, {"valid": valid, "refused": count - valid}, tuple(failures))


def find_disagreement(body: bytes, verdict: Verdict | None) -> str | None:
    """Describe how srvstat's verdict on a body differs from the given one; None if they agree."""
    try:
        found = _read_verdict(body)
    except Exception as error:  # noqa: BLE001 - any exception is a failure
        return f"parse_compare_request({body!r}) raised {error!r:.300}"
    if found == verdict:
        return None
    return f"parse_compare_request({body!r}) gave {found}, not {verdict}"


def _read_verdict(body: bytes) -> Verdict | None:
    try:
        request = parse_compare_request(body)
    except InvalidRequestError as refused:
        refused.reason.encode("utf-8")  # the reason must be encodable for any body
        return None
    return [(server.by, server.identifier) for server in request.servers], request.range


CAMPAIGN = Campaign(
    name="requests",
    promise="a request body is read as the specification defines, or refused",
    run=run,
    short=10_000,
    long=10_000_000,
    unit="bodies",
)
