"""The command that prints the OpenAPI document."""

import json
import subprocess
import sys

from conftest import ROOT, Cli, srvstat

KEPT = ROOT / "docs" / "openapi.json"


def test_the_document_is_printed_as_it_is_kept(cli: Cli) -> None:
    ran = cli("openapi")

    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout == KEPT.read_bytes()


def test_the_document_is_indented_utf_8_that_ends_with_a_newline(cli: Cli) -> None:
    text = cli("openapi").stdout.decode("utf-8")

    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
    assert list(json.loads(text))[:2] == ["openapi", "info"]


def test_the_document_is_the_same_everywhere() -> None:
    other = {
        "PYTHONHASHSEED": "7",
        "TZ": "Asia/Kolkata",
        "LC_ALL": "C",
        "PYTHONIOENCODING": "ascii",
    }

    assert srvstat("openapi", env=other).stdout == KEPT.read_bytes()


def test_the_document_is_the_same_without_docstrings() -> None:
    done = subprocess.run(
        [sys.executable, "-OO", "-m", "srvstat", "openapi"], capture_output=True, check=True
    )

    assert done.stdout == KEPT.read_bytes()


def test_the_document_takes_no_argument(cli: Cli) -> None:
    ran = cli("openapi", "more")

    assert (ran.exit_code, ran.stdout) == (2, b"")
