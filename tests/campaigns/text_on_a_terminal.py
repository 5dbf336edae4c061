"""Foreign text on real terminals: a snapshot full of it, and commands that name it."""

import tempfile
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

from rich.cells import cell_len

from campaigns.campaign import Result
from campaigns.foreign_text import draw_text
from campaigns.text_checks import HARMLESS, fault_of_text, without_colours
from conftest import AS_OF, csv, ndjson, server, srvstat
from support.terminal import srvstat_in_terminal

_WIDTHS = cycle((20, 40, 60, 80, 140))
_COLOURS = cycle(({"NO_COLOR": ""}, {"NO_COLOR": "1"}, {"LC_ALL": "C"}))
_SERVERS = 50


def run_on_a_terminal(random: Random, rounds: int) -> Result:
    """Build snapshots of foreign text, and ask about it on terminals of many widths."""
    shown = 0
    failures: list[str] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as directory:
            _build(random, Path(directory))
            for arguments, expected in _commands(random):
                shown += 1
                if fault := _fault(arguments, expected, directory):
                    failures.append(f"{arguments!a} on a terminal: {fault}")
    return Result(0, {"commands on a terminal": shown}, tuple(failures))


def _build(random: Random, directory: Path) -> None:
    records = [_record(random, f"s{number}") for number in range(_SERVERS)]
    observations = [(f"s{number}", AS_OF, number) for number in range(_SERVERS)]
    (directory / "servers.ndjson").write_bytes(ndjson(records))
    (directory / "week.csv").write_bytes(csv(observations))
    ran = srvstat(
        *("snapshot", "build", "snapshot.db"),
        *("--servers", "servers.ndjson", "--observations", "week.csv"),
        cwd=directory,
    )
    assert ran.exit_code == 0, ran.stderr


def _record(random: Random, identifier: str) -> dict[str, Any]:
    texts = ("hostname", "projectName", "projectDescription", "region", "chatUrl", "iconUrl")
    fields = {name: _stored_text(random) for name in texts}
    tags = [_stored_text(random) for _ in range(3)]
    return server(identifier, tags=tags, flags=tags, **fields)


def _stored_text(random: Random) -> str:
    """Draw what a snapshot takes: no lone surrogate and no U+0000."""
    text = draw_text(random).encode("utf-8", "ignore").decode("utf-8")
    return text.replace("\x00", "")


def _commands(random: Random) -> list[tuple[list[str], int]]:
    """Return commands, each with the exit code that it must have."""
    compared = [f"s{number}" for number in random.sample(range(_SERVERS), 5)]
    one = compared[0]
    # An argument can hold any byte but NUL, and Python hands on those that are not UTF-8.
    texts = [f"{_stored_text(random)}\udcff\x1b" for _ in range(5)]
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


def _fault(arguments: list[str], expected: int, directory: str) -> str | None:
    width = next(_WIDTHS)
    env = next(_COLOURS)
    exit_code, shown = srvstat_in_terminal(*arguments, columns=width, env=env, cwd=directory)
    if exit_code != expected:
        return f"it ended with {exit_code}: {shown}"
    if "--json" in arguments:
        return None if set(shown) <= HARMLESS | {"\n"} else f"it shows {shown!a}"
    text = without_colours(shown)
    if exit_code == 0 and max(map(cell_len, text.split("\n"))) > width:
        return f"it is wider than {width}: {text}"
    return fault_of_text(text)
