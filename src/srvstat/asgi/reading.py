"""What is read of a request besides its target: its head, judged, and its body, within limits."""

import asyncio

from starlette.datastructures import Headers
from starlette.requests import Request

from srvstat.asgi.connection import BODY_SECONDS, BROKEN_BODY, MAX_HEAD_BYTES
from srvstat.contract import wire
from srvstat.contract.errors import InvalidRequestError
from srvstat.contract.requests import MAX_BODY_BYTES

JSON = "application/json"


def has_two_lengths(headers: Headers) -> bool:
    """Say whether a head tells in two ways where its body ends.

    Whoever stands between may have gone by the other one.
    """
    return "content-length" in headers and "transfer-encoding" in headers


def judge_head(request: Request) -> None:
    """Refuse a head that is too long, or that leaves open where its body ends.

    Raises InvalidRequestError.
    """
    headers, scope = request.headers, request.scope
    target = len(scope["raw_path"]) + len(scope["query_string"])
    if target + sum(len(name) + len(value) for name, value in headers.raw) > MAX_HEAD_BYTES:
        raise InvalidRequestError(f"target and headers: more than {MAX_HEAD_BYTES:,} bytes")
    if has_two_lengths(headers):
        raise InvalidRequestError(
            "headers: Content-Length and Transfer-Encoding exclude each other"
        )


def judge_no_body(headers: Headers) -> None:
    """Refuse a body where there is nothing to say.

    Raises InvalidRequestError.
    """
    if headers.get("content-length", "0").strip("0") or "transfer-encoding" in headers:
        raise InvalidRequestError("body: this operation has none")


def judge_json(headers: Headers) -> None:
    """Refuse a body that is not said to be plain JSON.

    Raises InvalidRequestError.
    """
    types = headers.getlist("content-type")
    if len(types) != 1:
        raise InvalidRequestError(f"content-type: {len(types)} given, {JSON} needed")
    if types[0].partition(";")[0].strip().lower() != JSON:
        raise InvalidRequestError(f"content-type: {wire.quote_value(types[0])} is not {JSON}")
    if "content-encoding" in headers:
        raise InvalidRequestError("content-encoding: none is taken")


async def read_body(request: Request) -> bytes:
    """Read a body, but no further than one byte more than it may have.

    Raises InvalidRequestError where it does not come in time or in one piece, ClientDisconnect.
    """
    length = request.headers.get("content-length", "0").lstrip("0") or "0"
    if len(length) > len(str(MAX_BODY_BYTES)) or int(length) > MAX_BODY_BYTES:
        raise InvalidRequestError(f"body: more than {MAX_BODY_BYTES:,} bytes")
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
