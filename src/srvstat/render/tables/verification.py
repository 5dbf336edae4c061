"""The table of a verified snapshot."""

from srvstat.documents.snapshot import Verification
from srvstat.render.fields import Fields, build_fields_grid
from srvstat.render.screen import Screen
from srvstat.render.text import format_time

_FINDING = "all rows are as built, and derived data matches the observations"


def render_verification(verification: Verification, screen: Screen) -> str:
    """Render the root and the totals of a verified snapshot."""
    fields: Fields = [
        ("verified", _FINDING),
        ("root", verification.root),
        ("as of", format_time(verification.as_of)),
        ("servers", f"{verification.servers:,}"),
        ("observations", f"{verification.observations:,}"),
        ("server days", f"{verification.days:,}"),
    ]
    return screen.render(build_fields_grid(fields, screen))
