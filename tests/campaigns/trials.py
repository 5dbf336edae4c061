"""Damage a small snapshot in one way after the other, and ask it everything each time."""

import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, MutableSequence, Sequence
from dataclasses import dataclass
from pathlib import Path

from campaigns.damages import Damage, Originals
from campaigns.questions import REFUSED, Answers, answers_of, wrong_ones

Draw = Callable[[Originals, int, int], Damage]
"""Returns the damage of a case, from the seed and the case's number."""

OUTCOMES = ("the same answers", "refused", "wrong", "crashed")
SAME, REFUSED_IT, WRONG, CRASHED = OUTCOMES

NUMBER, SLOWEST, TALLY = 0, 1, 2
"""Places of a board: the case under way, microseconds of the slowest, and a count an outcome."""

MOST_SECONDS = 0.1
# Odd, so that each process meets it, whichever remainder its cases have.
_CASES_A_LOOK = 499
_NAME = "damaged.db"


@dataclass(frozen=True, slots=True)
class Task:
    """Some cases to try in an empty directory, and the file for what breaks the promise."""

    draw: Draw
    seed: int
    numbers: range
    originals: Originals
    directory: Path
    failures: Path


@dataclass(frozen=True, slots=True)
class Truths:
    """What a file may answer where it answers: what the snapshot does, or the other one."""

    of_small: Answers
    of_other: Answers

    def of(self, damage: Damage) -> Answers:
        """Return the true answers of a damaged file."""
        return self.of_other if damage.is_other else self.of_small


def try_cases(task: Task, board: MutableSequence[int]) -> None:
    """Try one case after the other; the board tells of it even where this process ends."""
    path = str(task.directory / _NAME)
    truths = truths_of(task.originals, path)
    descriptor = os.open(path, os.O_RDWR)
    with open(task.failures, "a", 1, encoding="utf-8") as failures:
        for number in task.numbers:
            if number % _CASES_A_LOOK == 0 and _is_orphan():
                break
            board[NUMBER] = number
            damage = task.draw(task.originals, task.seed, number)
            _write(descriptor, damage.patches, damage.size)
            outcome, findings, seconds = judged(path, truths.of(damage))
            if number % _CASES_A_LOOK == 0 or number == task.numbers[-1]:
                findings = [
                    *findings,
                    *_changed(task.directory, damage.applied(task.originals.small)),
                ]
            _restore(descriptor, damage, task.originals.small)
            board[SLOWEST] = max(board[SLOWEST], round(seconds * 1_000_000))
            board[TALLY + OUTCOMES.index(outcome)] += 1
            failures.writelines(f"{told(task, number, damage)}: {one}\n" for one in findings)
    os.close(descriptor)


def _is_orphan() -> bool:
    """Say whether whoever started this process is gone, and nobody waits for it."""
    parent = multiprocessing.parent_process()
    return parent is not None and not parent.is_alive()


def told(task: Task, number: int, damage: Damage) -> str:
    """Say which case it is, with what runs it again, and what was done to the file."""
    name = task.draw.__module__.removeprefix("campaigns.")
    return f"python -m campaigns.again {name} {task.seed} {number} ({damage.text})"


def truths_of(originals: Originals, path: str) -> Truths:
    """Return what both snapshots answer, and leave the small one at the path."""
    found = []
    for whole in (originals.other, originals.small):
        Path(path).write_bytes(whole)
        found.append(answers_of(path))
    of_other, of_small = found
    assert REFUSED not in [*of_other.values(), *of_small.values()]
    return Truths(of_small, of_other)


def judged(path: str, truth: Answers) -> tuple[str, Sequence[str], float]:
    """Ask a damaged file everything: the outcome, what broke the promise, seconds of work."""
    seconds = 0.0
    # The machine may be busy: a case is slow if it is slow each time.
    for _ in range(4):
        started = time.process_time()
        try:
            found = answers_of(path)
        except Exception as error:  # noqa: BLE001 - whatever comes is what is looked for
            place = traceback.extract_tb(error.__traceback__)[-1]
            name = f"{type(error).__name__} in {place.name}, {os.path.basename(place.filename)}"
            return CRASHED, [f"{name} line {place.lineno}"], time.process_time() - started
        again = time.process_time() - started
        seconds = min(seconds or again, again)
        if seconds <= MOST_SECONDS:
            break
    slow = [f"took {seconds:.3f} s"] if seconds > MOST_SECONDS else []
    if wrong := wrong_ones(found, truth):
        return WRONG, [f"{len(wrong)} wrong answers, such as to: {wrong[0]}", *slow], seconds
    return (REFUSED_IT if REFUSED in found.values() else SAME), slow, seconds


def _write(descriptor: int, patches: Sequence[tuple[int, bytes]], size: int | None) -> None:
    for at, patch in patches:
        os.pwrite(descriptor, patch, at)
    if size is not None:
        os.ftruncate(descriptor, size)


def _restore(descriptor: int, damage: Damage, original: bytes) -> None:
    if damage.size is not None:
        os.pwrite(descriptor, original[damage.size :], damage.size)
    for at, patch in damage.patches:
        os.pwrite(descriptor, original[at : at + len(patch)], at)


def _changed(directory: Path, damaged: bytes) -> list[str]:
    """Return what reading has created or changed, which is to be nothing."""
    found = sorted(os.listdir(directory))
    created = [f"reading created a file: {found}"] if found != [_NAME] else []
    is_as_it_was = (directory / _NAME).read_bytes() == damaged
    return created if is_as_it_was else [*created, "reading changed the file"]
