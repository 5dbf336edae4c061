"""Run a harness under the fuzzer: `python fuzz_target.py NAME`, then the options of libFuzzer.

It stands beside the campaigns, whose package would import srvstat before it can be instrumented.
"""

import sys
from importlib import import_module
from typing import Any


def fuzz(name: str, options: list[str]) -> None:
    """Give a harness bytes that reach more and more of srvstat, until an option ends it."""
    # Not installed with the other tools, so nothing is known of its types.
    atheris: Any = import_module("atheris")
    with atheris.instrument_imports(include=["srvstat"]):
        harnesses = import_module("campaigns.harnesses").HARNESSES
    atheris.Setup([sys.argv[0], *options], harnesses[name])
    atheris.Fuzz()


if __name__ == "__main__":
    fuzz(sys.argv[1], sys.argv[2:])
