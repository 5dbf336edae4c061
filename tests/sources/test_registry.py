"""The registry names a reader and endings for each format, and loads no reader early."""

import subprocess
import sys
from importlib import import_module

import pytest

from srvstat.sources.registry import ENDINGS, FORMATS, Format


@pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS)
def test_a_format_names_a_module_that_reads(format: Format) -> None:
    assert callable(import_module(format.reader).read)


def test_an_ending_belongs_to_one_format() -> None:
    endings = [ending for endings, _ in FORMATS.values() for ending in endings]

    assert len(endings) == len(ENDINGS)
    assert all(ending.startswith(".") and ending == ending.lower() for ending in endings)


def test_a_reader_is_loaded_with_the_first_source_of_its_format() -> None:
    readers = {reader for _, reader in FORMATS.values()}
    code = (
        "import sys; from srvstat.sources.observations import Source; print(*sys.modules);"
        "Source.from_name('-', 'csv'); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = (set(line.split()) for line in done.stdout.splitlines())

    assert not readers & before
    assert readers & after == {FORMATS["csv"].reader}
