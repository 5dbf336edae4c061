"""Rehearse failures: delay answers, fail, or drop connections, as drawn from a seed."""

import asyncio
import random
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from srvstat.asgi import MAX_DELAY_SECONDS, RehearsalSettings
from srvstat.contract import errors
from srvstat.contract.http import Headers, find_values

_PREFERENCE = re.compile(
    rb'[ \t]*(code|delay|drop)[ \t]*(?:=[ \t]*("?)([0-9]{1,5})\2[ \t]*)?(?:;.*)?', re.IGNORECASE
)
_ERRORS: Mapping[int, type[errors.ApiError]] = {
    kind.http_status: kind for kind in errors.ApiError.__subclasses__()
}
"""The errors of the contract by the code that a request prefers.

The `Retry-After` of a 429 is the shortest, so that a test of a retry is quick.
"""


class _BadGatewayError(errors.InternalError):
    http_status = 502


class _UnavailableError(errors.InternalError):
    http_status = 503


class _GatewayTimeoutError(errors.InternalError):
    http_status = 504


_CODES: Mapping[int, type[errors.ApiError]] = {
    **_ERRORS,
    **{kind.http_status: kind for kind in errors.InternalError.__subclasses__()},
}


class DroppedError(Exception):
    """The connection is closed, and the request is not answered."""


def draw_fate(
    draw: Callable[[], float], settings: RehearsalSettings
) -> tuple[float | None, bool, bool]:
    """Draw the delay of the next request in seconds, if any, and whether it fails and is dropped.

    The random numbers are at least 0 and less than 1.

    Each request takes three numbers, so that no setting changes what another one draws. What fails
    at 5 % also fails at 6 %.
    """
    for_delay, for_fail, for_drop = draw(), draw(), draw()
    delay = None
    if settings.delay:
        shortest, longest = settings.delay
        delay = shortest + (longest - shortest) * for_delay
    return delay, for_fail < settings.fail, for_drop < settings.drop


class Rehearsal:
    """Decide what happens to each request to an operation of the contract."""

    def __init__(self, settings: RehearsalSettings) -> None:
        self._settings = settings
        self._draw = random.Random(settings.seed).random  # noqa: S311 - must be reproducible
        self._stopping = asyncio.Event()

    def rehearse(self, sent: Headers, entry: dict[str, Any], headers: dict[str, str]) -> None:
        """Draw the fate of a request; note it in its log entry and in the answer's headers.

        Raises ApiError for a rehearsed error, DroppedError to close the connection.
        """
        delay, fails, drops = draw_fate(self._draw, self._settings)
        if delay is not None:
            entry["delay"] = round(delay * 1_000)
        if self._settings.allows_prefer:
            wanted = find_preferences(sent)
            if "delay" in wanted:
                entry["delay"] = min(wanted["delay"], MAX_DELAY_SECONDS * 1_000)
                headers["preference-applied"] = f"delay={entry['delay']}"
            if "drop" in wanted:
                entry["rehearsed"] = "drop"
                raise DroppedError
            code = wanted.get("code", 0)
            if code == HTTPStatus.OK:
                return  # a request that must not fail by chance
            if code in _CODES:
                entry["rehearsed"] = applied = f"code={code}"
                before = headers.get("preference-applied")
                headers["preference-applied"] = ", ".join(filter(None, (before, applied)))
                raise _adapt_limit(_CODES[code]("rehearsed by Prefer"), headers)
        if drops:
            entry["rehearsed"] = "drop"
            raise DroppedError
        if fails:
            entry["rehearsed"] = "fail"
            raise errors.InternalError("rehearsed by --fail")

    async def hold(self, entry: Mapping[str, Any], started: float) -> None:
        """Wait until the answer may be sent, or the service stops.

        `started` is when the request began, as `time.perf_counter` returns it.
        """
        seconds = started + entry.get("delay", 0) / 1_000 - time.perf_counter()
        if seconds > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), seconds)

    def stop(self) -> None:
        """Let all answers be sent at once from now on."""
        self._stopping.set()


def _adapt_limit(error: errors.ApiError, headers: dict[str, str]) -> errors.ApiError:
    """Return an error, after changing headers of the plan's limit that contradict it."""
    plan, limit, _ = headers.get("ratelimit", "").partition(";")
    if limit and isinstance(error, errors.RateLimitedError):
        headers["ratelimit"] = f"{plan};r=0;t={error.retry_after}"
    elif limit and isinstance(error, errors.GatewayUnauthorizedError):
        del headers["ratelimit"], headers["ratelimit-policy"]
    return error


def find_preferences(headers: Headers) -> dict[str, int]:
    """Return the first `code`, `delay` and `drop` of the headers `Prefer` (RFC 7240)."""
    found: dict[str, int] = {}
    for preference in b",".join(find_values(headers, b"prefer")).split(b","):
        match = _PREFERENCE.fullmatch(preference)
        name = match[1].decode().lower() if match else ""
        if match and (match[3] is None) == (name == "drop"):
            found.setdefault(name, int(match[3] or 0))
    return found
