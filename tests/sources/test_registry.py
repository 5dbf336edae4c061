"""The registry names a reader and extensions for each format, and loads no reader early."""

import subprocess
import sys
from importlib import import_module

import pytest

from srvstat.sources.registry import EXTENSIONS, FORMATS, Format


@pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS)
def test_a_format_names_a_module_that_reads(format: Format) -> None:
    assert callable(import_module(format.reader).read)


def test_an_extension_belongs_to_one_format() -> None:
    extensions = [each for extensions, _ in FORMATS.values() for each in extensions]

    assert len(extensions) == len(EXTENSIONS)
    assert all(each.startswith(".") and each == each.lower() for each in extensions)


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
