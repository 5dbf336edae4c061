"""Start the command line, as `srvstat` or `python -m srvstat`."""

import os
import sys
import warnings
from contextlib import suppress

from srvstat.cli.process import take_over_signals

_DESCRIPTORS = 16
"""The minimum number of free file descriptors. A build uses at most 7."""

_TOO_FEW = (
    f"error: open files: the limit leaves fewer than {_DESCRIPTORS} for srvstat;"
    " raise it with ulimit -n\n"
)
_USAGE_ERROR = 2
"""The exit code for too few descriptors: a usage error."""


def run() -> None:
    """Run the command line, then end the process with its exit code."""
    # This precedes the slow imports, so that a signal during them is handled.
    take_over_signals()
    occupy_standard_descriptors()
    _check_descriptors()
    from srvstat.cli.process import start_lean  # noqa: PLC0415 - see above

    start_lean()
    from srvstat.cli.app import main  # noqa: PLC0415 - see above
    from srvstat.cli.output import report  # noqa: PLC0415 - see above

    warnings.showwarning = lambda message, *_: report(f"warning: {message}")
    exit_code = main(sys.argv[1:])
    # Skip the interpreter's own clean-up: it takes time and changes nothing.
    os._exit(exit_code)


def occupy_standard_descriptors() -> None:
    """Open /dev/null for each closed standard descriptor, so that no other file gets its number.

    Each is opened in the wrong mode (standard output for reading), so that using it still fails.
    """
    for descriptor, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)


def _check_descriptors() -> None:
    """End the process if the limit on open files is too low.

    Without this check, an import or a data file would exceed the limit, and the error would name
    neither the limit nor the remedy.
    """
    opened = []
    try:
        for _ in range(_DESCRIPTORS):
            opened.append(os.dup(2))  # noqa: PERF401 - all are closed, also after an error
    except OSError:
        with suppress(OSError):
            os.write(2, _TOO_FEW.encode())
        os._exit(_USAGE_ERROR)
    finally:
        for descriptor in opened:
            os.close(descriptor)


if __name__ == "__main__":
    run()
