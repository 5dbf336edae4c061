"""Who asks: keys, their plans, and how often each may ask."""

import asyncio
import hashlib
import math
import time
from collections import OrderedDict, deque
from typing import NamedTuple

from starlette.datastructures import Headers

from srvstat.access import Plan, read_access
from srvstat.asgi.log import Log
from srvstat.contract.errors import GatewayUnauthorizedError, RateLimitedError, SourceError
from srvstat.snapshot.opening import Identity, identity_at

KEY_HEADER = "x-gateway-key"

_SECOND = 1_000_000_000
_MINUTE = 60 * _SECOND
"""In nanoseconds, as all instants of the clock are here: whole numbers lose nothing."""
_SECONDS_BETWEEN_TRIES = 5.0
"""So long a file that was refused is left alone. Its permissions may be mended meanwhile."""


class TooManyRequestsError(RateLimitedError):
    """A plan's limit was exceeded; `retry_after` whole seconds later there is room again."""

    def __init__(self, reason: str, retry_after: int) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class Caller(NamedTuple):
    """Whoever has shown a good key."""

    digest: str
    """The key's SHA-256 in hexadecimal digits."""
    plan: Plan | None
    """None without an access file: everything is allowed."""

    @property
    def name(self) -> str:
        """What tells callers apart in the log."""
        return self.digest[:8]


class LastMinute:
    """When each caller was let in, as far as that is no more than a minute ago.

    It keeps no more instants than the service takes requests in two minutes, whatever the limits
    are: 44 bytes each. What it costs does not depend on how many callers there are.
    """

    def __init__(self) -> None:
        # The caller who has not been let in for the longest time comes first.
        self._let_in: OrderedDict[str, deque[int]] = OrderedDict()

    def let_in(self, digest: str, most: int, now: int) -> int | None:
        """Let a caller in, or return the whole seconds until there is room again, 1 to 60.

        There is room where within the last minute fewer than `most` were let in. `now` is in
        nanoseconds, of a clock that is never set back.
        """
        self._forget_one(now)
        instants = self._let_in.get(digest)
        if instants is None:
            instants = self._let_in[digest] = deque()
        while instants and instants[0] <= now - _MINUTE:
            instants.popleft()
        if len(instants) >= most:
            # Not the first one: the plan may have become a smaller one.
            return math.ceil((instants[-most] + _MINUTE - now) / _SECOND)
        instants.append(now)
        self._let_in.move_to_end(digest)
        return None

    def _forget_one(self, now: int) -> None:
        """Forget one caller with nothing left: as a request adds at most one, that is enough."""
        for digest, instants in self._let_in.items():
            if instants[-1] <= now - _MINUTE:
                del self._let_in[digest]
            return

    def __len__(self) -> int:
        return len(self._let_in)


class Callers:
    """Judges keys by an access file, which may change, or takes any key without one.

    Raises SourceError for an access file that is refused to begin with.
    """

    def __init__(self, path: str | None, log: Log) -> None:
        self._path = path
        self._log = log
        self._last_minute = LastMinute()
        self._seen: Identity = identity_at(path) if path else None
        self._reading: asyncio.Task[None] | None = None
        self._again_at = math.inf
        self._told: str | None = None
        self._access = None if path is None else read_access(path)

    async def known(self, headers: Headers) -> Caller:
        """Return who asks.

        Raises GatewayUnauthorizedError.
        """
        keys = headers.getlist(KEY_HEADER)
        if len(keys) != 1 or not keys[0]:
            found = f"{len(keys)} of them" if len(keys) > 1 else "missing or empty"
            raise GatewayUnauthorizedError(f"the header {KEY_HEADER}: {found}")
        await self._read_again()
        # The bytes as they were sent: Starlette decodes headers in this way.
        key = keys[0].encode("latin-1")
        if self._access is None:
            return Caller(hashlib.sha256(key).hexdigest(), None)
        customer = self._access.customer(key)
        if customer is None:
            raise GatewayUnauthorizedError(f"the header {KEY_HEADER}: not a key of the access file")
        return Caller(customer.sha256.hex(), customer.plan)

    def count(self, caller: Caller) -> None:
        """Count a request of a caller whose plan has a limit.

        Raises TooManyRequestsError.
        """
        if caller.plan is None or caller.plan.requests_per_minute is None:
            return
        most = caller.plan.requests_per_minute
        seconds = self._last_minute.let_in(caller.digest, most, time.monotonic_ns())
        if seconds is not None:
            raise TooManyRequestsError(f"more than {most:,} requests a minute", seconds)

    async def _read_again(self) -> None:
        """Read the access file where it has changed, and have all requests wait for that."""
        while self._path:
            if self._reading is None:
                identity = identity_at(self._path)
                if identity == self._seen and time.monotonic() < self._again_at:
                    return
                self._seen, self._again_at = identity, math.inf
                self._reading = asyncio.create_task(self._read(self._path))
            # Another one may have come meanwhile, and the last one must be the one that holds.
            await asyncio.wait({self._reading})

    async def _read(self, path: str) -> None:
        told, self._told = self._told, None
        try:
            self._access = await asyncio.to_thread(read_access, path)
        except SourceError as error:
            self._told = error.reason
            self._again_at = time.monotonic() + _SECONDS_BETWEEN_TRIES
            if error.reason != told:
                self._log.notice(
                    "a new access file is refused; the old one holds", reason=error.reason
                )
        else:
            self._log.notice("a new access file holds")
        finally:
            self._reading = None

    def is_key(self, key: bytes) -> bool:
        """Say whether a key is one of the access file."""
        return self._access is not None and self._access.customer(key) is not None
