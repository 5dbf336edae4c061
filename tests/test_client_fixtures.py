"""Run the tests in docs/how-to/test-a-client.md, which use the fixtures of srvstat.testing."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture
def written_tests(tmp_path: Path) -> Path:
    """Write the files of the page to a directory, and return it."""
    text = (ROOT / "docs/how-to/test-a-client.md").read_text(encoding="utf-8")
    found = re.findall(r"<!-- example: (\w+\.py) -->\n```python\n(.*?)```", text, re.DOTALL)
    for name, code in found:
        (tmp_path / name).write_text(code, encoding="utf-8")
    return tmp_path


def run_pytest(directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    options = ("-q", "--basetemp=temporary", "-p", "no:cacheprovider")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=directory,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_service_runs_until_the_end_of_the_tests(written_tests: Path) -> None:
    # Neither a developer's own settings nor their files may change what is served.
    (written_tests / "starlette.py").write_text("raise ImportError('not the one of the service')")
    done = run_pytest(written_tests, SRVSTAT_SNAPSHOT="missing.db", SRVSTAT_ACCESS="missing.toml")

    assert "4 passed" in done.stdout, done.stdout
    (log,) = written_tests.glob("temporary/srvstat-service0/log.ndjson")
    *requests, last = map(json.loads, log.read_text(encoding="ascii").splitlines())
    assert [one.get("status") for one in requests] == [
        *(200, 400, 204, 200),
        *(503, None, 200),
        *(200, 200),
    ]
    assert last["event"] == "stopped"


def test_without_the_extra_the_tests_fail_with_the_remedy(written_tests: Path) -> None:
    missing = "raise ModuleNotFoundError('not installed', name='uvicorn')"
    (written_tests / "uvicorn.py").write_text(missing)

    done = run_pytest(written_tests, PYTHONPATH=".")

    remedy = "the package uvicorn is missing; run pip install 'srvstat[serve]'"
    assert f"srvstat serve: error: serve: {remedy}" in done.stdout
    assert "1 failed, 3 errors" in done.stdout
    assert "Traceback" not in done.stdout


def test_a_rule_that_is_invalid_or_has_unused_answers_is_reported(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["srvstat.testing"]\n')
    (tmp_path / "test_rules.py").write_text(RULES, encoding="utf-8")

    done = run_pytest(tmp_path)

    assert "3 passed" in done.stdout, done.stdout


RULES = """
import urllib.request
import warnings
import pytest

def get(service, path):
    key = {"X-Gateway-Key": "any"}
    request = urllib.request.Request(f"{service.api}/servers/{path}", headers=key)
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        return error.code

def test_unused_answers_cause_a_warning(srvstat_service):
    unused = r"^fail: 1 of 2 answers unused; too few requests matched$"
    with pytest.warns(match=unused), srvstat_service.fail("getServer", ["500", "ok"]):
        assert get(srvstat_service, "old-guard") == 500
    with warnings.catch_warnings(action="error"):
        with srvstat_service.fail(), srvstat_service.fail():
            assert get(srvstat_service, "old-guard") == 500
        with pytest.raises(LookupError), srvstat_service.fail():
            raise LookupError

def test_a_server_may_have_its_namespace(srvstat_service):
    with srvstat_service.fail(server="id:old-guard"):
        assert get(srvstat_service, "night-shift") == 200
        assert get(srvstat_service, "old-guard") == 500
    with srvstat_service.fail(server="cfxId:nf8q1z"):
        assert get(srvstat_service, "nf8q1z?by=cfxId") == 500

def test_an_error_shows_the_value(srvstat_service):
    with pytest.raises(ValueError, match='"compareServer" is not one of getServer'):
        with srvstat_service.fail("compareServer"):
            pass
"""
