"""What a command need not pay for when it starts. Used by the command line only."""

import gc
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

_PLUGIN_LOADER = "pydantic.plugin._loader"


def start_lean() -> None:
    """Leave out, before anything large is imported, what takes time and serves no command."""
    # Starting makes many objects and no garbage; looking for some takes a twentieth of the time.
    gc.disable()
    _leave_out_plugins()


def start_serving() -> None:
    """Enable the garbage collector, which a process that runs for long needs."""
    gc.freeze()  # the objects made so far stay, and need not be scanned
    gc.enable()


def _leave_out_plugins() -> None:
    """Spare pydantic the search for plugins, which reads the metadata of every package installed.

    It takes a tenth of the time, most of it for an import that no setting leaves out. A plugin
    could change how requests are judged, too. Whatever else is asked of pydantic's loader, now or
    in a later version, is the real one's.
    """
    fallback = ModuleType(_PLUGIN_LOADER)

    def real(name: str) -> Any:
        if name.startswith("__"):  # what Python itself asks of any module
            raise AttributeError(name)
        del sys.modules[_PLUGIN_LOADER]
        return getattr(import_module(_PLUGIN_LOADER), name)

    vars(fallback).update(get_plugins=tuple, __getattr__=real)
    sys.modules[_PLUGIN_LOADER] = fallback
