"""Skip slow work at the start that no command needs."""

import gc
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

_PLUGIN_LOADER = "pydantic.plugin._loader"


def start_lean() -> None:
    """Turn off garbage collection and pydantic's plugins. Call this before any large import."""
    # Imports create many objects and no garbage; collection takes 5 % of the start-up time.
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

    def load_attribute(name: str) -> Any:
        if name.startswith("__"):  # Python asks any module for these
            raise AttributeError(name)
        del sys.modules[_PLUGIN_LOADER]
        return getattr(import_module(_PLUGIN_LOADER), name)

    vars(stub).update(get_plugins=tuple, __getattr__=load_attribute)
    sys.modules[_PLUGIN_LOADER] = stub
