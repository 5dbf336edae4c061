"""Start srvstat, as `srvstat` or `python -m srvstat`."""

import os
import sys
from contextlib import suppress

from srvstat.cli.interruptions import take_over_signals

_DESCRIPTORS = 16
"""How many descriptors must be free at the start. The build that needs most has 7 at once."""

_TOO_FEW = (
    f"error: open files: the limit leaves srvstat fewer than {_DESCRIPTORS};"
    " raise it with ulimit -n\n"
)
_USAGE_ERROR = 2


def run() -> None:
    """Run the command line of this process and end it."""
    # Before the imports that take time.
    take_over_signals()
    _occupy_standard_descriptors()
    _check_descriptors()
    # Both after the signals are taken over.
    from srvstat.cli.start_up import start_lean  # noqa: PLC0415

    start_lean()
    from srvstat.cli.main import main  # noqa: PLC0415

    exit_code = main(sys.argv[1:])
    # Nothing is left to do but to take the interpreter apart, which the system does faster.
    os._exit(exit_code)


def _occupy_standard_descriptors() -> None:
    """Put /dev/null where a standard descriptor is closed, so that no file of ours takes its place.

    It is opened the wrong way round: reading and writing still fail, and are noticed.
    """
    for descriptor, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)


def _check_descriptors() -> None:
    """End the process where the limit on open files is too low, before an import fails by it."""
    opened = []
    try:
        for _ in range(_DESCRIPTORS):
            opened.append(os.dup(2))  # noqa: PERF401 - those opened before an error are closed
    except OSError:
        with suppress(OSError):
            os.write(2, _TOO_FEW.encode())
        os._exit(_USAGE_ERROR)
    finally:
        for descriptor in opened:
            os.close(descriptor)


if __name__ == "__main__":
    run()
