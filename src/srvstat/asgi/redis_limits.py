"""Count the requests of each caller in Redis, so that several processes share the limits."""

import asyncio
import os
import re
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from redis import asyncio as async_redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
)
from redis.exceptions import TimeoutError as RedisTimeoutError

from srvstat.asgi.limits import MINUTE, Quota, RateLimiter
from srvstat.asgi.log import Log
from srvstat.contract.errors import SourceError, UsageError
from srvstat.files.reading import format_title

ANSWER_SECONDS = 2.0
"""Seconds to wait for Redis. An event loop with many connections can be busy for a second."""
SECONDS_BETWEEN_CHECKS = 1.0
"""Seconds from a failure, or a failed check, to the next check."""

_URL = re.compile(r"(?:rediss?://[^/?#]+(?:/[0-9]*)?|unix://.*/[^?#]*)(?:\?[^#]*)?")
_CODE = re.compile(r"[A-Z]+\b")
"""The first word of an error of Redis, such as MISCONF for a full disk."""
_MAX_BATCH = 100
_MAX_CHECKS = 1_000_000
"""More than a minute has checks."""
_SECOND_US = 1_000_000
_KEY_PREFIX = "srvstat:limits:"

# For each key, a list of the times of its requests, in microseconds. Redis has no monotonic clock:
# when its clock is set back, a caller with requests in the future is forgotten, so as not to block
# it. A clock that is set forward ends all minutes.
_SCRIPT = """
local window, now = tonumber(ARGV[1]), tonumber(ARGV[2])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local quotas = {}
for place, key in ipairs(KEYS) do
  local limit = tonumber(ARGV[place + 2])
  local latest = redis.call('LINDEX', key, -1)
  if latest and tonumber(latest) > now then
    redis.call('DEL', key)
  end
  local oldest = redis.call('LINDEX', key, 0)
  while oldest and tonumber(oldest) <= now - window do
    redis.call('LPOP', key)
    oldest = redis.call('LINDEX', key, 0)
  end
  local count, accepted = redis.call('LLEN', key), 0
  if count < limit then
    redis.call('RPUSH', key, string.format('%.0f', now))
    redis.call('PEXPIRE', key, window / 1000)
    count, accepted = count + 1, 1
  end
  local awaited = redis.call('LINDEX', key, math.max(count - limit, 0))
  quotas[place] = {accepted, math.max(limit - count, 0), awaited + window - now}
end
return quotas
"""

_REASONS: Sequence[tuple[type[Exception], str]] = (
    (AuthenticationError, "the user or the password is wrong or missing"),
    (NoPermissionError, "the user may not run scripts, or not use keys srvstat:limits:*"),
    (ReadOnlyError, "a replica, which can't be written"),
    (OutOfMemoryError, "out of memory"),
    (BusyLoadingError, "is still loading its data"),
    (TimeoutError, f"no answer within {ANSWER_SECONDS:g} s"),
    (RedisTimeoutError, f"no answer within {ANSWER_SECONDS:g} s"),
    (TypeError, "an unknown parameter"),
    (ValueError, "an invalid port or parameter"),
)


class _Waiting(NamedTuple):
    caller: str
    limit: int
    quota: "asyncio.Future[Quota]"


def open_limiter(url: str, log: Log) -> "RedisLimiter":
    """Return a counter in the Redis at a URL, after checking that it can count.

    Raises UsageError for a malformed URL, else SourceError. Messages never contain a password.
    """
    title = format_title(url)
    if not _URL.fullmatch(url) or title.endswith("…"):
        raise UsageError(
            "--limits-storage: not a URL like redis://HOST:PORT/0, rediss://HOST:PORT/0 or"
            " unix:///PATH; in a user or password, write %40 for @, and %2F for /"
        )
    try:
        asyncio.run(_check(url, log))
    except Exception as error:  # noqa: BLE001 - redis-py raises many kinds, some for bad parameters
        raise SourceError(
            f"limits storage {title}: {_describe(error)}; without --limits-storage, each process"
            " counts its own requests"
        ) from None
    return RedisLimiter(url, log)


async def _check(url: str, log: Log) -> None:
    limiter = RedisLimiter(url, log)
    try:
        await limiter.check()
    finally:
        await limiter.close()


