"""The command `openapi`."""

import json

from conftest import ROOT, Cli, srvstat

FILE = ROOT / "src" / "srvstat" / "contract" / "openapi.json"


def test_the_document_is_printed_byte_for_byte(cli: Cli) -> None:
    ran = cli("openapi")

    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout == FILE.read_bytes()


def test_the_document_is_indented_utf_8_that_ends_with_a_newline(cli: Cli) -> None:
    text = cli("openapi").stdout.decode("utf-8")

    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
    assert list(json.loads(text))[:2] == ["openapi", "info"]


def test_the_document_is_printed_in_utf_8_under_any_locale() -> None:
    other = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}

    assert srvstat("openapi", env=other).stdout == FILE.read_bytes()


def test_openapi_takes_no_argument(cli: Cli) -> None:
    ran = cli("openapi", "more")

    assert (ran.exit_code, ran.stdout) == (2, b"")
