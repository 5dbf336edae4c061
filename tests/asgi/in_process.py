"""A service in the process of the test, and its workers."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from srvstat.asgi import app as asgi_app
from srvstat.asgi.auth import Authenticator
from srvstat.asgi.log import Log
from srvstat.asgi.operational_paths import OperationalPaths
from srvstat.asgi.readiness import Readiness
from srvstat.asgi.snapshots import ServedSnapshot
from srvstat.asgi.workers import Work


class InProcess:
    """A service in this process, and its workers."""

    def __init__(self, path: Path) -> None:
        self._log = Log()
        self.snapshot = ServedSnapshot(os.fspath(path), self._log)
        readiness = Readiness(self.snapshot)
        parts = asgi_app.Parts(
            self.snapshot,
            Authenticator(None, self._log),
            self._log,
            sites=(OperationalPaths(self.snapshot, readiness),),
            readiness=readiness,
        )
        self.app = asgi_app.Service(parts)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[httpx.AsyncClient]:
        """Return a client that uses no sockets."""
        headers = {"X-Gateway-Key": "k", "Content-Type": "application/json"}
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://x/gateway/v1", headers=headers
        ) as client:
            yield client

    async def ask(self, question: Callable[[Any], Any], work: Work = Work.GET_SERVER) -> Any:
        """Call a function in a worker."""
        return await self.snapshot.ask(
            await self.snapshot.get_generation(),
            question,
            remember=lambda _: None,
            is_wanted=lambda: True,
            work=work,
        )

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine for at most a minute."""

        async def run() -> None:
            async with asyncio.timeout(60):
                await work
            for worker, file in (await self.snapshot.get_generation()).files.items():
                worker.submit(file.close).result()
                worker.shutdown()
            self._log.close()

        asyncio.run(run())
