"""A command imports what it uses and nothing more."""

import subprocess
import sys

import pytest

HEAVY = ("click", "rich", "sqlite_utils")

SCRIPT = """
import sys
from srvstat.cli.main import main
code = main(sys.argv[1:])
print(code, *(name for name in {heavy} if name in sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("arguments", "imported"),
    [
        (["compare", "harbor-city", "old-guard", "--json"], ""),
        (["get", "harbor-city", "--json"], ""),
        (["snapshot", "info", "--json"], ""),
        (["get", "harbor-city", "--table"], " rich"),
    ],
)
def test_a_command_that_reads_imports_neither_sqlite_utils_nor_click(
    arguments: list[str],
    imported: str,
    demo_snapshot: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(heavy=HEAVY), *arguments],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stderr == f"0{imported}\n"
