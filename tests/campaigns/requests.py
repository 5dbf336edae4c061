"""Request bodies, read by srvstat and judged by the specification: the verdicts are the same."""

import re
from dataclasses import replace
from random import Random

from campaigns.blocks import MAX_FAILURES, run_in_blocks
from campaigns.campaign import Campaign, Result
from campaigns.request_bodies import draw_body
from campaigns.request_oracle import Verdict, expected
from srvstat.contract.errors import InvalidRequestError
from srvstat.contract.requests import parse_compare_request

_BLOCK = 100_000
_LEAST_VALID = 0.1
_REPETITION = re.compile(rb"(.{1,8}?)\1{19,}", re.DOTALL)


def run(seed: int, count: int) -> Result:
    """Compare verdicts, and see that enough bodies are valid: refusing all would be too easy."""
    result = run_in_blocks(_block, seed, count, _BLOCK)
    valid = result.counts["valid"]
    if valid < _LEAST_VALID * result.cases:
        few = f"only {valid:,} of {result.cases:,} bodies are valid"
        return replace(result, failures=(*result.failures, few))
    return result


def _block(random: Random, count: int) -> Result:
    valid = 0
    failures: list[str] = []
    for number in range(count):
        body = draw_body(random)
        judged = expected(body)
        valid += judged is not None
        if failure := disagreement(body, judged):
            failures.append(failure)
            if len(failures) == MAX_FAILURES:
                count = number + 1
                break
    return Result(count, {"valid": valid, "refused": count - valid}, tuple(failures))


def disagreement(body: bytes, judged: Verdict | None) -> str | None:
    """Say how srvstat's verdict on a body differs from the specification's, where it does."""
    try:
        found = _verdict(body)
    except Exception as error:  # noqa: BLE001 - whatever comes out is a failure
        return f"parse_compare_request({as_python(body)}) raised {error!r:.300}"
    if found == judged:
        return None
    return f"parse_compare_request({as_python(body)}) gave {found}, not {judged}"


def _verdict(body: bytes) -> Verdict | None:
    try:
        request = parse_compare_request(body)
    except InvalidRequestError as refused:
        refused.reason.encode("utf-8")  # whatever a body holds, the reason can be written
        return None
    return [(server.by, server.identifier) for server in request.servers], request.range


def as_python(body: bytes) -> str:
    """Write bytes as a Python expression, with what repeats itself written once."""
    parts, at = [], 0
    for repetition in _REPETITION.finditer(body):
        piece = repetition[1]
        parts += [
            repr(body[at : repetition.start()]),
            f"{piece!r} * {len(repetition[0]) // len(piece)}",
        ]
        at = repetition.end()
    return " + ".join(part for part in [*parts, repr(body[at:])] if part != "b''") or "b''"


CAMPAIGN = Campaign(
    name="requests",
    promise="a request body is read as the specification says, or refused",
    run=run,
    short=200_000,
    long=10_000_000,
    unit="bodies",
)
