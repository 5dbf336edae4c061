"""Damage a small snapshot in every way: truncate it, move pages, overwrite bytes."""

import random

from campaigns.campaign import Campaign, Result
from campaigns.damage_kinds import KINDS, Damage, Originals
from campaigns.workers import run_trials


def _run(seed: int, count: int) -> Result:
    return run_trials(draw, seed, lambda _originals: count)


def draw(originals: Originals, seed: int, number: int) -> Damage:
    """Return the damage of a case; cases cycle through the kinds."""
    return KINDS[number % len(KINDS)](random.Random(f"{seed} {number}"), originals)


CAMPAIGN = Campaign(
    name="damage",
    promise="a damaged snapshot gives a correct answer or an error within 100 ms",
    run=_run,
    short=20,
    long=50_000,
    unit="damaged files",
)
