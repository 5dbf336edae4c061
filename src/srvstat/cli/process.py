"""Prepare the process: handle signals, and avoid slow work at the start."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType, ModuleType

_received: list[int] = []
"""The signal that interrupted a clean-up block. Needed because its exception can be swallowed."""

_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def take_over_signals() -> None:
    """Make interruptions end the process without a traceback."""
    for number in _INTERRUPTIONS:
        # Signals that are ignored from the start remain ignored, as under nohup or in a shell's
        # background job.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end_process)


@contextmanager
def allow_cleanup() -> Iterator[None]:
    """Make an interruption raise SystemExit in the block, so that the block can clean up.

    The block must not import anything, because an import can swallow or replace the exception.
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
    """Return the exit code for the signal that interrupted a clean-up block, or None."""
    return 128 + _received[0] if _received else None


def _end_process(number: int, _frame: FrameType | None) -> None:
    os._exit(128 + number)


def _raise_exit(number: int, _frame: FrameType | None) -> None:
    # A second signal must not interrupt the clean-up after the first.
    for other in _INTERRUPTIONS:
        signal.signal(other, signal.SIG_IGN)
    _received.append(number)
    raise SystemExit(128 + number)


_PLUGIN_LOADER = "pydantic.plugin._loader"


def start_lean() -> None:
    """Turn off garbage collection and pydantic's plugins. Call this before any large import."""
    # Imports create many objects and no garbage, and collection takes 5 % of the start-up time.
    # Without collection, memory did not grow in builds of 100 million rows and batches of 100,000
    # lines.
    gc.disable()
    # By default, NumPy's matrix library starts threads, and ends the process at the thread limit.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _disable_plugins()


def start_serving() -> None:
    """Turn on garbage collection, which long-running work needs."""
    gc.freeze()  # all objects so far are permanent, so collections need not scan them
    gc.enable()


def _disable_plugins() -> None:
    """Keep pydantic from searching for plugins in the metadata of all installed packages.

    The search takes 10 % of the start-up time, mostly for an import that no setting prevents. A
    plugin could also change how requests are validated. All other attributes of pydantic's loader
    come from the real module.
    """
    stub = ModuleType(_PLUGIN_LOADER)

    def load_attribute(name: str) -> object:
        if name.startswith("__"):  # Python asks any module for these
            raise AttributeError(name)
        del sys.modules[_PLUGIN_LOADER]
        return getattr(import_module(_PLUGIN_LOADER), name)

    vars(stub).update(get_plugins=tuple, __getattr__=load_attribute)
    sys.modules[_PLUGIN_LOADER] = stub