class RedisLimiter:
    """Count requests in Redis, or in this process while Redis doesn't answer.

    Requests that arrive while Redis is asked are counted together next, so one connection suffices.
    `clock` replaces the clock of Redis, and is in nanoseconds.
    """

    def __init__(self, url: str, log: Log, clock: Callable[[], int] | None = None) -> None:
        self._title = format_title(url)
        self._log = log
        self._clock = clock
        self._client = async_redis.Redis.from_url(
            url, retry=Retry(NoBackoff(), 1), socket_timeout=ANSWER_SECONDS
        )
        self._run_script = self._client.register_script(_SCRIPT)
        self._local = RateLimiter()
        self._waiting: list[_Waiting] = []
        self._task: asyncio.Task[None] | None = None
        """Asks Redis; None while there is nothing to ask."""
        self._check_at: float | None = None
        """When to check whether Redis answers again; None while it answers."""

    async def count(self, caller: str, limit: int) -> Quota:
        """Count a request as RateLimiter.count does."""
        if self._check_at is not None:
            if self._task is None and time.monotonic() >= self._check_at:
                self._task = asyncio.create_task(self._check_again())
            return self._local.count(caller, limit)
        quota: asyncio.Future[Quota] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(caller, limit, quota))
        if self._task is None:
            self._task = asyncio.create_task(self._send())
        return await quota

    async def check(self) -> None:
        """Count a request of no caller, to check that Redis answers and can be written.

        Raises what redis-py raises.
        """
        await self._ask([("check", _MAX_CHECKS)])

    async def close(self) -> None:
        """Close the connection."""
        await self._client.aclose()

    async def _send(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:_MAX_BATCH], self._waiting[_MAX_BATCH:]
            quotas = await self._count_all([(each.caller, each.limit) for each in batch])
            for each, quota in zip(batch, quotas, strict=True):
                if not each.quota.done():  # its client can be gone
                    each.quota.set_result(quota)
        self._task = None

    async def _count_all(self, requests: Sequence[tuple[str, int]]) -> list[Quota]:
        if self._check_at is None:
            try:
                return await self._ask(requests)
            except Exception as error:  # noqa: BLE001 - whatever happens, requests are answered
                self._check_at = time.monotonic() + SECONDS_BETWEEN_CHECKS
                self._log.add_event(
                    "limits storage failed; this process counts requests",
                    reason=f"{self._title}: {_describe(error)}",
                )
        return [self._local.count(caller, limit) for caller, limit in requests]

    async def _check_again(self) -> None:
        try:
            await self.check()
        except Exception:  # noqa: BLE001 - as above
            self._check_at = time.monotonic() + SECONDS_BETWEEN_CHECKS
        else:
            self._check_at = None
            self._log.add_event("limits storage works again")
        self._task = None

    async def _ask(self, requests: Sequence[tuple[str, int]]) -> list[Quota]:
        now = self._clock() // 1_000 if self._clock else ""
        async with asyncio.timeout(ANSWER_SECONDS):
            found: Any = await self._run_script(
                [_KEY_PREFIX + caller for caller, _ in requests],
                [MINUTE * _SECOND_US, now, *(limit for _, limit in requests)],
            )
        return [
            Quota(bool(is_accepted), remaining, -(-wait // _SECOND_US))  # rounded up
            for is_accepted, remaining, wait in found
        ]


def _describe(error: BaseException) -> str:
    """Return the reason of an error. Its text is not shown, because it can contain the password."""
    found: BaseException | None = error
    while found:
        if isinstance(found, ssl.SSLError):  # some of them are ValueErrors too
            return f"TLS: {getattr(found, 'verify_message', found.reason)}"
        for kind, reason in _REASONS:
            if isinstance(found, kind):
                return reason
        if isinstance(found, OSError) and found.errno:
            is_unknown_host = isinstance(found, socket.gaierror)
            return "unknown host" if is_unknown_host else os.strerror(found.errno)
        if isinstance(found, ResponseError) and (code := _CODE.match(str(found))):
            return f"failed ({code[0]})"
        found = found.__cause__ or found.__context__
    return f"failed ({type(error).__name__})"
