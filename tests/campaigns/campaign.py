"""A campaign: many cases drawn from a seed that test one promise.

The text of a failure says how to run its case again.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a campaign.

    `counts` maps each outcome ("refused", "the same answers", …) to its number of cases, and each
    measurement ("at most {} ms late") to its figure.
    """

    cases: int
    counts: Mapping[str, int]
    failures: tuple[str, ...]


def format_counts(counts: Mapping[str, int]) -> str:
    """Return the outcomes and the measurements of a campaign as text."""
    return "; ".join(
        name.format(f"{count:,}") if "{}" in name else f"{count:,} {name}"
        for name, count in counts.items()
    )


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign and the number of cases in its short and its long form.

    `run` takes the seed and the number of cases. `needs` names required programs. A campaign with 0
    short cases runs only with `make soak`.
    """

    name: str
    promise: str
    run: Callable[[int, int], Result]
    short: int
    long: int
    unit: str = "cases"
    needs: tuple[str, ...] = ()

    def list_missing_programs(self) -> list[str]:
        """Return the required programs that are not installed."""
        return [program for program in self.needs if not shutil.which(program)]
