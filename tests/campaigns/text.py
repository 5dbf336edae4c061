"""Foreign text in every place where srvstat shows it: it shows itself and does nothing else."""

from collections.abc import Iterator, Sequence
from itertools import cycle, product
from random import Random

from campaigns.blocks import MAX_FAILURES, add_results, run_in_blocks
from campaigns.campaign import Campaign, Result
from campaigns.foreign_text import CODE_POINTS, draw_text
from campaigns.text_checks import HARMLESS
from campaigns.text_on_a_terminal import run_on_a_terminal
from campaigns.text_places import (
    ALL_PLACES,
    Place,
    find_fault,
    in_a_comparison,
    in_a_detail,
    in_a_list,
    in_json,
    in_messages,
)
from srvstat.render.screen import Screen

_WIDTHS = (20, 40, 60, 80, 140, None)
_BATCH = 50
_BLOCK = 5_000
_STRINGS_A_TERMINAL = 100_000


def run(seed: int, count: int) -> Result:
    """Show every code point and `count` strings, and some more of these on real terminals."""
    return add_results(
        [
            _every_code_point(),
            run_in_blocks(_strings, seed, count, _BLOCK),
            run_on_a_terminal(Random(f"{seed} terminal"), 1 + count // _STRINGS_A_TERMINAL),
        ]
    )


def _every_code_point() -> Result:
    every = [chr(code) for code in range(CODE_POINTS)]
    # The others are written in ASCII, wherever they stand.
    as_themselves = [character for character in every if character in HARMLESS]
    failures: list[str] = []
    for place, characters, length, texts_each, widths in (
        (in_json, every, 1_000, 20, _WIDTHS),
        (in_messages, every, 100, 200, _WIDTHS),
        (in_a_detail, every, 2_000, 10, (140, 400)),
        (in_a_detail, as_themselves, 500, 10, _WIDTHS),
        (in_a_list, as_themselves, 100, 25, _WIDTHS),
        (in_a_comparison, as_themselves, 40, 25, _WIDTHS),
    ):
        texts = _joined(characters, length)
        failures += _show(place, texts, texts_each, widths)
    return Result(CODE_POINTS, {"code points": CODE_POINTS}, tuple(failures))


def _joined(characters: list[str], length: int) -> list[str]:
    starts = range(0, len(characters), length)
    return ["".join(characters[start : start + length]) for start in starts]


def _show(
    place: Place, texts: list[str], texts_each: int, widths: Sequence[int | None] = _WIDTHS
) -> Iterator[str]:
    screens = cycle(
        Screen(width, color, ascii_only)
        for color, ascii_only, width in product((False, True), (False, True), widths)
    )
    for start in range(0, len(texts), texts_each):
        if fault := find_fault(place, texts[start : start + texts_each], next(screens)):
            yield fault


def _strings(random: Random, count: int) -> Result:
    failures: list[str] = []
    texts = [draw_text(random) for _ in range(count)]
    for place in ALL_PLACES:
        failures += _show(place, texts, _BATCH)
    return Result(count, {"strings": count}, tuple(failures[:MAX_FAILURES]))


CAMPAIGN = Campaign(
    name="text",
    promise="foreign text on a terminal shows itself, does nothing else and keeps the layout",
    run=run,
    short=10_000,
    long=200_000,
    unit="texts",
)
