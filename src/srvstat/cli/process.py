"""Prepare the process: handle signals, and skip slow work at the start."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType, ModuleType

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


_PLUGIN_LOADER = "pydantic.plugin._loader"


def start_lean() -> None:
    """Turn off garbage collection and pydantic's plugins. Call this before any large import."""
    # Imports create many objects and no garbage; collection takes 5 % of the start-up time. Without
    # it, memory did not grow in builds of 100 million rows and batches of 100,000 lines.
    gc.disable()
    _disable_plugins()


def start_serving() -> None:
    """Turn on garbage collection, which long work needs."""
    gc.freeze()  # all objects so far are permanent, so collections need not scan them
    gc.enable()


def _disable_plugins() -> None:
    """Keep pydantic from searching for plugins in the metadata of all installed packages.

    The search takes 10 % of the start-up time, most of it for an import that no setting prevents.
    A plugin could also change how requests are validated. All other attributes of pydantic's loader
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
