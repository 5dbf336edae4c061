"""Define the option --cors of `serve`, and interpret its values."""

import re
from collections.abc import Sequence
from typing import Annotated

import typer

from srvstat.asgi.settings import EVERY_ORIGIN
from srvstat.cli.serve_options import MAX_PORT
from srvstat.contract.errors import UsageError
from srvstat.contract.wire import quote_value

_ORIGIN = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<host>[a-z0-9._-]+|\[[0-9a-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?(?:[/?#].*)?",
    re.IGNORECASE,
)
"""An origin, or the address of a page. Browsers never send a user or letters beyond ASCII."""
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_EXAMPLE = "http://localhost:5173"

CorsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--cors",
        metavar="ORIGIN",
        envvar="SRVSTAT_CORS",
        help="Let web pages of this origin, such as http://localhost:5173, call the API in a"
        " browser. Repeat the option for more origins. Without --access, `*` means all.",
    ),
]


def parse_origins(values: Sequence[str], *, needs_keys: bool) -> tuple[str, ...]:
    """Return the origins of --cors; `needs_keys` is whether there is an access file.

    Raises UsageError.
    """
    if needs_keys and EVERY_ORIGIN in values:
        raise UsageError(
            "--cors: with --access, `*` would let any website use a key that it has got; name the"
            f" origins that may, such as {_EXAMPLE}"
        )
    for value in values:
        if value != EVERY_ORIGIN:
            _check_origin(value)
    return tuple(values)


def _check_origin(value: str) -> None:
    """Check that a value is an origin in the only form that browsers send."""
    if value == "null":
        raise UsageError(
            "--cors: null is the origin of sandboxed pages of any website, and of files; serve the"
            " file over HTTP, for example with python3 -m http.server, and name that origin"
        )
    shown = quote_value(value.rpartition("@")[2])  # without a password
    match = _ORIGIN.fullmatch(value)
    if not match or int(match["port"] or 0) > MAX_PORT:
        raise UsageError(
            f"--cors: {shown} is not an origin; write scheme://host[:port], such as {_EXAMPLE}"
        )
    scheme, host, port = (part and part.lower() for part in match.groups())
    has_port = port and port != _DEFAULT_PORTS.get(scheme)
    origin = f"{scheme}://{host}" + (f":{int(port)}" if has_port else "")
    if value != origin:
        raise UsageError(f"--cors: browsers send {origin} as the origin of {shown}; write that")


def describe_origins(origins: tuple[str, ...]) -> str:
    """Return the line at the start of a service that says which pages may call it."""
    if EVERY_ORIGIN in origins:
        return "any web page that is open in a browser on this machine can call the API"
    return f"web pages of {', '.join(origins)} can call the API"
