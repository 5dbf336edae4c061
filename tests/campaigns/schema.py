"""Send requests that Schemathesis generates from the OpenAPI document to a real service.

They are valid or invalid, also by unknown methods, keys and content types. Each answer must match
the document.
"""

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path
from typing import Any

from campaigns.campaign import Campaign, Result
from srvstat.contract.errors import ApiError, InvalidRequestError
from support.process import serve
from support.quick_start import start_quick_srvstat

_DOCUMENT = Path(__file__).parents[2] / "src" / "srvstat" / "contract" / "openapi.json"
_KEY = "a-good-key"
_ACCESS = f"""\
[plans.everything]
operations = ["get-server", "compare-servers"]
ranges = ["24h", "7d", "30d", "90d", "1y"]

[[keys]]
sha256 = "{hashlib.sha256(_KEY.encode()).hexdigest()}"
plan = "everything"
"""

# By default, 404 is also accepted as the answer to an invalid request.
_SETTINGS = """\
[checks.positive_data_acceptance]
expected-statuses = [200, 404]
[checks.negative_data_rejection]
expected-statuses = [400, 401, 405]
"""

_PHASES = "examples,coverage,fuzzing"
_OPERATIONS_WITH_INPUT = 3
"""Number of operations with parameters or a body; the health check has none."""

_EXPECTED_STATUSES = (200, 400, 401, 404, 405)
"""Statuses that must occur, or the requests were not varied enough."""

# The document has one schema for all errors, without the status of each code.
_STATUSES = {kind.code: {kind.http_status} for kind in ApiError.__subclasses__()}
_STATUSES[InvalidRequestError.code] |= {404, 405}  # a path or a method that does not exist


def run(seed: int, count: int) -> Result:
    """Send at least `count` requests to a service over the demo's snapshot."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        demo = [f"{start_quick_srvstat()}/srvstat", "demo", "demo"]
        subprocess.run(demo, cwd=directory, check=True, capture_output=True)
        access = directory / "access.toml"
        access.write_text(_ACCESS, encoding="utf-8")
        snapshot = directory / "demo" / "snapshot.db"
        with serve(snapshot, "--access", str(access)) as service:
            found = _send_requests(service.url, seed, count, directory)
            service.stop()  # completes its log
            log = service.read_log()
    answered = Counter(entry["status"] for entry in log if "status" in entry)
    return Result(
        answered.total(),
        {f"answered {status}": answered[status] for status in sorted(answered)},
        (
            *found,
            *_check_log(log),
            *(f"never {status}" for status in _EXPECTED_STATUSES if not answered[status]),
        ),
    )


def _send_requests(url: str, seed: int, count: int, directory: Path) -> Sequence[str]:
    """Generate and send the requests; return the problems with their answers."""
    report = directory / "report.json"
    settings = directory / "settings.toml"
    settings.write_text(_SETTINGS, encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", settings),
            *("run", _DOCUMENT, "--url", url),
            *("--header", f"X-Gateway-Key: {_KEY}", "--seed", str(seed), "--phases", _PHASES),
            *("--max-examples", str(ceil(count / _OPERATIONS_WITH_INPUT)), "--checks", "all"),
            *("--generation-database", "none", "--suppress-health-check", "all"),
            *("--output-sanitize", "false", "--no-color", "--request-timeout", "30"),
            *("--report", "json", "--report-json-path", report),
        ],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    ended = json.loads(report.read_bytes()) if report.exists() else {}
    if done.returncode == 0 and ended.get("stop_reason") == "completed":
        return ()
    text = done.stdout.partition("= FAILURES =")[2].partition("= SUMMARY =")[0]
    # Each failure ends with a command that sends the request again.
    found = re.split(r"^\d+\. Test Case ID: ", text, flags=re.MULTILINE)[1:]
    return found or [f"Schemathesis ended with {done.returncode}: {done.stdout}{done.stderr}"]


def _check_log(log: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield events that the service should not log, and errors with the wrong status."""
    for entry in log:
        if entry.get("status", 0) >= 500 or entry.get("event", "stopped") != "stopped":
            yield f"in the log: {json.dumps(entry)}"
        if "code" in entry and entry["status"] not in _STATUSES[entry["code"]]:
            yield f"in the log, the wrong status for the code: {json.dumps(entry)}"


CAMPAIGN = Campaign(
    name="schema",
    promise="every answer of the service matches its OpenAPI document",
    run=run,
    short=10,
    long=20_000,
    unit="requests",
)
