"""Every bit of a small snapshot, flipped."""

import random
from math import gcd

from campaigns.campaign import Campaign, Result
from campaigns.damages import Damage, Originals, flipped
from campaigns.workers import run_trials

_MORE_THAN_IT_HAS = 100_000_000


def _run(seed: int, count: int) -> Result:
    return run_trials(draw, seed, lambda originals: min(count, 8 * len(originals.small)))


def draw(originals: Originals, seed: int, number: int) -> Damage:
    """Return the flip of a case; as many cases as there are bits flip each of them once."""
    bits = 8 * len(originals.small)
    drawn = random.Random(seed)
    first, step = drawn.randrange(bits), drawn.randrange(bits)
    while gcd(step, bits) > 1:
        step += 1
    return flipped(originals.small, (first + step * number) % bits)


CAMPAIGN = Campaign(
    name="flips",
    promise="a snapshot with a flipped bit gives a right answer or an error, within 100 ms",
    run=_run,
    short=20_000,
    long=_MORE_THAN_IT_HAS,
    unit="flipped bits",
)
