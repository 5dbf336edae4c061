"""What an interruption does: end the process, or have a command take back what it began."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_stopped_by: list[int] = []
"""The signal that an interruption came by: what is raised for it can get lost on its way."""

_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def take_over_signals() -> None:
    """End the process without a traceback when it is interrupted."""
    for number in _INTERRUPTIONS:
        # What is ignored from the start stays so: nohup, or a shell's background job.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


@contextmanager
def allow_cleanup() -> Iterator[None]:
    """Let an interruption of the block be an exception, so that what it began is taken back.

    The block imports nothing: an import may lose an exception, or make another one of it.
    """
    _stopped_by.clear()
    ours = [number for number in _INTERRUPTIONS if signal.getsignal(number) is _end]
    for number in ours:
        signal.signal(number, _stop)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, _end)


def interrupted() -> int | None:
    """Return the exit code of an interruption that a block was to take back; None without any."""
    return 128 + _stopped_by[0] if _stopped_by else None


def _end(number: int, _frame: FrameType | None) -> None:
    os._exit(128 + number)


def _stop(number: int, _frame: FrameType | None) -> None:
    # A second signal must not interrupt the clean-up after the first.
    for other in _INTERRUPTIONS:
        signal.signal(other, signal.SIG_IGN)
    _stopped_by.append(number)
    raise SystemExit(128 + number)
