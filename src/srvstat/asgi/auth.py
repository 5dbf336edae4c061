"""Authenticate requests by their key, and limit the number of requests of each key."""

import asyncio
import hashlib
from typing import NamedTuple

from srvstat.access import Plan, read_access
from srvstat.asgi.limits import RateLimiter, TooManyRequestsError, format_quota
from srvstat.asgi.log import Log
from srvstat.contract.errors import GatewayUnauthorizedError, SourceError
from srvstat.contract.http import KEY_HEADER, Headers, find_key
from srvstat.files.identity import Candidate, WatchedFile


class Caller(NamedTuple):
    """The owner of a valid key."""

    digest: str
    """The key's SHA-256 in hexadecimal digits."""
    plan: Plan | None
    """None without an access file: everything is allowed."""

    @property
    def name(self) -> str:
        """The name in the log."""
        return self.digest[:8]


class Authenticator:
    """Check keys against an access file, which may change; without one, accept every key.

    Raises SourceError if the access file is rejected at the start.
    """

    def __init__(self, path: str | None, log: Log) -> None:
        self._log = log
        self._limiter = RateLimiter()
        self._file = WatchedFile(path) if path else None
        self._reading: asyncio.Task[None] | None = None
        self._access = None if path is None else read_access(path)

    @property
    def is_open(self) -> bool:
        """Whether every key is valid, because there is no access file."""
        return self._file is None

    async def authenticate(self, headers: Headers) -> Caller:
        """Return the owner of the key of a request.

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

    def count_request(self, caller: Caller, headers: dict[str, str]) -> None:
        """Count a request if the caller's plan has a limit, and add it to the answer's headers.

        Raises TooManyRequestsError.
        """
        plan = caller.plan
        if plan is None or plan.requests_per_minute is None:
            return
        limit = plan.requests_per_minute
        quota = self._limiter.count(caller.digest, limit)
        headers |= format_quota(plan.name, limit, quota)
        if not quota.is_accepted:
            raise TooManyRequestsError(f"more than {limit:,} requests a minute", quota.seconds)

    def is_registered(self, key: bytes) -> bool:
        """Return whether the access file has a key."""
        return self._access is not None and self._access.find_customer(key) is not None

    async def _reload(self, file: WatchedFile) -> None:
        """Read the access file if it has changed; all requests wait until it is read."""
        while True:
            if self._reading is None:
                candidate = file.find_candidate()
                if candidate is None:
                    return
                self._reading = asyncio.create_task(self._read(file, candidate))
            # The file can be replaced again while it is read.
            await asyncio.wait({self._reading})

    async def _read(self, file: WatchedFile, candidate: Candidate) -> None:
        try:
            self._access = await asyncio.to_thread(read_access, file.path)
        except SourceError as error:
            self._reject(file, candidate, error.reason)
        except Exception as error:  # noqa: BLE001 - a bug must not stop the service
            self._reject(file, candidate, f"a bug in srvstat: {error!r}")
        else:
            file.accept(candidate)
            self._log.add_event("new access file in use")
        finally:
            self._reading = None

    def _reject(self, file: WatchedFile, candidate: Candidate, reason: str) -> None:
        if file.reject(candidate, reason):
            self._log.add_event(
                "new access file rejected; the previous one stays in use", reason=reason
            )
