"""Define the options of `serve`, and interpret their values."""

import re
from typing import Annotated

import typer

from srvstat.contract import wire
from srvstat.contract.errors import UsageError

MAX_PORT = 65_535

OptionalAccessFileOption = Annotated[
    str | None,
    typer.Option(
        "--access",
        metavar="FILE",
        envvar="SRVSTAT_ACCESS",
        help="The access file, with plans and keys. Without it, any key is valid, and only this"
        " machine can connect.",
    ),
]
HostOption = Annotated[
    str,
    typer.Option(metavar="ADDRESS", envvar="SRVSTAT_HOST", help="The address to listen on."),
]
PortOption = Annotated[
    str,
    typer.Option(
        metavar="PORT",
        envvar="SRVSTAT_PORT",
        help="The port to listen on; 0 means any free one.",
    ),
]
RecordOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        envvar="SRVSTAT_RECORD",
        help="Append each request and its answer to this file, without keys, for srvstat replay.",
    ),
]
ExploreOption = Annotated[
    bool,
    typer.Option(
        "--explore",
        envvar="SRVSTAT_EXPLORE",
        help="Also serve a page at /, to search, compare and chart servers in a browser.",
    ),
]
ExplainErrorsOption = Annotated[
    bool,
    typer.Option(
        "--explain-errors",
        envvar="SRVSTAT_EXPLAIN_ERRORS",
        help="Add the reason of each error to its answer, as the header X-Srvstat-Reason.",
    ),
]


def parse_port(text: str) -> int:
    """Return the port of --port. `int` alone would also accept `1_0` and `+10`.

    Raises UsageError.
    """
    if not re.fullmatch("0|[1-9][0-9]{0,4}", text) or int(text) > MAX_PORT:
        raise UsageError(f"--port: {wire.quote_value(text)} is not a number from 0 to {MAX_PORT}")
    return int(text)
