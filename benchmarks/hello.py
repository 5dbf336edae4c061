"""The bare Starlette application that the service is measured against: one small JSON answer.

`python -m benchmarks.hello PORT [fast]` serves it on uvicorn with the settings of `srvstat serve`,
or on those that uvicorn takes where httptools and uvloop are installed.
"""

import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

BODY = b'{"hello":"world"}'


async def _hello(_: Request) -> JSONResponse:
    return JSONResponse({"hello": "world"})


def main(port: str, form: str = "") -> None:
    """Serve until a signal."""
    is_fast = form == "fast"
    uvicorn.run(
        Starlette(routes=[Route("/", _hello)]),
        port=int(port),
        http="httptools" if is_fast else "h11",
        loop="uvloop" if is_fast else "asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
