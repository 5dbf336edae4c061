"""Check that the snapshot can be read from its files."""

import asyncio

from srvstat.asgi.snapshots import ServedSnapshot
from srvstat.contract.errors import SnapshotError
from srvstat.snapshot.read.spot_check import SpotCheck

READY_SECONDS = 2.0
"""Seconds from the start of a check until the service counts as not ready."""

SECONDS_BETWEEN_CHECKS = 1.0
"""A result holds this long, from the start of its check, so that many requests cost no more."""

_STOPPING = "the service is stopping"


class Readiness:
    """The state of the service: whether it can read the snapshot, as far as checks have found out.

    At most one check runs, so a disk that does not answer blocks one worker only.
    """

    def __init__(self, snapshot: ServedSnapshot) -> None:
        self._snapshot = snapshot
        self._spot_check = SpotCheck()
        self._check: asyncio.Task[str | None] | None = None
        self._started_at = 0.0
        self._is_stopping = False

    def stop(self) -> None:
        """Report a problem from now on, because the service stops."""
        self._is_stopping = True
        if self._check:
            self._check.cancel()

    async def find_problem(self) -> str | None:
        """Return why the service is not ready, within READY_SECONDS; None if it is."""
        if self._is_stopping:
            return _STOPPING
        now = asyncio.get_running_loop().time()
        if self._check is None or self._is_outdated(self._check, now):
            self._started_at = now
            self._check = asyncio.create_task(self._read())
        check = self._check  # another request may start the next one during the wait
        await asyncio.wait({check}, timeout=max(self._started_at + READY_SECONDS - now, 0))
        if not check.done():
            return f"nothing was read from the snapshot within {READY_SECONDS:g} s"
        return _STOPPING if check.cancelled() else check.result()

    def _is_outdated(self, check: asyncio.Task[str | None], now: float) -> bool:
        return check.done() and now >= self._started_at + SECONDS_BETWEEN_CHECKS

    async def _read(self) -> str | None:
        """Read from the current snapshot in a worker; return the problem, if there is one."""
        generation = await self._snapshot.get_generation()
        try:
            await self._snapshot.ask(
                generation,
                self._spot_check.check_next,
                remember=lambda _: None,
                is_wanted=lambda: True,
            )
        except SnapshotError as error:
            return error.reason
        return None
