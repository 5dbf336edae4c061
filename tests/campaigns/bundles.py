"""Damage a small bundle in every way, above all the row that says what the bundle covers."""

import random

from campaigns import damage, flips
from campaigns.campaign import Campaign, Result
from campaigns.damage_kinds import PAGE, Damage, Originals, flip_bit
from campaigns.small_snapshots import build_small_bundle
from campaigns.workers import run_trials

_ROW_BYTES = 200
"""The row of the file is at the end of its page and takes less than this."""


def _run(seed: int, count: int) -> Result:
    return run_trials(draw, seed, lambda _originals: count, build_small_bundle)


def draw(originals: Originals, seed: int, number: int) -> Damage:
    """Return the damage of a case: a bit of the row of the file, any bit, or any damage."""
    case, kind = divmod(number, 3)
    if kind:
        return (flips.draw if kind == 1 else damage.draw)(originals, seed, case)
    end = (originals.root_page + 1) * PAGE
    bit = random.Random(f"{seed} {case}").randrange(8 * (end - _ROW_BYTES), 8 * end)
    return flip_bit(originals.small, bit)


CAMPAIGN = Campaign(
    name="bundles",
    promise="a damaged bundle gives a correct answer or an error within 100 ms",
    run=_run,
    short=15,
    long=50_000,
    unit="damaged files",
)
