"""`snapshot verify`: verify a whole snapshot."""

import re
from typing import Annotated

import typer

from srvstat.cli.options import (
    JsonOption,
    PathArgument,
    SnapshotOption,
    TableOption,
    choose_snapshot,
)
from srvstat.cli.output import Outcome, choose_form, report
from srvstat.cli.row_progress import show_row_progress
from srvstat.cli.show import show
from srvstat.contract.errors import DifferenceError, UsageError
from srvstat.snapshot.read.verify import verify as verify_snapshot


def verify(
    path: PathArgument = None,
    snapshot: SnapshotOption = None,
    expect: Annotated[
        str | None,
        typer.Option(
            metavar="ROOT", help="The expected root, from the person who built the snapshot."
        ),
    ] = None,
    json: JsonOption = False,
    table: TableOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bar.")] = False,
) -> Outcome:
    """Verify a whole snapshot and print its root.

    Recomputes all derived data from the observations. Exits with 3 if the snapshot is damaged, and
    with 5 if its root is not the expected one.

    Example: srvstat snapshot verify snapshot.db
    """
    form = choose_form(json=json, table=table)
    expected = _parse_root(expect)
    name = choose_snapshot(path, snapshot)
    with show_row_progress("verifying", quiet=quiet) as progress:
        verification = verify_snapshot(name, progress)
    if expected in (None, verification.root):
        return show(verification, form)
    report(f"error: --expect: the root of {name} is not {expected}")
    return show(verification, form, exit_code=DifferenceError.exit_code)


def _parse_root(text: str | None) -> str | None:
    """Return the root of --expect in lower case.

    Raises UsageError.
    """
    if text is None or re.fullmatch("[0-9A-Fa-f]{64}", text):
        return text and text.lower()
    raise UsageError("--expect: must be 64 hexadecimal digits, as `snapshot info` shows a root")
