"""Build HTML elements. All text and attributes are escaped as untrusted text."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Self
from xml.etree.ElementTree import Element
from zoneinfo import ZoneInfo

from srvstat.contract import wire
from srvstat.contract.time import format_instant
from srvstat.documents.analysis import NamedServer
from srvstat.render import text
from srvstat.render.svg import name_servers
from srvstat.render.text import format_id

Child = Element | str
Children = Sequence[Child]


def build(tag: str, *children: Child, **attributes: str) -> Element:
    """Build an element.

    `class_` stands for the attribute `class`, and `aria_label` for `aria-label`.
    """
    names = (name.rstrip("_").replace("_", "-") for name in attributes)
    values = map(text.escape_text, attributes.values())
    element = Element(tag, dict(zip(names, values, strict=True)))
    for child in children:
        if isinstance(child, Element):
            element.append(child)
        elif len(element):
            element[-1].tail = (element[-1].tail or "") + text.escape_text(child)
        else:
            element.text = (element.text or "") + text.escape_text(child)
    return element


def build_raw(tag: str, content: str, **attributes: str) -> Element:
    """Build a style sheet or script. The content must not contain its end tag."""
    element = build(tag, **attributes)
    element.text = content
    return element


def build_number(value: float | None, shown: str) -> Element:
    """Build a rounded number that also contains its exact value."""
    if value is None:
        return build("span", text.NOTHING, class_="none")
    return build("data", shown, value=wire.format_number(value))


def build_figure(value: float | None, format_value: Callable[[float], str]) -> Element:
    """Build a number as `build_number` does, formatted by a function."""
    return build_number(value, "" if value is None else format_value(value))


def build_average(value: float | None) -> Element:
    """Build an average."""
    return build_number(value, text.format_average(value))


def build_median(value: float | None) -> Element:
    """Build a median or another quantile."""
    return build_number(value, text.format_median(value))


def build_whole(value: int | None) -> Element:
    """Build a count of players or observations."""
    return build_number(value, text.format_whole(value))


def build_note(*children: Child) -> Element:
    """Build a paragraph in small print."""
    return build("p", *children, class_="note")


def build_remark(*children: Child) -> Element:
    """Build small print beside a number or name."""
    return build("span", *children, class_="note")


def build_section(name: str, title: str, *children: Child) -> Element:
    """Build a section with a heading that `#name` links to."""
    heading = build("h2", title, id=f"{name}-title")
    return build("section", heading, *children, id=name, aria_labelledby=f"{name}-title")


def build_table(
    caption: str, headers: Sequence[Child], rows: Iterable[Children], class_: str = "numbers"
) -> Element:
    """Build a table in a scrollable region. The first cell of each row is its header."""
    body = build("tbody")
    for first, *rest in rows:
        cells = (build("td", cell) for cell in rest)
        body.append(build("tr", build("th", first, scope="row"), *cells))
    head = build("thead", build("tr", *(build("th", header, scope="col") for header in headers)))
    table = build("table", build("caption", caption), head, body, class_=class_)
    return build("div", table, class_="scroll", role="region", tabindex="0", aria_label=caption)


def build_details(summary: str, *children: Child, **attributes: str) -> Element:
    """Build content shown on demand. It is printed only if it is open."""
    return build("details", build("summary", summary), *children, **attributes)


def build_fields(fields: Mapping[str, Child]) -> Element:
    """Build a list of names and values."""
    pairs = (build("div", build("dt", name), build("dd", value)) for name, value in fields.items())
    return build("dl", *pairs)


def join_words(items: Sequence[Child | Children]) -> list[Child]:
    """Join parts of a sentence: `a`, `a and b`, `a, b, and c`."""
    joined: list[Child] = []
    for at, item in enumerate(items):
        if at == len(items) - 1:
            joined.append(("", " and ", ", and ")[min(at, 2)])
        elif at:
            joined.append(", ")
        joined += [item] if isinstance(item, Child) else item
    return joined


_LONGEST_NAME = 40


class Labels(NamedTuple):
    """The short names of servers, in order, and the time zone of all times."""

    names: Sequence[str]
    zone: ZoneInfo

    @classmethod
    def choose(cls, servers: Sequence[NamedServer], zone: str) -> Self:
        """Name servers as in pictures, but by id where names are equal after being cut."""
        names = [text.escape_text(name, max_length=_LONGEST_NAME) for name in name_servers(servers)]
        pairs = zip(names, servers, strict=True)
        unique = [
            one if names.count(one) == 1 else format_id(server.server_id) for one, server in pairs
        ]
        return cls(unique, ZoneInfo(zone))

    def build_name(self, at: int) -> Element:
        """Build a server's name. It can't change the direction of the surrounding text."""
        return build("bdi", self.names[at])

    def build_names(self) -> list[Element]:
        """Build the names of all servers."""
        return [self.build_name(at) for at in range(len(self.names))]

    def build_time(self, at: int, precision: str = "minute") -> Element:
        """Build a local time that also contains its exact instant."""
        return build_time(at, self.zone, precision)


def build_time(at: int, zone: ZoneInfo, precision: str = "minute") -> Element:
    """Build a local time that also contains its exact instant."""
    return build("time", text.format_local_time(at, zone, precision), datetime=format_instant(at))
