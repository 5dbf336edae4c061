"""Ask a file every question of the command line, in this process."""

import os
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

from srvstat.cli.main import main
from support.process import replace_descriptor

_REFUSED = 3
_WINDOW = ("--range", "36h", "--json", "--snapshot")

# Every row is read by some question, and few rows by two.
QUESTIONS: tuple[Sequence[str], ...] = (
    *(["get", name, "--json", "--snapshot"] for name in ("uneven", "cfxId:x-silent", "once")),
    *(["get", name, "--json", "--snapshot"] for name in ("unknown", "hidden", "x-busy")),
    ["compare", "cfxId:x-busy", "cfxId:busy", "daily", "--range=1y", "--json", "--snapshot"],
    ["compare", "daily", "away", "--at", "2026-01-28T00:00:00Z", "--json", "--snapshot"],
    ["compare", "busy", "wide", "uneven", "away", "--range=90d", "--table", "--snapshot"],
    [
        "stats",
        "busy",
        "daily",
        "--range=40d",
        "--quantile=0.95",
        "--above=9",
        "--json",
        "--snapshot",
    ],
    ["top", "--by", "growth", *_WINDOW],
    ["growth", "busy", "wide", "--tz=Asia/Tokyo", *_WINDOW],
    ["peak-hours", "uneven", "--tz=Asia/Tokyo", *_WINDOW],
    ["history", "daily", "uneven", *_WINDOW],
    ["integrity", "busy", *_WINDOW],
    ["servers", "--sort=coverage", "--limit=3", "--json", "--snapshot"],
    ["snapshot", "info", "--json"],
)
"""Commands about the small snapshot, each without its last argument: the file."""


class Answer(NamedTuple):
    """What a command ended with."""

    exit_code: int
    stdout: bytes
    stderr: str


def ask_everything(path: str) -> list[Answer]:
    """Ask a file every question."""
    return [_ask([*question, path]) for question in QUESTIONS]


def _ask(arguments: list[str]) -> Answer:
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        with replace_descriptor(1, stdout.fileno()), replace_descriptor(2, stderr.fileno()):
            exit_code = main(arguments)
        stdout.seek(0)
        stderr.seek(0)
        return Answer(exit_code, stdout.read(), os.fsdecode(stderr.read()))


def is_refusal(answer: Answer, path: str) -> bool:
    """Return whether an answer is one line that says why the file can't be used."""
    *lines, rest = answer.stderr.split("\n")
    is_one_line = len(lines) == 1 and not rest and lines[0].startswith(f"error: {path}: ")
    return answer.exit_code == _REFUSED and is_one_line


def find_wrong_answers(found: Sequence[Answer], truth: Sequence[Answer], path: str) -> list[str]:
    """Return the questions with an answer that is neither true nor a refusal.

    A refused history may have printed the rows before the damage.
    """
    return [
        f"{' '.join(question)}: {answer!r:.300}"
        for question, answer, right in zip(QUESTIONS, found, truth, strict=True)
        if answer[:2] != right[:2]
        and not (is_refusal(answer, path) and right.stdout.startswith(answer.stdout))
    ]
