"""The horizontal axis of charts, its ticks and their labels."""

from collections.abc import Iterable
from typing import NamedTuple


class Tick(NamedTuple):
    """A tick of the horizontal axis; `at` is a cell counted from the first column."""

    at: int
    label: str
    is_centered: bool = False

    @property
    def start(self) -> int:
        """The cell at which the label starts."""
        return max(self.at - len(self.label) // 2, 0) if self.is_centered else self.at


def select_ticks(ticks: Iterable[Tick], width: int) -> list[Tick]:
    """Return the ticks whose labels fit, one beside the other."""
    kept: list[Tick] = []
    end = 0
    for tick in ticks:
        if tick.start >= end and tick.start + len(tick.label) <= width:
            kept.append(tick)
            end = tick.start + len(tick.label) + 1
    return kept


def draw_axis(ticks: Iterable[Tick], width: int) -> str:
    """Draw a horizontal axis with ticks."""
    places = {tick.at for tick in ticks}
    return "".join("┬" if at in places else "─" for at in range(width))


def draw_labels(ticks: Iterable[Tick]) -> str:
    """Return the line of labels below a horizontal axis."""
    labels = ""
    for tick in ticks:
        labels = labels.ljust(tick.start) + tick.label
    return labels
