"""Run the examples in the docstrings of the Python API, with the snapshot of the demo."""

import doctest
import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import srvstat


def list_public() -> Iterator[tuple[str, object]]:
    """Yield each public function, class and method that needs an example, with its name."""
    for name in ("open_snapshot", "build", "Snapshot", "ApiError"):
        yield name, getattr(srvstat, name)
    for name, member in vars(srvstat.Snapshot).items():
        if not name.startswith("_") and inspect.isfunction(member):
            yield f"Snapshot.{name}", member


@pytest.mark.parametrize(
    ("name", "subject"), [pytest.param(*each, id=each[0]) for each in list_public()]
)
def test_the_example_of_a_docstring_runs(
    name: str, subject: object, demo_snapshot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkdir("srvstat-demo")
    Path("srvstat-demo/snapshot.db").write_bytes(Path(demo_snapshot).read_bytes())
    shown: list[str] = []

    with srvstat.open_snapshot("srvstat-demo/snapshot.db") as snapshot:
        names = {"snapshot": snapshot, "srvstat": srvstat, "polars": pl}
        (test,) = doctest.DocTestFinder(recurse=False).find(subject, name, globs=names)
        doctest.DocTestRunner(verbose=False).run(test, out=shown.append)

    assert test.examples
    assert not shown, "".join(shown)


def test_every_public_name_has_a_docstring_without_numbers_of_decisions() -> None:
    documented = [getattr(srvstat, name) for name in srvstat.__all__ if name != "__version__"]

    for one in [srvstat, *documented]:
        text = inspect.getdoc(one) or ""
        assert text, one
        assert not re.search(r"\bD[0-9]+\b", text), one
