"""The commands that open a snapshot, and how they report a damaged one."""

BUILD_ONE = "build one with `srvstat snapshot build`"
COMMANDS = [
    ["get", "a", "--snapshot"],
    ["compare", "a", "b", "--table", "--snapshot"],
    ["compare", "a", "b", "--json", "--snapshot"],
    ["snapshot", "info", "--json"],
    ["snapshot", "info", "--table"],
    ["snapshot", "verify"],
    ["snapshot", "bundle", "a", "-o", "case.db", "--snapshot"],
]
FILE_ROW = "the table snapshot"


def format_damage(part: str) -> str:
    return f"x.db: damaged ({part}); copy it again, or {BUILD_ONE}"
