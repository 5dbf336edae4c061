"""Run a harness under the fuzzer: `python fuzz_target.py NAME [LIBFUZZER OPTION…]`.

Not in the package of campaigns, which would import srvstat before it can be instrumented.
"""

import sys
from importlib import import_module
from typing import Any


def fuzz(name: str, options: list[str]) -> None:
    """Run the fuzzer on a harness until one of its limits ends it."""
    # Not installed by default, so without types.
    atheris: Any = import_module("atheris")
    with atheris.instrument_imports(include=["srvstat"]):
        harnesses = import_module("campaigns.harnesses").HARNESSES
    atheris.Setup([sys.argv[0], *options], harnesses[name])
    atheris.Fuzz()


if __name__ == "__main__":
    fuzz(sys.argv[1], sys.argv[2:])
