"""A minimal Starlette application with one small JSON answer, to compare the service with.

`python -m benchmarks.hello PORT [fast]` serves it on uvicorn with the settings of `srvstat serve`;
`fast` uses httptools and uvloop.
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
    """Serve until a signal arrives."""
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
