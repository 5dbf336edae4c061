"""Handle SIGINT, SIGTERM and SIGHUP: end the process, after a command has cleaned up."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_received: list[int] = []
"""The signal that interrupted a clean-up block. Its exception can get lost."""

_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def take_over_signals() -> None:
    """Make interruptions end the process without a traceback."""
    for number in _INTERRUPTIONS:
        # Signals ignored from the start stay ignored: nohup, or a shell's background job.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end_process)


@contextmanager
def allow_cleanup() -> Iterator[None]:
    """Make an interruption raise SystemExit in the block, so that the block can clean up.

    The block must not import anything: an import can swallow or replace the exception.
    """
    _received.clear()
    ours = [number for number in _INTERRUPTIONS if signal.getsignal(number) is _end_process]
    for number in ours:
        signal.signal(number, _raise_exit)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, _end_process)


def get_interruption_code() -> int | None:
    """Return the exit code of the signal that interrupted a clean-up block; None without one."""
    return 128 + _received[0] if _received else None


def _end_process(number: int, _frame: FrameType | None) -> None:
    os._exit(128 + number)


def _raise_exit(number: int, _frame: FrameType | None) -> None:
    # A second signal must not interrupt the clean-up after the first.
    for other in _INTERRUPTIONS:
        signal.signal(other, signal.SIG_IGN)
    _received.append(number)
    raise SystemExit(128 + number)
