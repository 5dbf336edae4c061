"""The table of integrity: a mark for each server and rule, then the evidence of suspect results."""

from collections.abc import Iterator, Sequence
from zoneinfo import ZoneInfo

from rich.console import RenderableType
from rich.text import Text

from srvstat.documents.integrity import AnyRule, Integrity, ServerIntegrity
from srvstat.render.fields import Fields, build_fields_grid
from srvstat.render.local_time import format_local_window
from srvstat.render.screen import Screen
from srvstat.render.tables.integrity_evidence import describe_evidence
from srvstat.render.tables.server_table import ServerLines, build_server_table
from srvstat.render.text import format_count

_HEADERS = {
    "flatLine": "flat",
    "floor": "floor",
    "jitter": "jitter",
    "missingValues": "missing",
    "stepChange": "step",
    "noDailyCycle": "cycle",
    "aboveMaximum": "max",
    "gaps": "gaps",
}
"""The column of each rule."""
_MAX_SERVERS = 100
_MAX_DETAILS = 20
MEANING = (
    "These results describe numbers. They prove nothing about a server or its owner, and they are"
    " not probabilities."
)


def render_integrity(integrity: Integrity, screen: Screen) -> str:
    """Render the marks of all servers, the evidence of suspect results, and what they mean."""
    suspects = [server for server in integrity.servers if _list_suspect(server)]
    parts: list[RenderableType] = []
    if integrity.servers:
        lines = [_build_lines(server, screen) for server in integrity.servers[:_MAX_SERVERS]]
        parts += [*build_server_table(list(_HEADERS.values()), lines, screen)]
        parts += [*_build_rest(len(integrity.servers) - _MAX_SERVERS), Text()]
    for server in suspects[:_MAX_DETAILS]:
        parts += _build_details(server, integrity.time_zone, screen)
    if rest := _build_rest(len(suspects) - _MAX_DETAILS, " with suspect results"):
        parts += [*rest, Text()]
    causes = _list_causes(suspects[:_MAX_DETAILS])
    if causes:
        parts += [Text("innocent causes", "bold"), build_fields_grid(causes, screen), Text()]
    parts += [build_fields_grid(_list_notes(integrity, screen), screen), Text()]
    return screen.render(*parts, Text(MEANING))


def _list_suspect(server: ServerIntegrity) -> list[AnyRule]:
    return [rule for rule in server.rules if rule.result == "suspect"]


def _build_lines(server: ServerIntegrity, screen: Screen) -> ServerLines:
    # A dot in ASCII: the middle dot would become a hyphen, which is another mark.
    marks = {
        "pass": Text("." if screen.ascii_only else "·"),
        "suspect": Text("!", "bold yellow"),
        "notEvaluated": Text("-", "dim"),
    }
    names = (server.server_id, server.cfx_id)
    return ServerLines(server.hostname, names, tuple(marks[one.result] for one in server.rules), ())


def _build_rest(count: int, condition: str = "") -> list[RenderableType]:
    if count <= 0:
        return []
    servers = format_count(count, "more server")
    return [Text(f"and {servers}{condition}; --json lists all")]


def _build_details(server: ServerIntegrity, zone: str, screen: Screen) -> Iterator[RenderableType]:
    """Yield the evidence of a server's suspect results."""
    hostname = screen.escape_name(server.hostname)
    yield screen.escape(server.server_id, "bold").append("  ").append_text(hostname)
    fields = [
        (_HEADERS[rule.rule], describe_evidence(rule, zone)) for rule in _list_suspect(server)
    ]
    yield build_fields_grid(fields, screen)
    yield Text()


def _list_causes(servers: Sequence[ServerIntegrity]) -> list[tuple[str, str | Text]]:
    found = {rule.rule: rule.innocent_causes for one in servers for rule in _list_suspect(one)}
    return [(header, " ".join(found[rule])) for rule, header in _HEADERS.items() if rule in found]


def _list_notes(integrity: Integrity, screen: Screen) -> Fields:
    zone = ZoneInfo(integrity.time_zone)
    passed = "." if screen.ascii_only else "·"
    fields: list[tuple[str, str | Text]] = [
        ("marks", f"{passed} pass, ! suspect, - not evaluated"),
        ("window", format_local_window(integrity.window, zone)),
        ("times", zone.key),
    ]
    if len(integrity.servers) == 1:
        rules = integrity.servers[0].rules
        fields += [
            (_HEADERS[one.rule], f"not evaluated: {one.reason}") for one in rules if one.reason
        ]
    return fields
