"""Display foreign text on terminals, from a snapshot and from command arguments."""

import re
import sys
import tempfile
import unicodedata
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

from rich.cells import cell_len

from campaigns.campaign import MEMORY, Campaign, Result, run_in_blocks
from conftest import build_in
from support.records import AS_OF, server
from support.terminal import run_srvstat_in_terminal

CODE_POINTS = sys.maxunicode + 1

_PIECES = [
    kind.split("|")
    for kind in (
        "\x1b|\x1b[2J|\x1b[31m|\x1b[0m|\x1b[9999C|\x1b[?1049h|\x1bc|\x1b(0|\x1bP1",
        "\x1b]0;x\x07|\x1b]8;;http://x\x1b\\|\x1b]52;c;eA==\x07|\x1b\\|\x07|\x1b]8;;\x1b\\",
        "\x9b2J|\x9d0;x\x9c|\x90|\x98|\x85|\x80|\x9f|\x7f|\x00|\x0e|\x1a",
        "\n|\r|\r\n|\t|\b|\x0b|\x0c|\x1c|\u2028|\u2029|a\rb|ab\b\b",
        "\u202e|\u202d|\u202a|\u202c|\u2066|\u2067|\u2069|\u200e|\u200f|\u061c",
        "\u200b|\u200c|\u200d|\u2060|\ufeff|\u00ad|\u034f|\u180e|\ufff9|\U000e0041",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467|\U0001f1e9\U0001f1ea|\U0001f44d\U0001f3fd",
        "1\ufe0f\u20e3|\u2764\ufe0f|\u2764\ufe0e|\U0001f3f4\U000e0067\U000e007f|\ufe0f|\U000e0100",
        "e\u0301|\u0301|a\u20dd|\u0e33|\u093f|\u1ab0\u0488|z" + "\u0301" * 40,
        "\u0e49" * 9,
        "\u65e5\u672c|\uff21|\uff71|\u1100\u1161\u11a8|\ud55c|\u2460|\u2026|\u2014|\u00b7",
        "\u2502|\u2500|\u2581\u2588|\ufdfd|\ua9c5|\u2502" + "\u2588" * 30 + "\u2502",
        "[/x]|[red]|[/]|[link=http://x]|[|]|[bold|:smile:|\\|\\[|{0}|%s|%",
        " |  |\u00a0|\u3000|\u2003|\u1680|\u3164|\u2800|\u115f|\uffa0|\u200a",
        "a|ab|B|7|-|a-word-of-many-characters|http://x|word word|\u00e9|\u0431|\u05d0|\u0627\u0644",
        "\ufffe|\uffff|\ufdd0|\U0001fffe|\U0010ffff|\ue000|\U000f0000|\u0378|\ufffd",
        "\ud800|\udcff|\udc80|\ud83d|\ude00|\udbff\udfff",
    )
]
_MAX_PIECES = 6


def draw_text(rng: Random) -> str:
    """Draw a string of pieces of several kinds, sometimes with an arbitrary character."""
    pieces = []
    for _ in range(1 + int(rng.random() * _MAX_PIECES)):
        kind = _PIECES[int(rng.random() * len(_PIECES))]
        pieces.append(kind[int(rng.random() * len(kind))])
    if rng.random() < 0.2:
        # The power prefers low code points, where most assigned characters are.
        pieces.append(chr(int(rng.random() ** 4 * CODE_POINTS)))
    return "".join(pieces)


_SERVERS = 50
_WIDTHS = (20, 40, 60, 80, 140)
_LOCALES = ({"NO_COLOR": ""}, {"NO_COLOR": "1"}, {"LC_ALL": "C"})

_DANGEROUS = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
_MAX_MARKS = 4
_COLORS = re.compile(r"\x1b\[[0-9;]*m")
_AVERAGE = re.compile(r"\d\.00 ")
"""The end of a column that follows the hostname in a comparison."""


def _run_block(rng: Random, count: int) -> Result:
    """Build a snapshot of foreign text, and run commands on terminals of many widths."""
    failures: list[str] = []
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        _build_snapshot(rng, Path(directory), [draw_text(rng) for _ in range(count)])
        for arguments, expected in _list_commands(rng):
            if fault := _find_fault(arguments, expected, directory, rng):
                failures.append(f"{arguments!a} on a terminal: {fault}")
    return Result(count, {"strings": count}, tuple(failures))


