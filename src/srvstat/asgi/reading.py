"""What is read of a request besides its target: its head, judged, and its body, within limits."""

import asyncio

from starlette.requests import Request

from srvstat.asgi.connection import BODY_SECONDS, BROKEN_BODY
from srvstat.contract.errors import InvalidRequestError
from srvstat.contract.requests import MAX_BODY_BYTES


async def read_body(request: Request) -> bytes:
    """Read a body, but no further than one byte more than it may have.

    Raises InvalidRequestError where it does not come in time or in one piece, ClientDisconnect.
    """
    body = b""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    break
    except TimeoutError:
        raise InvalidRequestError(f"body: not there within {BODY_SECONDS:.0f} s") from None
    if BROKEN_BODY in request.scope.get("state", ()):
        raise InvalidRequestError("body: broken off, or chunks that are none")
    return body
