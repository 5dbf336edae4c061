"""Display foreign text on real terminals, from a snapshot and from command arguments."""

import tempfile
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

from rich.cells import cell_len

from campaigns.campaign import Result
from campaigns.foreign_text import draw_text
from campaigns.text_checks import find_text_fault, is_harmless, remove_colors
from conftest import build_in
from support.records import AS_OF, server
from support.terminal import run_srvstat_in_terminal

_WIDTHS = cycle((20, 40, 60, 80, 140))
_COLORS = cycle(({"NO_COLOR": ""}, {"NO_COLOR": "1"}, {"LC_ALL": "C"}))
_SERVERS = 50


def run_on_a_terminal(rng: Random, rounds: int) -> Result:
    """Build snapshots of foreign text and query them on terminals of many widths."""
    shown = 0
    failures: list[str] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as directory:
            _build_snapshot(rng, Path(directory))
            for arguments, expected in _list_commands(rng):
                shown += 1
                if fault := _find_fault(arguments, expected, directory):
                    failures.append(f"{arguments!a} on a terminal: {fault}")
    return Result(0, {"commands on a terminal": shown}, tuple(failures))


def _build_snapshot(rng: Random, directory: Path) -> None:
    records = [_draw_record(rng, f"s{number}") for number in range(_SERVERS)]
    observations = [(f"s{number}", AS_OF, number) for number in range(_SERVERS)]
    build_in(directory, records, observations)


def _draw_record(rng: Random, identifier: str) -> dict[str, Any]:
    texts = ("hostname", "projectName", "projectDescription", "region", "chatUrl", "iconUrl")
    fields = {name: _draw_storable_text(rng) for name in texts}
    tags = [_draw_storable_text(rng) for _ in range(3)]
    return server(identifier, tags=tags, flags=tags, **fields)


def _draw_storable_text(rng: Random) -> str:
    """Draw text that a snapshot can store: without lone surrogates and U+0000."""
    text = draw_text(rng).encode("utf-8", "ignore").decode("utf-8")
    return text.replace("\x00", "")


def _list_commands(rng: Random) -> list[tuple[list[str], int]]:
    """Return commands, each with the expected exit code."""
    compared = [f"s{number}" for number in rng.sample(range(_SERVERS), 5)]
    one = compared[0]
    # An argument can contain any byte but NUL; Python decodes invalid UTF-8 to surrogates.
    texts = [f"{_draw_storable_text(rng)}\udcff\x1b" for _ in range(5)]
    return [
        *((["compare", *compared, "--range", name], 0) for name in ("24h", "7d", "1y")),
        *((["get", name], 0) for name in compared[:3]),
        *((["get", name, "--json"], 0) for name in compared[:2]),
        (["snapshot", "info"], 0),
        (["snapshot", "info", "--json"], 0),
        (["compare", one, f"id:{texts[0]}"], 40),
        (["get", one, "--by", texts[1]], 40),
        (["get", one, "--snapshot", f"x{texts[2]}"], 3),
        (["get", one, "--at", texts[3]], 2),
        ([f"x{texts[4]}"], 2),
    ]


def _find_fault(arguments: list[str], expected: int, directory: str) -> str | None:
    width = next(_WIDTHS)
    env = next(_COLORS)
    exit_code, shown = run_srvstat_in_terminal(*arguments, columns=width, env=env, cwd=directory)
    if exit_code != expected:
        return f"exit code {exit_code}: {shown}"
    if "--json" in arguments:
        return None if all(map(is_harmless, set(shown) - {"\n"})) else f"it displays {shown!a}"
    text = remove_colors(shown)
    if exit_code == 0 and max(map(cell_len, text.split("\n"))) > width:
        return f"it is wider than {width}: {text}"
    return find_text_fault(text)
