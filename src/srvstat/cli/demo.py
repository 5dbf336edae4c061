"""`demo`: create an example snapshot."""

import os
import shlex
from contextlib import closing
from typing import Annotated

import typer

from srvstat.analysis.comparison import describe_comparison
from srvstat.cli.demo_files import write_demo
from srvstat.cli.output import Form, Outcome
from srvstat.cli.show import show
from srvstat.cli.signals import allow_cleanup
from srvstat.contract.errors import UsageError
from srvstat.contract.requests import build_compare_request
from srvstat.snapshot.read.snapshot import open_snapshot
from srvstat.sources.registry import load_reader, load_record_reader

DirectoryArgument = Annotated[
    str, typer.Argument(metavar="DIRECTORY", help="The directory for the four files of the demo.")
]


def demo(directory: DirectoryArgument = "srvstat-demo") -> Outcome:
    """Create a small example snapshot.

    Compares three of its servers and shows what to try next. Never replaces a file.

    Example: srvstat demo && export SRVSTAT_SNAPSHOT=srvstat-demo/snapshot.db
    """
    if not directory:
        raise UsageError("DIRECTORY: the name is empty; name a directory")
    # Import the reader now: nothing may be imported while the demo can be interrupted.
    load_reader("csv")
    load_record_reader("ndjson")
    with allow_cleanup():
        path = write_demo(directory)
    request = build_compare_request(
        ["harbor-city", "new-frontier", "night-shift"], by="id", range="7d"
    )
    with closing(open_snapshot(path)) as snapshot:
        comparison = describe_comparison(snapshot, request)
    table = show(comparison, Form.TABLE)
    text = _suggest_commands(path, os.path.join(directory, "access.toml"))
    return Outcome([*table.pieces, text.encode("utf-8", "backslashreplace")])


def _suggest_commands(path: str, access: str) -> str:
    snapshot, access = shlex.quote(path), shlex.quote(access)
    return (
        "\nTry next:\n"
        f"  export SRVSTAT_SNAPSHOT={snapshot}\n"
        "  srvstat get flaky-arena\n"
        "  srvstat compare harbor-city old-guard cfxId:nf8q1z --range 90d\n"
        "  srvstat compare harbor-city new-frontier --json | jq '.data[].medianPlayers'\n"
        f"  srvstat access check --access {access}\n"
        "\nOver HTTP, with any key:\n"
        f"  srvstat serve --snapshot {snapshot}\n"
        "  curl -H 'X-Gateway-Key: any' http://127.0.0.1:8000/gateway/v1/servers/flaky-arena\n"
        "\nIn a browser, http://127.0.0.1:8000/docs shows the API. For pages of your own:\n"
        f"  srvstat serve --snapshot {snapshot} --cors http://localhost:5173 --explain-errors\n"
    )
