"""Reload a file when it is replaced."""

import asyncio
import math
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from srvstat.contract.errors import SrvstatError, describe_unexpected
from srvstat.files.paths import Identity, identify_file

FIRST_PAUSE = 5.0
"""The pause before a rejected file is tried again, in seconds. Its permissions may be corrected."""
_LONGEST_PAUSE = 300.0
"""The maximum pause, which doubles each time the same file is rejected."""

_T = TypeVar("_T")


class _Rejection(NamedTuple):
    identity: Identity
    reason: str
    pause: float
    retry_at: float

    @property
    def report(self) -> tuple[object, str]:
        """What identifies a rejection in the log: the file's device and inode, and the reason.

        A rejection is logged only if these differ from the previous rejection.

        Size and time are left out, because they change while a file is being written.
        """
        return self.identity and self.identity[:2], self.reason


class ReloadedFile:
    """A file whose content is in use, and which is reloaded when it is replaced.

    - Each request checks the file, so that a revoked key or an old snapshot is not used after a
      replacement. A check takes a few microseconds.
    - Create it before reading the file for the first time, so that it notices a replacement during
      that read.
    - An unusable file is rejected: the previous content remains in use, and the file is tried again
      after a pause.
    - `kind`: the file's name in the event that `report` logs.
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
        """Whether the file at the path was rejected, so that an earlier file is in use."""
        return self._rejection is not None

    async def refresh(
        self, read: Callable[[], _T], use: Callable[[_T], None], patience: float = math.inf
    ) -> None:
        """If the file must be read, call `read` in a thread, and `use` with the content.

        Requests wait until `patience` seconds after the start of the read, but not for a retry.
        `read` raises SrvstatError if the content is unusable.
        """
        # Twice, because the file may have been replaced while it was being read.
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
        except Exception as error:  # noqa: BLE001 - no error may stop the service
            self._reject(identity, describe_unexpected(error))
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
