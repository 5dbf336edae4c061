"""Restore the signals of child processes."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def restore_signals() -> Iterator[None]:
    """Let child processes started in the block receive signals that a background job ignores."""
    numbers = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, signal.SIG_DFL) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
