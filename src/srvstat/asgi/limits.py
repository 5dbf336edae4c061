"""Limit the number of requests of each caller within a minute."""

import math
import time
from collections import deque
from collections.abc import Callable

from srvstat.contract.errors import RateLimitedError

_MINUTE = 60


class TooManyRequestsError(RateLimitedError):
    """A plan's limit was exceeded; `retry_after` is the time to wait, in whole seconds."""

    def __init__(self, reason: str, retry_after: int) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class RateLimiter:
    """Count the requests of each caller within the last minute, by a monotonic clock.

    The cost of a request does not depend on the number of callers. A caller is forgotten after a
    minute without requests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # The times of each caller's requests; the caller idle for longest comes first.
        self._requests: dict[str, deque[float]] = {}

    def count(self, caller: str, limit: int) -> None:
        """Count a request of a caller who may make `limit` requests a minute.

        Earlier requests still count after a change of `limit`.

        Raises TooManyRequestsError.
        """
        now = self._clock()
        self._forget_idle(now)
        requests = self._requests.pop(caller, None) or deque()
        self._requests[caller] = requests
        while requests and requests[0] <= now - _MINUTE:
            requests.popleft()
        if len(requests) >= limit:
            seconds = max(1, math.ceil(requests[-limit] + _MINUTE - now))
            raise TooManyRequestsError(f"more than {limit:,} requests a minute", seconds)
        requests.append(now)

    def _forget_idle(self, now: float) -> None:
        """Forget at most one idle caller, which suffices: a request adds at most one."""
        for caller, requests in self._requests.items():
            if not requests or requests[-1] <= now - _MINUTE:
                del self._requests[caller]
            return

    def __len__(self) -> int:
        return len(self._requests)
