"""Who asks: keys, their plans, and how often each may ask."""

import asyncio
import hashlib
import math
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from srvstat.access import Plan, read_access
from srvstat.asgi.log import Log
from srvstat.contract.errors import GatewayUnauthorizedError, RateLimitedError, SourceError
from srvstat.contract.http import KEY_HEADER, Headers, find_key
from srvstat.files.watching import Candidate, WatchedFile

_MINUTE = 60


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


class Counters:
    """Count the requests of each caller within the last minute, by a clock that nobody sets.

    A request costs the same however many callers there are. A caller without a request for a
    minute is forgotten.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # The instants of each caller's requests; the caller who has asked nothing for the longest
        # time comes first.
        self._asked: dict[str, deque[float]] = {}

    def count(self, caller: str, most: int) -> None:
        """Count a request of a caller, who may make `most` a minute.

        The count is kept when `most` changes.

        Raises TooManyRequestsError.
        """
        now = self._clock()
        self._forget_one(now)
        asked = self._asked.pop(caller, None) or deque()
        self._asked[caller] = asked
        while asked and asked[0] <= now - _MINUTE:
            asked.popleft()
        if len(asked) >= most:
            seconds = max(1, math.ceil(asked[-most] + _MINUTE - now))
            raise TooManyRequestsError(f"more than {most:,} requests a minute", seconds)
        asked.append(now)

    def _forget_one(self, now: float) -> None:
        """Forget an idle caller. A request adds at most one, so one is enough."""
        for caller, asked in self._asked.items():
            if not asked or asked[-1] <= now - _MINUTE:
                del self._asked[caller]
            return

    def __len__(self) -> int:
        return len(self._asked)


class Callers:
    """Judges keys by an access file, which may change, or takes any key without one.

    Raises SourceError for an access file that is refused to begin with.
    """

    def __init__(self, path: str | None, log: Log) -> None:
        self._log = log
        self._counters = Counters()
        self._file = WatchedFile(path) if path else None
        self._reading: asyncio.Task[None] | None = None
        self._access = None if path is None else read_access(path)

    async def known(self, headers: Headers) -> Caller:
        """Return who asks.

        Raises GatewayUnauthorizedError.
        """
        key = find_key(headers)
        if self._file:
            await self._reload(self._file)
        if self._access is None:
            return Caller(hashlib.sha256(key).hexdigest(), None)
        customer = self._access.find_customer(key)
        if customer is None:
            raise GatewayUnauthorizedError(f"{KEY_HEADER}: not a key of the access file")
        return Caller(customer.sha256.hex(), customer.plan)

    def count(self, caller: Caller) -> None:
        """Count a request of a caller whose plan has a limit.

        Raises TooManyRequestsError.
        """
        most = caller.plan.requests_per_minute if caller.plan else None
        if most is not None:
            self._counters.count(caller.digest, most)

    async def _reload(self, file: WatchedFile) -> None:
        """Read the access file if it has changed. All requests wait for that."""
        while True:
            if self._reading is None:
                candidate = file.find_candidate()
                if candidate is None:
                    return
                self._reading = asyncio.create_task(self._read(file, candidate))
            # Another file can replace it meanwhile, and the last one has to be in force.
            await asyncio.wait({self._reading})

    async def _read(self, file: WatchedFile, candidate: Candidate) -> None:
        try:
            self._access = await asyncio.to_thread(read_access, file.path)
        except SourceError as error:
            self._reject(file, candidate, error.reason)
        except Exception as error:  # noqa: BLE001 - a bug must not end the service
            self._reject(file, candidate, f"a bug in srvstat: {error!r}")
        else:
            file.accept(candidate)
            self._log.notice("a new access file holds")
        finally:
            self._reading = None

    def _reject(self, file: WatchedFile, candidate: Candidate, reason: str) -> None:
        if file.reject(candidate, reason):
            self._log.notice("a new access file is refused; the old one holds", reason=reason)

    def is_key(self, key: bytes) -> bool:
        """Say whether a key is one of the access file."""
        return self._access is not None and self._access.find_customer(key) is not None
