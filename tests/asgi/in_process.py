"""A service in the process of the test, and its workers."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from srvstat.asgi.app import Service
from srvstat.asgi.log import Log
from srvstat.asgi.settings import Settings
from srvstat.asgi.snapshots import Work


class InProcess:
    """A service in this process, and its workers."""

    def __init__(self, path: Path, *, explore: bool = False) -> None:
        self.app = Service(Settings(os.fspath(path), explore=explore), Log())
        self.snapshot = self.app.snapshot

    @asynccontextmanager
    async def client(self, base: str = "http://x/gateway/v1") -> AsyncIterator[httpx.AsyncClient]:
        """Return a client that uses no sockets."""
        headers = {"X-Gateway-Key": "k", "Content-Type": "application/json"}
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url=base, headers=headers) as client:
            yield client

    async def ask(self, question: Callable[[Any], Any], work: Work = Work.GET_SERVER) -> Any:
        """Call a function in a worker."""
        return await self.snapshot.ask(await self.snapshot.get_generation(), question, work)

    def run(self, work: Coroutine[Any, Any, None], *, closes: bool = False) -> None:
        """Run a coroutine for at most a minute; `closes` tells whether it closes the service."""

        async def run() -> None:
            async with asyncio.timeout(60):
                await work
            for worker, file in (await self.snapshot.get_generation()).files.items():
                worker.submit(file.close).result()
                worker.shutdown()
            if not closes:
                self.app.close()

        asyncio.run(run())
