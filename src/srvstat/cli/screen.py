"""The terminal as the environment describes it."""

import os
import shutil

from srvstat.cli.output import STDOUT, shows_ascii_only
from srvstat.render.screen import Screen

_LEAST_WIDTH = 20


def current_screen() -> Screen:
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
