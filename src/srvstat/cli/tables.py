"""Answers as tables for this terminal.

Rich comes with this module, so a command imports it when it has a table to show.
"""

import os
import shutil

from srvstat import operations
from srvstat.cli.output import STDOUT, shows_ascii_only
from srvstat.contract.requests import CompareRequest, ServerReference
from srvstat.documents.views import AccessView, SnapshotView, Verification
from srvstat.render import tables
from srvstat.render.comparison import comparison
from srvstat.render.screen import Screen
from srvstat.snapshot.read.reader import SnapshotFile

_LEAST_WIDTH = 20


def server_table(
    snapshot: SnapshotFile, request: ServerReference, *, at: int | None = None
) -> bytes:
    """Answer Get Server with a table."""
    view = operations.view_server(snapshot, request, at=at)
    return tables.server_detail(view, _screen()).encode("utf-8")


def comparison_table(
    snapshot: SnapshotFile, request: CompareRequest, *, at: int | None = None
) -> bytes:
    """Answer Compare Servers with a table."""
    view = operations.view_comparison(snapshot, request, at=at)
    return comparison(view, _screen()).encode("utf-8")


def info_table(view: SnapshotView) -> bytes:
    """Show what is in a snapshot as a table."""
    return tables.snapshot_info(view, _screen()).encode("utf-8")


def verification_table(view: Verification) -> bytes:
    """Show what was found of a snapshot that is sound."""
    return tables.verification(view, _screen()).encode("utf-8")


def access_table(view: AccessView) -> bytes:
    """Show what the plans of an access file may do."""
    return tables.access(view, _screen()).encode("utf-8")


def _screen() -> Screen:
    """Return what standard output shows: its width where it is a terminal, and its colours."""
    is_terminal = os.isatty(STDOUT)
    return Screen(
        width=max(shutil.get_terminal_size().columns, _LEAST_WIDTH) if is_terminal else None,
        color=_wants_color(is_terminal=is_terminal),
        ascii_only=shows_ascii_only(),
    )


def _wants_color(*, is_terminal: bool) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal and os.environ.get("TERM") not in (None, "", "dumb", "unknown")
