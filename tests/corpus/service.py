"""A service in this process, without a server and sockets."""

import asyncio
import os
from argparse import ArgumentParser
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

from srvstat.asgi import RehearsalSettings, Settings
from srvstat.asgi.app import Service as App
from srvstat.asgi.log import Log
from support.process import replace_descriptor

_OPTIONS = ArgumentParser("serve")
_OPTIONS.add_argument("snapshot")
_OPTIONS.add_argument("--access")
_OPTIONS.add_argument("--record")
_OPTIONS.add_argument("--explore", action="store_true")
_OPTIONS.add_argument("--explain-errors", action="store_true")
_OPTIONS.add_argument("--cors", action="append", default=[])
_OPTIONS.add_argument("--allow-prefer", action="store_true")
_OPTIONS.add_argument("--fail", type=float, default=0.0)
_OPTIONS.add_argument("--drop", type=float, default=0.0)


class Service:
    """The application of `serve`; its log is discarded."""

    def __init__(self, arguments: list[str]) -> None:
        options = _OPTIONS.parse_args(arguments)
        settings = Settings(
            options.snapshot,
            options.access,
            options.record,
            options.explore,
            tuple(options.cors),
            RehearsalSettings(
                fail=options.fail, drop=options.drop, allows_prefer=options.allow_prefer
            ),
            options.explain_errors,
        )
        self._app = App(settings, Log())
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        with open(os.devnull, "wb") as discarded:
            self._stderr = replace_descriptor(2, discarded.fileno())
            self._stderr.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._runner.run(self._close())
        self._runner.close()
        self._stderr.__exit__(kind, error, at)

    async def _close(self) -> None:
        for worker, file in (await self._app.snapshot.get_generation()).files.items():
            worker.submit(file.close).result()
            worker.shutdown()
        self._app.close()

    def ask(self, method: str, target: str, *rest: str) -> str:
        """Return the response to a request; `rest` are its headers, and its body in braces."""
        body = next((each for each in rest if each.startswith("{")), "")
        fields = [each for each in rest if each != body]
        return self._runner.run(self._send(method, target, fields, body.encode()))

    async def _send(self, method: str, target: str, fields: list[str], body: bytes) -> str:
        path, _, query = target.partition("?")
        headers = [tuple(part.encode() for part in field.split(": ", 1)) for field in fields]
        if body:
            headers.append((b"Content-Length", b"%d" % len(body)))
        sent: list[dict[str, Any]] = []
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(name.lower(), value) for name, value in headers],
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 8000),
        }
        requests = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            return requests.pop() if requests else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await self._app(scope, receive, send)
        if not sent:
            return "the connection is closed without a response\n"
        head, *parts = sent
        lines = sorted(b"%s: %s\n" % field for field in head["headers"])
        status = head["status"]
        first = f"HTTP {status} {HTTPStatus(status).phrase}\n".encode()
        # A server sends no body to HEAD.
        content = b"".join(part.get("body", b"") for part in parts) if method != "HEAD" else b""
        return b"".join([first, *lines, b"\n%s\n" % content if content else b""]).decode()
