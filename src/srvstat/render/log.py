"""Format an entry of the service's log as a short line."""

import time
from collections.abc import Mapping
from typing import Any

from srvstat.render.text import escape_non_ascii, escape_text

_PATHS = {
    "getServer": "/v1/servers/",
    "compareServers": "/v1/compare",
    "getHealth": "/healthz",
    "getReadiness": "/readyz",
    "getOpenApi": "/openapi.json",
    "getDocs": "/docs",
    "redirectToDocs": "/",
    "explore": "/",
}
"""The paths of operations. The path sent is never logged, because a client may put a key in it."""

_COLORS = {2: 32, 3: 36, 4: 33, 5: 31}
"""The color of a status by its first digit: green, cyan, yellow, red."""


def format_log_entry(entry: Mapping[str, Any], at: float, *, is_colored: bool) -> str:
    """Format an entry for people: `12:00:01 POST /v1/compare 200 1.2 ms  a, b; 7d`.

    `at` is in Unix seconds.
    """
    clock = time.strftime("%H:%M:%S", time.localtime(at))
    if event := entry.get("event"):
        fields = ", ".join(f"{name} {entry[name]}" for name in entry if name != "event")
        return _escape(f"{clock} {event}  {fields}".rstrip())
    operation = entry.get("operation", "another path")
    path = _PATHS.get(operation, operation)
    details = ", ".join(each.partition(":")[2] for each in entry.get("servers", ()))
    if operation == "getServer":
        path += details or "..."
    elif "range" in entry:
        details += f"; {entry['range']}"
    status = entry.get("status", 0)
    shown = f"{status or 'no answer'}"
    if is_colored:
        shown = f"\x1b[{_COLORS.get(status // 100, 0)}m{shown}\x1b[0m"
    line = _escape(f"{clock} {entry['method']} {path}")
    rest = entry.get("reason", "" if operation == "getServer" else details)
    return f"{line} {shown} {entry['ms']:.1f} ms  {_escape(rest)}".rstrip()


def _escape(text: str) -> str:
    return escape_non_ascii(escape_text(text))
