"""Make the records of sources; campaigns need no more, and not pytest."""

import json
from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from srvstat.contract.time import YEAR_2001, format_instant

DAY = 86_400_000
AS_OF = 1_772_366_400_000
"""2026-03-01T12:00:00Z, the instant that small snapshots speak for."""


def server(identifier: str, **fields: Any) -> dict[str, Any]:
    """Return a server record with its required fields; `cfxId` is `x-` and the id unless given."""
    required = {
        "id": identifier,
        "cfxId": f"x-{identifier}",
        "game": "game_a",
        "hostname": identifier,
    }
    return {**required, **fields}


def ndjson(records: Iterable[Any]) -> bytes:
    """Return records as NDJSON."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def write_time(at: int | str) -> int | str:
    """Return a time in a form that is read without a declared unit."""
    return format_instant(at) if isinstance(at, int) and 0 <= at < YEAR_2001 else at


def csv(rows: Iterable[tuple[str, int | str, int | str]]) -> bytes:
    """Return observations as CSV. Integers before 2001 are written as text, which is any time's."""
    lines = (f"{server_id},{write_time(at)},{players}\n" for server_id, at, players in rows)
    return ("serverId,observedAt,players\n" + "".join(lines)).encode()


PLANS = """\
[plans.starter]  # a comment
operations = ["get-server", "compare-servers"]
ranges = ["24h", "7d"]
requests_per_minute = 60

[plans.details]
operations = ["get-server"]
ranges = []
raw_history_days = 7
"""


def format_key_table(sha256: str, plan: str = "starter") -> str:
    """Return the table of a key, as `add_key` appends it."""
    return f'\n[[keys]]\nsha256 = "{sha256}"\nplan = "{plan}"\n'


DIGEST = st.binary(min_size=32, max_size=32).map(bytes.hex)
RANGES = ("24h", "7d", "30d", "90d", "1y")
OPERATIONS = ("get-server", "compare-servers")


def draw_subset(choices: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(choices), unique=True)


PLAN: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"operations": draw_subset(OPERATIONS), "ranges": draw_subset(RANGES)},
    optional={
        "raw_history_days": st.integers(0, 2**53 - 1),
        "requests_per_minute": st.integers(1, 2**53 - 1),
    },
)
NAME = st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True)
PLANS_BY_NAME = st.dictionaries(NAME, PLAN, min_size=1, max_size=4)
BLANKS = st.sampled_from(["", "\n", "# [x]\n", "  # \"\"\" '''\n\n"])


@st.composite
def toml_values(draw: st.DrawFn, value: object) -> str:
    """Draw a TOML form of a value."""
    if not isinstance(value, list):
        texts = [json.dumps(value), f"'{value}'", f'"""{value}"""', f"'''\n{value}'''"]
        return texts[0] if isinstance(value, int) else draw(st.sampled_from(texts))
    gap = draw(st.sampled_from(["", " ", "\n  ", " # ] \n"]))
    members = "".join(f"{gap}{draw(toml_values(member))},{gap}" for member in value)
    return f"[{members}]" if value else "[]"


AccessFile = tuple[str, dict[str, dict[str, Any]], dict[str, str]]
"""The text, its plans by name, and the name of the plan of each digest."""


@st.composite
def access_files(draw: st.DrawFn) -> AccessFile:
    """Draw a valid file in any form of TOML."""
    plans = draw(PLANS_BY_NAME)
    keys = draw(st.dictionaries(DIGEST, st.sampled_from(list(plans)), max_size=6))
    tables: list[str] = []
    for name, plan in plans.items():
        fields = [f"{field} = {draw(toml_values(value))}\n" for field, value in plan.items()]
        gaps = "".join(f"{draw(BLANKS)}{line}" for line in draw(st.permutations(fields)))
        tables.append(f"{draw(BLANKS)}[ plans . '{name}' ] # a plan\n{gaps}")
    for sha256, plan_name in keys.items():
        tables.append(
            f'{draw(BLANKS)}[[keys]]\nplan = {draw(toml_values(plan_name))}\nsha256 = "{sha256}"\n'
        )
    line_end = draw(st.sampled_from(["\n", "\r\n"]))
    return "".join(tables).replace("\n", line_end), plans, keys