def _build_snapshot(rng: Random, directory: Path, texts: list[str]) -> None:
    records = [_draw_record(rng, f"s{number}", texts) for number in range(_SERVERS)]
    build_in(directory, records, [(f"s{number}", AS_OF, number) for number in range(_SERVERS)])


def _draw_record(rng: Random, identifier: str, texts: list[str]) -> dict[str, Any]:
    names = ("hostname", "projectName", "region", "chatUrl", "iconUrl")
    fields = {name: _make_storable(rng.choice(texts)) for name in names}
    # Many at once: a block of all code points, in order, and some of the strings.
    first = rng.randrange(CODE_POINTS - 1_000)
    block = "".join(map(chr, range(first, first + 1_000)))
    description = _make_storable(block + "".join(rng.choices(texts, k=10)))
    tags = [_make_storable(text) for text in rng.choices(texts, k=3)]
    return server(identifier, tags=tags, flags=tags, projectDescription=description, **fields)


def _make_storable(text: str) -> str:
    """Remove lone surrogates and U+0000, which a snapshot can't store."""
    return text.encode("utf-8", "ignore").decode("utf-8").replace("\x00", "")


def _list_commands(rng: Random) -> list[tuple[list[str], int]]:
    """Return commands, each with the expected exit code."""
    compared = [f"s{number}" for number in rng.sample(range(_SERVERS), 5)]
    one = compared[0]
    # An argument can contain any byte but NUL; Python decodes invalid UTF-8 to surrogates.
    texts = [f"{_make_storable(draw_text(rng))}\udcff\x1b" for _ in range(6)]
    return [
        *((["compare", *compared, "--range", name], 0) for name in ("24h", "7d", "1y")),
        *((["get", name], 0) for name in compared),
        *((["get", name, "--json"], 0) for name in compared[:2]),
        (["servers"], 0),
        (["snapshot", "info"], 0),
        (["snapshot", "info", "--json"], 0),
        (["compare", one, f"id:{texts[0]}"], 40),
        (["compare", one, "s1", f"--range={texts[5]}"], 40),
        (["get", one, "--by", texts[1]], 40),
        (["get", one, "--snapshot", f"x{texts[2]}"], 3),
        (["get", one, "--at", texts[3]], 2),
        ([f"x{texts[4]}"], 2),
    ]


def _find_fault(arguments: list[str], expected: int, directory: str, rng: Random) -> str | None:
    width = rng.choice(_WIDTHS)
    env = rng.choice(_LOCALES)
    exit_code, shown = run_srvstat_in_terminal(*arguments, columns=width, env=env, cwd=directory)
    if exit_code != expected:
        return f"exit code {exit_code}: {shown}"
    if "--json" in arguments:
        return None if all(map(_is_harmless, set(shown) - {"\n"})) else f"it displays {shown!a}"
    text = _COLORS.sub("", shown)
    lines = text.split("\n")
    if exit_code == 0 and max(map(cell_len, lines)) > width:
        return f"it is wider than {width}: {text}"
    ends = {cell_len(line[: end.end()]) for line in lines if (end := _AVERAGE.search(line))}
    if len(ends) > 1:
        return f"a column ends at different places: {text}"
    return _find_text_fault(text, ascii_only="LC_ALL" in env)


def _find_text_fault(text: str, *, ascii_only: bool) -> str | None:
    """Return a fault in lines that display foreign text; None if there is none."""
    characters = set(text) - {"\n"}
    if wrong := sorted(one for one in characters if not _is_on_screen(one)):
        return f"it has {''.join(wrong)!a}"
    if ascii_only and not text.isascii():
        return f"it is not ASCII: {text!a}"
    heaps = [len(list(heap)) for is_mark, heap in groupby(text, _is_mark) if is_mark]
    return f"it has {max(heaps)} marks in a row" if max(heaps, default=0) > _MAX_MARKS else None


def _is_on_screen(character: str) -> bool:
    """Return whether displayed text may have a character: one space, and no blank letters."""
    is_space = unicodedata.category(character) == "Zs" and character != " "
    return _is_harmless(character) and not is_space and character not in _BLANK


def _is_harmless(character: str) -> bool:
    return unicodedata.category(character) not in _DANGEROUS


def _is_mark(character: str) -> bool:
    return unicodedata.category(character) in {"Mn", "Me"}


def _run(seed: int, count: int) -> Result:
    return run_in_blocks(_run_block, seed, count, size=200)


CAMPAIGN = Campaign(
    name="text",
    promise="foreign text on a terminal is displayed without side effects; tables stay aligned",
    run=_run,
    short=200,
    long=20_000,
    unit="strings",
)
