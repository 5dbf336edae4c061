"""The registry names functions and extensions for each kind, and loads no module early."""

import subprocess
import sys
from importlib import import_module

import pytest

from srvstat.sources.registry import KINDS, Kind


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_kind_names_the_functions_that_read_it(kind: Kind) -> None:
    assert kind.observations or kind.records
    for name in filter(None, (kind.observations, kind.records, kind.sample)):
        module, _, function = name.partition(":")
        assert callable(getattr(import_module(module), function))


def test_a_reader_is_loaded_with_the_first_source_of_its_kind() -> None:
    kinds = [kind.observations for kind in KINDS.values() if kind.observations]
    readers = {name.partition(":")[0] for name in kinds}
    code = (
        "import sys; from srvstat.sources.source import Source; print(*sys.modules);"
        "Source.from_name('-', 'csv'); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = (set(line.split()) for line in done.stdout.splitlines())

    assert not readers & before
    assert readers & after == {"srvstat.sources.csv"}
