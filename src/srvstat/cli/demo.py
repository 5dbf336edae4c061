"""`demo`: a snapshot to play with."""

import os
from contextlib import closing
from typing import Annotated

import typer

from srvstat.cli.interruptions import allow_cleanup
from srvstat.cli.output import Outcome
from srvstat.contract.errors import UsageError
from srvstat.contract.requests import build_compare_request
from srvstat.snapshot.read.reader import open_file
from srvstat.sources.registry import load_reader


def demo(
    directory: Annotated[
        str, typer.Argument(metavar="DIRECTORY", help="Where to write the demo's four files.")
    ] = "srvstat-demo",
) -> Outcome:
    """Make a small snapshot to play with.

    Three of its servers are compared, and what to try next is said. Nothing is replaced.

    Example: srvstat demo && export SRVSTAT_SNAPSHOT=srvstat-demo/snapshot.db
    """
    import shlex

    from srvstat.cli.demo_files import write_demo
    from srvstat.cli.tables import comparison_table

    if not directory:
        raise UsageError("DIRECTORY: the name is empty; name a directory")
    load_reader("csv")  # now: nothing may be imported while the demo can be interrupted
    with allow_cleanup():
        path = write_demo(directory)
    with closing(open_file(path)) as snapshot:
        request = build_compare_request(
            ["harbor-city", "new-frontier", "night-shift"], by="id", range="7d"
        )
        table = comparison_table(snapshot, request)
    at, access = shlex.quote(path), shlex.quote(os.path.join(directory, "access.toml"))
    text = (
        "\nTry next:\n"
        f"  export SRVSTAT_SNAPSHOT={at}\n"
        "  srvstat get flaky-arena\n"
        "  srvstat compare harbor-city old-guard cfxId:nf8q1z --range 90d\n"
        "  srvstat compare harbor-city new-frontier --json | jq '.data[].medianPlayers'\n"
        f"  srvstat access check --access {access}\n"
        "\nOver HTTP, with any key:\n"
        f"  srvstat serve --snapshot {at}\n"
        "  curl -H 'X-Gateway-Key: any' http://127.0.0.1:8000/gateway/v1/servers/flaky-arena\n"
    )
    return Outcome([table, text.encode("utf-8", "backslashreplace")])
