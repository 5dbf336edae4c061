"""Name servers and times in a report."""

from collections.abc import Sequence
from typing import NamedTuple, Self
from xml.etree.ElementTree import Element
from zoneinfo import ZoneInfo

from srvstat.render.local_time import format_local_time
from srvstat.render.pictures.svg import NamedServer, name_servers
from srvstat.render.report.elements import build, build_time
from srvstat.render.text import escape_text

_LONGEST_NAME = 40


class Labels(NamedTuple):
    """The short names of servers, in their order, and the time zone of all times."""

    names: Sequence[str]
    zone: ZoneInfo

    @classmethod
    def choose(cls, servers: Sequence[NamedServer], zone: str) -> Self:
        """Name servers as in pictures, and by their ids where names are equal once they are cut."""
        names = [escape_text(name, max_length=_LONGEST_NAME) for name in name_servers(servers)]
        unique = [
            name if names.count(name) == 1 else server.server_id
            for name, server in zip(names, servers, strict=True)
        ]
        return cls(unique, ZoneInfo(zone))

    def build_name(self, at: int) -> Element:
        """Build the name of a server; it can't change the direction of the text around it."""
        return build("bdi", self.names[at])

    def build_time(self, at: int) -> Element:
        """Build a local time."""
        return build_time(at, format_local_time(at, self.zone))
