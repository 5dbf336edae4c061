"""Damage a small snapshot, ask it every question, restore it, and repeat."""

import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, MutableSequence, Sequence
from dataclasses import dataclass
from pathlib import Path

from campaigns.damage_kinds import Damage, Originals
from campaigns.questions import REFUSED, Answers, ask_everything, find_wrong_answers

Draw = Callable[[Originals, int, int], Damage]
"""Returns the damage of a case from the seed and the number of the case."""

OUTCOMES = ("the same answers", "refused", "wrong", "crashed")
SAME, REFUSED_IT, WRONG, CRASHED = OUTCOMES

NUMBER, SLOWEST, TALLY = 0, 1, 2
"""Positions in a board: the current case, the microseconds of the slowest one, and the first of the
counts, one per outcome."""

MAX_SECONDS = 0.1
# Odd, so that both processes check: one has the even cases, the other the odd ones.
_CHECK_EVERY = 499
_NAME = "damaged.db"


@dataclass(frozen=True, slots=True)
class Task:
    """Cases to run in an empty directory, and the file to write failures to."""

    draw: Draw
    seed: int
    numbers: range
    originals: Originals
    directory: Path
    failures: Path


@dataclass(frozen=True, slots=True)
class Truths:
    """The true answers of the small snapshot and of the other one."""

    of_small: Answers
    of_other: Answers

    def select(self, damage: Damage) -> Answers:
        """Return the true answers of a damaged file."""
        return self.of_other if damage.is_other else self.of_small


def run_cases(task: Task, board: MutableSequence[int]) -> None:
    """Run the cases of a task.

    The board is shared memory: it keeps the state if this process crashes.
    """
    path = str(task.directory / _NAME)
    truths = read_truths(task.originals, path)
    descriptor = os.open(path, os.O_RDWR)
    with open(task.failures, "a", 1, encoding="utf-8") as failures:
        for number in task.numbers:
            if number % _CHECK_EVERY == 0 and _is_orphan():
                break
            board[NUMBER] = number
            damage = task.draw(task.originals, task.seed, number)
            _write_damage(descriptor, damage.patches, damage.size)
            outcome, findings, seconds = run_case(path, truths.select(damage))
            if number % _CHECK_EVERY == 0 or number == task.numbers[-1]:
                findings = [
                    *findings,
                    *_find_changes(task.directory, damage.apply(task.originals.small)),
                ]
            _restore_file(descriptor, damage, task.originals.small)
            board[SLOWEST] = max(board[SLOWEST], round(seconds * 1_000_000))
            board[TALLY + OUTCOMES.index(outcome)] += 1
            failures.writelines(
                f"{describe_case(task, number, damage)}: {one}\n" for one in findings
            )
    os.close(descriptor)


def _is_orphan() -> bool:
    """Return whether the parent process has ended."""
    parent = multiprocessing.parent_process()
    return parent is not None and not parent.is_alive()


def describe_case(task: Task, number: int, damage: Damage) -> str:
    """Return the command that runs a case again, and its damage."""
    name = task.draw.__module__.removeprefix("campaigns.")
    return f"python -m campaigns.rerun {name} {task.seed} {number} ({damage.text})"


def read_truths(originals: Originals, path: str) -> Truths:
    """Read the answers of both snapshots; leaves the small snapshot at the path."""
    found = []
    for whole in (originals.other, originals.small):
        Path(path).write_bytes(whole)
        found.append(ask_everything(path))
    of_other, of_small = found
    assert REFUSED not in [*of_other.values(), *of_small.values()]
    return Truths(of_small, of_other)


def run_case(path: str, truth: Answers) -> tuple[str, Sequence[str], float]:
    """Ask a damaged file every question; return the outcome, the failures and the CPU seconds."""
    seconds = 0.0
    # The machine may be busy: a case is slow only if it is slow every time.
    for _ in range(4):
        started = time.process_time()
        try:
            found = ask_everything(path)
        except Exception as error:  # noqa: BLE001 - any exception is a failure of the case
            place = traceback.extract_tb(error.__traceback__)[-1]
            name = f"{type(error).__name__} in {place.name}, {os.path.basename(place.filename)}"
            return CRASHED, [f"{name} line {place.lineno}"], time.process_time() - started
        again = time.process_time() - started
        seconds = min(seconds or again, again)
        if seconds <= MAX_SECONDS:
            break
    slow = [f"took {seconds:.3f} s"] if seconds > MAX_SECONDS else []
    if wrong := find_wrong_answers(found, truth):
        return WRONG, [f"{len(wrong)} wrong answers; the first: {wrong[0]}", *slow], seconds
    return (REFUSED_IT if REFUSED in found.values() else SAME), slow, seconds


def _write_damage(descriptor: int, patches: Sequence[tuple[int, bytes]], size: int | None) -> None:
    for at, patch in patches:
        os.pwrite(descriptor, patch, at)
    if size is not None:
        os.ftruncate(descriptor, size)


def _restore_file(descriptor: int, damage: Damage, original: bytes) -> None:
    if damage.size is not None:
        os.pwrite(descriptor, original[damage.size :], damage.size)
    for at, patch in damage.patches:
        os.pwrite(descriptor, original[at : at + len(patch)], at)


def _find_changes(directory: Path, damaged: bytes) -> list[str]:
    """Return files that reading created or changed; there must be none."""
    found = sorted(os.listdir(directory))
    created = [f"reading created a file: {found}"] if found != [_NAME] else []
    is_unchanged = (directory / _NAME).read_bytes() == damaged
    return created if is_unchanged else [*created, "reading changed the file"]
