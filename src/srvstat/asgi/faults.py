"""Simulate failures: delays, errors and broken connections, by chance, by rule or by preference."""

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from srvstat.asgi import SimulationSettings
from srvstat.asgi.log import Exchange
from srvstat.contract import errors
from srvstat.contract.http import find_values
from srvstat.operations import faults

_ERRORS: Mapping[int, type[errors.ApiError]] = {
    kind.http_status: kind for kind in errors.ApiError.__subclasses__()
}


def draw_fault(draw: Callable[[], float], settings: SimulationSettings) -> faults.Fault:
    """Draw the fault of the next request. Random numbers are in [0, 1).

    Each request draws three numbers, so that settings do not affect each other. A request that
    fails at 5 % also fails at 6 %.
    """
    for_delay, for_fail, for_drop = draw(), draw(), draw()
    delay = None
    if settings.delay:
        shortest, longest = settings.delay
        delay = round((shortest + (longest - shortest) * for_delay) * 1_000)
    fails, drops = for_fail < settings.fail, for_drop < settings.drop
    return faults.Fault("drop" if drops else "code=500" if fails else None, delay)


class Faults:
    """Choose the fault of each valid API request.

    Raises SourceError if the rules file is invalid.
    """

    def __init__(self, settings: SimulationSettings) -> None:
        self._settings = settings
        self._stopping = asyncio.Event()
        self.use(faults.read_rules(settings.rules) if settings.rules else ())

    def use(self, rules: tuple[faults.Rule, ...]) -> None:
        """Replace the rules, and restart."""
        self._rules = rules
        self.reset()

    def reset(self) -> None:
        """Restart with the first answer of each rule and the first random number."""
        self._draw = random.Random(self._settings.seed).random  # noqa: S311 - must be reproducible
        self._taken = [0] * len(self._rules)

    def count_unused(self) -> list[int]:
        """Return the number of answers that each rule has left."""
        pairs = zip(self._rules, self._taken, strict=True)
        return [max(0, len(rule.answers) - taken) for rule, taken in pairs]

    def simulate(self, call: faults.Call, exchange: Exchange) -> None:
        """Choose the fault of a request, and add it to the log entry and to the response's headers.

        If the connection must break, the log entry has `simulated`.

        Raises ApiError for a simulated error.
        """
        entry, headers = exchange.entry, exchange.headers
        values = (
            find_values(exchange.head.headers, b"prefer") if self._settings.allows_prefer else []
        )
        preferred = faults.parse_preferences(b",".join(values).decode("latin-1"))
        found = {
            "Prefer": preferred,
            "a rule": self._take_answer(call),
            "--fail": draw_fault(self._draw, self._settings),
        }
        delays = [fault.delay for fault in found.values() if fault.delay is not None]
        if delays:
            entry["delay"] = delays[0]
        outcomes = [(fault.outcome, source) for source, fault in found.items() if fault.outcome]
        outcome, source = outcomes[0] if outcomes else (faults.SUCCESS, "")
        if outcome != faults.SUCCESS:
            entry["simulated"] = outcome
        applied = [] if preferred.delay is None else [f"delay={preferred.delay}"]
        applied += [outcome] if preferred.outcome and outcome != faults.SUCCESS else []
        if applied:
            headers["preference-applied"] = ", ".join(applied)
        if outcome not in {faults.SUCCESS, *faults.BREAKS}:
            code = int(outcome.removeprefix("code="))
            raise _adapt_limit(_build_error(code, f"simulated by {source}"), headers)

    def _take_answer(self, call: faults.Call) -> faults.Fault:
        """Return the next answer of the first matching rule that is not used up."""
        for at, rule in enumerate(self._rules):
            taken = self._taken[at]
            is_left = rule.repeat or taken < len(rule.answers)
            if is_left and rule.includes(call):
                self._taken[at] += 1
                return rule.answers[taken % len(rule.answers)]
        return faults.Fault()

    async def hold(self, entry: Mapping[str, Any], started: float) -> None:
        """Wait until the response may be sent, or the service stops.

        `started`: the start of the request, by `time.perf_counter`.
        """
        seconds = started + entry.get("delay", 0) / 1_000 - time.perf_counter()
        if seconds > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), seconds)

    def stop(self) -> None:
        """Send all responses immediately from now on."""
        self._stopping.set()


def _build_error(status: int, reason: str) -> errors.ApiError:
    """Return an error with a given status, even if the contract has no error with it (D12).

    A 429 has the shortest possible `Retry-After`, so that tests of retries are fast.
    """
    rest = errors.InternalError if status >= errors.InternalError.http_status else None
    kind = _ERRORS.get(status) or rest or errors.InvalidRequestError
    error: errors.ApiError = type(kind.__name__, (kind,), {"http_status": status})(reason)
    return error


def _adapt_limit(error: errors.ApiError, headers: dict[str, str]) -> errors.ApiError:
    """Return an error, after changing the rate limit headers that would contradict it."""
    plan, limit, _ = headers.get("ratelimit", "").partition(";")
    if limit and isinstance(error, errors.RateLimitedError):
        headers["ratelimit"] = f"{plan};r=0;t={error.retry_after}"
    elif limit and isinstance(error, errors.GatewayUnauthorizedError):
        del headers["ratelimit"], headers["ratelimit-policy"]
    return error
