"""Who asks: keys, their plans, and how often each may ask."""

import hashlib
import os
import time
from math import ceil
from typing import NamedTuple

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from starlette.datastructures import Headers

from srvstat.access import Plan, read_access
from srvstat.asgi.log import Log
from srvstat.contract.errors import GatewayUnauthorizedError, RateLimitedError, SourceError
from srvstat.snapshot.opening import identity_of

KEY_HEADER = "x-gateway-key"


class TooManyRequestsError(RateLimitedError):
    """A plan's limit was exceeded; `retry_after` whole seconds later there is room again."""

    def __init__(self, reason: str, retry_after: int) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class Caller(NamedTuple):
    """Whoever has shown a good key."""

    name: str
    """The first digits of the key's digest, which tell callers apart in the log."""
    plan: Plan | None
    """None without an access file: everything is allowed."""


class Callers:
    """Judges keys by an access file, which may change, or takes any key without one.

    Raises SourceError for an access file that is refused to begin with.
    """

    def __init__(self, path: str | None, log: Log) -> None:
        self._path = path
        self._log = log
        self._limiter = MovingWindowRateLimiter(MemoryStorage())
        self._seen = _identity_at(path)
        self._access = None if path is None else read_access(path)

    def admit(self, headers: Headers) -> Caller:
        """Return who asks, once it is known that they may ask now.

        Raises GatewayUnauthorizedError, TooManyRequestsError.
        """
        caller, digest = self._known(headers.getlist(KEY_HEADER))
        most = caller.plan.requests_per_minute if caller.plan else None
        if most is not None:
            limit = RateLimitItemPerMinute(most)
            if not self._limiter.hit(limit, digest):
                reset = self._limiter.get_window_stats(limit, digest).reset_time
                raise TooManyRequestsError(
                    f"more than {most:,} requests a minute", max(1, ceil(reset - time.time()))
                )
        return caller

    def _known(self, keys: list[str]) -> tuple[Caller, str]:
        if len(keys) != 1 or not keys[0]:
            found = f"{len(keys)} of them" if len(keys) > 1 else "missing or empty"
            raise GatewayUnauthorizedError(f"the header {KEY_HEADER}: {found}")
        # The bytes as they were sent: Starlette decodes headers in this way.
        key = keys[0].encode("latin-1")
        self._look_at_file()
        if self._access is None:
            digest = hashlib.sha256(key).hexdigest()
            return Caller(digest[:8], None), digest
        customer = self._access.customer(key)
        if customer is None:
            raise GatewayUnauthorizedError(f"the header {KEY_HEADER}: not a key of the access file")
        digest = customer.sha256.hex()
        return Caller(digest[:8], customer.plan), digest

    def _look_at_file(self) -> None:
        """Read the access file again where it has changed; a bad one changes nothing."""
        identity = _identity_at(self._path)
        if self._path is None or identity == self._seen:
            return
        self._seen = identity
        try:
            self._access = read_access(self._path)
        except SourceError as error:
            self._log.notice(
                "the new access file is refused; the old one holds", reason=error.reason
            )
        else:
            self._log.notice("the access file was read again")


def _identity_at(path: str | None) -> tuple[int, ...] | None:
    try:
        return path and identity_of(os.stat(path))  # type: ignore[return-value]
    except OSError:
        return None
