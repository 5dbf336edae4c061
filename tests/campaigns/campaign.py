"""What a campaign is: many cases drawn from a seed, each of which may break a promise.

A case that breaks it is told as text with which it can be run again.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Result:
    """What a campaign found: how many cases, how each kind ended, and those that broke a promise.

    `counts` names outcomes ("refused", "the same answer", …) and how often each was seen.
    """

    cases: int
    counts: Mapping[str, int]
    failures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign, and how many cases its two forms have.

    `run` takes the seed and the number of cases. `needs` names programs that not every machine has.
    A campaign without a short form (0 cases) runs behind `make soak` alone.
    """

    name: str
    promise: str
    run: Callable[[int, int], Result]
    short: int
    long: int
    unit: str = "cases"
    needs: tuple[str, ...] = ()

    def missing(self) -> list[str]:
        """Return the programs that this machine has not and the campaign needs."""
        return [program for program in self.needs if not shutil.which(program)]
