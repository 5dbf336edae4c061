"""Start srvstat, as `srvstat` or `python -m srvstat`."""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run() -> None:
    """Run the command line of this process and end it."""
    # Before the imports that take time: whatever interrupts them ends the process at once. There is
    # nothing to clean up yet, and an import may lose an exception or make another one of it.
    _take_over_signals(_end)
    _occupy_standard_descriptors()
    # Both after the signals are taken over.
    from srvstat.cli.start_up import start_lean  # noqa: PLC0415

    start_lean()
    from srvstat.cli.main import main  # noqa: PLC0415

    # From here on by an exception, so that a build removes its draft.
    _take_over_signals(_stop)
    exit_code = main(sys.argv[1:])
    # Nothing is left to do but to take the interpreter apart, which the system does faster.
    os._exit(exit_code)


def _take_over_signals(handler: Callable[[int, FrameType | None], None]) -> None:
    for number in _INTERRUPTIONS:
        # What is ignored from the start stays so: nohup, or a shell's background job.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _end(number: int, _frame: FrameType | None) -> None:
    os._exit(128 + number)


def _stop(number: int, _frame: FrameType | None) -> None:
    # A second signal must not interrupt the clean-up after the first.
    for other in _INTERRUPTIONS:
        signal.signal(other, signal.SIG_IGN)
    raise SystemExit(128 + number)


def _occupy_standard_descriptors() -> None:
    """Put /dev/null where a standard descriptor is closed, so that no file of ours takes its place.

    It is opened the wrong way round: reading and writing still fail, and are noticed.
    """
    for descriptor, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)


if __name__ == "__main__":
    run()
