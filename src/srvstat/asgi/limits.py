"""Limit the number of requests of each caller within a minute."""

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from srvstat.contract.errors import RateLimitedError

MINUTE = 60
_SECOND_NS = 1_000_000_000
_MINUTE_NS = MINUTE * _SECOND_NS
_MAX_INTEGER = 999_999_999_999_999
"""The largest integer of a header (RFC 9651, section 3.3.1)."""


class TooManyRequestsError(RateLimitedError):
    """A plan's limit was exceeded; `retry_after` is the time to wait, in whole seconds."""

    def __init__(self, reason: str, retry_after: int) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class Quota(NamedTuple):
    """What a caller may request after a request that was counted, or refused and not counted.

    A minute ends exactly 60 seconds after each request, so more quota becomes available one request
    at a time.
    """

    is_accepted: bool
    remaining: int
    """How many more requests would be accepted at once."""
    seconds: int
    """Whole seconds, at least 1, until one more would be accepted, if none is sent before."""


def format_quota(plan: str, limit: int, quota: Quota) -> dict[str, str]:
    """Return the headers that tell a client the limit of its plan, and what remains of it.

    They follow draft-ietf-httpapi-ratelimit-headers-11. The name of a plan needs no escapes.
    """
    allowed, remaining = min(limit, _MAX_INTEGER), min(quota.remaining, _MAX_INTEGER)
    return {
        "ratelimit-policy": f'"{plan}";q={allowed};w={MINUTE}',
        "ratelimit": f'"{plan}";r={remaining};t={quota.seconds}',
    }


def replace_quota(headers: dict[str, str], seconds: int | None) -> None:
    """Say in headers that nothing remains for some seconds; None removes the limit from them."""
    plan, _, _ = headers.pop("ratelimit", "").partition(";")
    if plan and seconds is not None:
        headers["ratelimit"] = f"{plan};r=0;t={seconds}"
    elif plan:
        del headers["ratelimit-policy"]


class RateLimiter:
    """Count the requests of each caller within the last minute, by a monotonic clock.

    The cost of a request does not depend on the number of callers. A caller is forgotten after a
    minute without requests.
    """

    def __init__(self, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock = clock
        # The times of each caller's requests; the caller idle for longest comes first.
        self._requests: dict[str, deque[int]] = {}

    def count(self, caller: str, limit: int) -> Quota:
        """Count a request of a caller who may make `limit` requests a minute, unless it is refused.

        Earlier requests still count after a change of `limit`.
        """
        now = self._clock()
        self._forget_idle(now)
        requests = self._requests.pop(caller, None) or deque()
        self._requests[caller] = requests
        while requests and requests[0] <= now - _MINUTE_NS:
            requests.popleft()
        is_accepted = len(requests) < limit
        if is_accepted:
            requests.append(now)
        excess = len(requests) - limit
        # The request whose minute must end before one more is accepted.
        awaited = requests[max(excess, 0)]
        seconds = -((now - awaited - _MINUTE_NS) // _SECOND_NS)  # rounded up
        return Quota(is_accepted, max(-excess, 0), seconds)

    def _forget_idle(self, now: int) -> None:
        """Forget at most one idle caller, which suffices: a request adds at most one."""
        for caller, requests in self._requests.items():
            if not requests or requests[-1] <= now - _MINUTE_NS:
                del self._requests[caller]
            return

    def __len__(self) -> int:
        return len(self._requests)
