"""Find time zones by the names of the IANA database."""

from zoneinfo import ZoneInfo

from srvstat.contract import wire

_OF_MACHINES = ("localtime", "posixrules")
"""Names that mean another time zone on each machine."""


def load_zone(name: str) -> ZoneInfo:
    """Return a time zone of the IANA database, such as Europe/Berlin.

    Raises ValueError, whose message quotes the name and gives the remedy.
    """
    try:
        zone = None if name in _OF_MACHINES else ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # the last two for names such as /etc and Europe
        zone = None
    if zone is None:
        raise ValueError(
            f"no time zone {wire.quote_value(name)}; use UTC or a name such as Europe/Berlin"
        )
    return zone
