"""The table of a verified snapshot."""

from srvstat.documents.verification import Verification
from srvstat.render.fields import Fields, build_fields_grid
from srvstat.render.screen import Screen
from srvstat.render.text import format_time

_MEANING = "every row is as built, and derived data follows from the observations"


def render_verification(verification: Verification, screen: Screen) -> str:
    """Render what was verified of a sound snapshot."""
    fields: Fields = [
        ("sound", _MEANING),
        ("root", verification.root),
        ("as of", format_time(verification.as_of)),
        ("servers", f"{verification.servers:,}"),
        ("observations", f"{verification.observations:,}"),
        ("days", f"{verification.days:,}, each of one server"),
    ]
    return screen.render(build_fields_grid(fields, screen))
