"""Display foreign text in every place where srvstat displays text."""

from collections.abc import Iterator, Sequence
from itertools import cycle, product
from random import Random

from campaigns.blocks import MAX_FAILURES, add_results, run_in_blocks
from campaigns.campaign import Campaign, Result
from campaigns.foreign_text import CODE_POINTS, draw_text
from campaigns.text_checks import is_harmless
from campaigns.text_on_a_terminal import run_on_a_terminal
from campaigns.text_places import (
    ALL_PLACES,
    Place,
    find_fault,
    show_in_comparison,
    show_in_detail,
    show_in_json,
    show_in_list,
    show_in_messages,
)
from srvstat.render.screen import Screen

SHORT = 100
_ALPHABETS = 0x3400
"""The code points below are mostly alphabets; those above are mostly ideographs or unassigned."""

_WIDTHS = (20, 40, 60, 80, 140, None)
_BATCH = 50
_BLOCK = 5_000
_STRINGS_PER_TERMINAL_ROUND = 100_000


def run(seed: int, count: int) -> Result:
    """Display code points and `count` strings, and further strings on real terminals.

    The short form displays all code points of the first plane's alphabets, and one in 64 others.
    """
    return add_results(
        [
            _run_code_points(1 if count > SHORT else 64),
            run_in_blocks(_run_strings, seed, count, _BLOCK),
            run_on_a_terminal(Random(f"{seed} terminal"), 1 + count // _STRINGS_PER_TERMINAL_ROUND),
        ]
    )


def _run_code_points(step: int) -> Result:
    every = [chr(code) for code in (*range(_ALPHABETS), *range(_ALPHABETS, CODE_POINTS, step))]
    # All others are escaped as ASCII in every place.
    as_themselves = [character for character in every if is_harmless(character)]
    failures: list[str] = []
    for place, characters, length, texts_each, widths in (
        (show_in_json, every, 1_000, 20, _WIDTHS),
        (show_in_messages, every, 100, 200, _WIDTHS),
        (show_in_detail, every, 2_000, 10, (140, 400)),
        (show_in_detail, as_themselves, 500, 10, _WIDTHS),
        (show_in_list, as_themselves, 100, 25, _WIDTHS),
        (show_in_comparison, as_themselves, 40, 25, _WIDTHS),
    ):
        texts = _join_characters(characters, length)
        failures += _find_faults(place, texts, texts_each, widths)
    return Result(len(every), {"code points": len(every)}, tuple(failures))


def _join_characters(characters: list[str], length: int) -> list[str]:
    starts = range(0, len(characters), length)
    return ["".join(characters[start : start + length]) for start in starts]


def _find_faults(
    place: Place, texts: list[str], texts_each: int, widths: Sequence[int | None] = _WIDTHS
) -> Iterator[str]:
    screens = cycle(
        Screen(width, color, ascii_only)
        for color, ascii_only, width in product((False, True), (False, True), widths)
    )
    for start in range(0, len(texts), texts_each):
        if fault := find_fault(place, texts[start : start + texts_each], next(screens)):
            yield fault


def _run_strings(rng: Random, count: int) -> Result:
    failures: list[str] = []
    texts = [draw_text(rng) for _ in range(count)]
    for place in ALL_PLACES:
        failures += _find_faults(place, texts, _BATCH)
    return Result(count, {"strings": count}, tuple(failures[:MAX_FAILURES]))


CAMPAIGN = Campaign(
    name="text",
    promise="foreign text on a terminal is displayed without side effects; tables stay aligned",
    run=run,
    short=SHORT,
    long=200_000,
    unit="texts",
)
