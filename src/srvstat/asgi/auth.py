"""Authenticate requests by their key, and limit the number of requests of each key."""

import hashlib
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from srvstat.asgi.log import Exchange, Log
from srvstat.asgi.reload import ReloadedFile
from srvstat.contract.errors import GatewayUnauthorizedError, RateLimitedError
from srvstat.contract.http import KEY_HEADER, find_key
from srvstat.operations.access import Access, Plan, read_access

MINUTE = 60
_SECOND_NS = 1_000_000_000
_MINUTE_NS = MINUTE * _SECOND_NS
_MAX_INTEGER = 999_999_999_999_999
"""The largest integer in a header (RFC 9651, section 3.3.1)."""


class Quota(NamedTuple):
    """A caller's remaining quota after a request.

    The request was either counted, or refused and not counted. A minute ends exactly 60 seconds
    after each request, so more quota becomes available one request at a time.
    """

    is_accepted: bool
    remaining: int
    """The number of further requests that would be accepted now."""
    seconds: int
    """The seconds, rounded up and at least 1, until `remaining` increases if no request is sent."""


def format_quota(plan: str, limit: int, quota: Quota) -> dict[str, str]:
    """Return the headers that tell a client its plan's limit and the remaining quota.

    They follow draft-ietf-httpapi-ratelimit-headers-11, which defines `t` as the time within which
    a client can use no more than `r`. So `r` requests succeed immediately, and another request
    after `t` seconds. With the whole window as `t`, a client would wait longer than necessary.
    """
    allowed, remaining = min(limit, _MAX_INTEGER), min(quota.remaining, _MAX_INTEGER)
    return {
        "ratelimit-policy": f'"{plan}";q={allowed};w={MINUTE}',
        "ratelimit": f'"{plan}";r={remaining};t={quota.seconds}',
    }


class RateLimiter:
    """Count the requests of each caller within the last minute, by a monotonic clock.

    By the time of day, setting the clock back would block callers, and setting it forward would
    remove all limits.

    The cost of a request does not depend on the number of callers. Callers are forgotten after a
    minute without requests.
    """

    def __init__(self, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock = clock
        # The times of each caller's requests; the longest-idle caller first.
        self._requests: dict[str, deque[int]] = {}

    def count(self, caller: str, limit: int) -> Quota:
        """Count a request, unless it is refused. `limit`: the caller's requests per minute.

        Earlier requests still count after a change of `limit`.
        """
        now = self._clock()
        self._forget_idle(now)
        requests = self._requests[caller] = self._requests.pop(caller, deque())
        while requests and requests[0] <= now - _MINUTE_NS:
            requests.popleft()
        is_accepted = len(requests) < limit
        if is_accepted:
            requests.append(now)
        excess = len(requests) - limit
        # The request whose minute must end before another request is accepted.
        awaited = requests[max(excess, 0)]
        seconds = -((now - awaited - _MINUTE_NS) // _SECOND_NS)  # rounded up
        return Quota(is_accepted, max(-excess, 0), seconds)

    def _forget_idle(self, now: int) -> None:
        """Forget the longest-idle caller if its minute has ended.

        One per request suffices, because each request adds at most one.
        """
        for caller, requests in self._requests.items():
            if not requests or requests[-1] <= now - _MINUTE_NS:
                del self._requests[caller]
            return

    def __len__(self) -> int:
        return len(self._requests)


class Caller(NamedTuple):
    """The owner of a valid key."""

    digest: str
    """The key's SHA-256, as hexadecimal digits."""
    plan: Plan | None
    """None without an access file: everything is allowed."""


class Authenticator:
    """Check keys against an access file, which may change. Without a file, accept every key.

    Raises SourceError if the access file is invalid at the start.
    """

    def __init__(self, path: str | None, log: Log) -> None:
        self._log = log
        self._limiter = RateLimiter()
        self._file = ReloadedFile(path, "access file", log.add_event) if path else None
        self._access = None if path is None else read_access(path)

    @property
    def is_open(self) -> bool:
        """Whether every key is valid, because there is no access file."""
        return self._file is None

    async def admit(self, exchange: Exchange) -> Caller:
        """Return the owner of a request's key, and count the request.

        Adds the caller to the log entry, and the rate limit headers to the response if the plan has
        a limit.

        Raises GatewayUnauthorizedError for an invalid key, and RateLimitedError if the limit is
        exceeded.
        """
        key = find_key(exchange.head.headers)
        if self._file:
            await self._file.refresh(partial(read_access, self._file.path), self._use)
        plan = self._access.find_plan(key) if self._access else None
        if self._access and plan is None:
            raise GatewayUnauthorizedError(f"{KEY_HEADER}: not a key of the access file")
        caller = Caller(hashlib.sha256(key).hexdigest(), plan)
        exchange.entry["caller"] = caller.digest[:8]
        exchange.plan = plan.name if plan else None
        if plan and (limit := plan.requests_per_minute) is not None:
            quota = self._limiter.count(caller.digest, limit)
            exchange.headers |= format_quota(plan.name, limit, quota)
            if not quota.is_accepted:
                raise RateLimitedError(f"more than {limit:,} requests a minute", quota.seconds)
        return caller

    def is_registered(self, key: bytes) -> bool:
        """Return whether the access file contains a key."""
        return self._access is not None and self._access.find_plan(key) is not None

    def _use(self, access: Access) -> None:
        self._access = access
        self._log.add_event("new access file in use")
