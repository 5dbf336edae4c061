"""Signals in the children of tests."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def heard_signals() -> Iterator[None]:
    """Let children that start in the block hear signals that a background job has to ignore."""
    numbers = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, signal.SIG_DFL) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
