"""Read a file of the service again once another one is at its path."""

import asyncio
import math
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from srvstat.contract.errors import SrvstatError
from srvstat.files.paths import Identity, identify_file

FIRST_PAUSE = 5.0
"""Seconds before a rejected file is tried again: its permissions may have been corrected."""
_LONGEST_PAUSE = 300.0
"""Limit of the pause, which doubles each time the same file is rejected."""

_T = TypeVar("_T")


class _Rejection(NamedTuple):
    identity: Identity
    reason: str
    pause: float
    retry_at: float

    @property
    def report(self) -> tuple[object, str]:
        """What is reported once: the device and inode of the file, and the reason.

        A file that is still being written has another identity with each check.
        """
        return self.identity and self.identity[:2], self.reason


class ReloadedFile:
    """A file whose content is in use, and which is read again when it was replaced.

    Each request looks at the file, so that a revoked key or an old snapshot is not used after a
    replacement. That takes a few microseconds.

    Create it before the file is read for the first time, so that it notices a replacement during
    that read. A file that can't be used is rejected: the previous content stays in use, and the
    file is tried again after a pause.

    `kind` names the file in the event that `report` adds to the log.
    """

    def __init__(
        self,
        path: str,
        kind: str,
        report: Callable[..., None],
        *,
        identify: Callable[[str], Identity] = identify_file,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = path
        self._kind, self._report = kind, report
        self._identify, self._clock = identify, clock
        self._accepted = identify(path)
        self._rejection: _Rejection | None = None
        self._reading: asyncio.Task[None] | None = None
        self._wait_until = 0.0

    @property
    def has_rejected(self) -> bool:
        """Whether the file at the path is not the one in use."""
        return self._rejection is not None

    async def refresh(
        self, read: Callable[[], _T], use: Callable[[_T], None], patience: float = math.inf
    ) -> None:
        """Call `read` in a thread if the file must be read, and `use` with the content.

        Requests wait for it until `patience` seconds after its start, but not for a retry. `read`
        raises SrvstatError for content that can't be used.
        """
        # Once for a file that is being read, and once more for one that replaced it meanwhile.
        for _ in range(2):
            identity = self._identify(self.path)
            if identity == self._accepted:
                self._rejection = None
                return
            is_retry = self._rejection is not None and identity == self._rejection.identity
            if self._rejection and is_retry and self._clock() < self._rejection.retry_at:
                return
            if self._reading is None or self._reading.done():
                self._wait_until = self._clock() + patience
                self._reading = asyncio.create_task(self._read(identity, read, use))
            seconds = self._wait_until - self._clock()
            if is_retry or seconds <= 0:
                return
            await asyncio.wait({self._reading}, timeout=seconds)

    async def _read(
        self, identity: Identity, read: Callable[[], _T], use: Callable[[_T], None]
    ) -> None:
        try:
            content = await asyncio.to_thread(read)
        except SrvstatError as error:
            self._reject(identity, error.reason)
        except Exception as error:  # noqa: BLE001 - a bug must not stop the service
            self._reject(identity, f"a bug in srvstat: {error!r}")
        else:
            self._accepted, self._rejection = identity, None
            use(content)

    def _reject(self, identity: Identity, reason: str) -> None:
        last = self._rejection
        pause = FIRST_PAUSE
        if last and identity == last.identity:
            pause = min(last.pause * 2, _LONGEST_PAUSE)
        self._rejection = _Rejection(identity, reason, pause, self._clock() + pause)
        if last is None or self._rejection.report != last.report:
            event = f"new {self._kind} rejected; the previous one stays in use"
            self._report(event, reason=reason)
