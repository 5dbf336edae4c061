"""Flip every bit of a small snapshot."""

import random
from math import gcd

from campaigns.campaign import Campaign, Result
from campaigns.damage_kinds import Damage, Originals, flip_bit
from campaigns.workers import run_trials

_MORE_THAN_THE_FILE_HAS = 100_000_000


def _run(seed: int, count: int) -> Result:
    return run_trials(draw, seed, lambda originals: min(count, 8 * len(originals.small)))


def draw(originals: Originals, seed: int, number: int) -> Damage:
    """Return the flip of a case; a case for every bit of the file flips each bit once."""
    bits = 8 * len(originals.small)
    rng = random.Random(seed)
    first, step = rng.randrange(bits), rng.randrange(bits)
    while gcd(step, bits) > 1:
        step += 1
    return flip_bit(originals.small, (first + step * number) % bits)


CAMPAIGN = Campaign(
    name="flips",
    promise="a snapshot with a flipped bit gives a correct answer or an error within 100 ms",
    run=_run,
    short=30,
    long=_MORE_THAN_THE_FILE_HAS,
    unit="flipped bits",
)
