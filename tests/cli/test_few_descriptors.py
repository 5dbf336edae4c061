"""Every command reports a limit on open files that is too low."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.snapshots import WEEK

pytestmark = pytest.mark.slow

SRVSTAT = [sys.executable, "-m", "srvstat"]
STANDARD, NEEDED = 3, 16
TOO_FEW = "error: open files: the limit leaves fewer than 16 for srvstat; raise it with ulimit -n\n"

COMMANDS = [
    ["get", "harbor-city", "--json"],
    ["compare", "harbor-city", "old-guard", "--table"],
    [*WEEK, "--rejects", "rejects.ndjson"],
    ["snapshot", "draft-servers", "--game", "game_a", "--observations", "week.csv"],
    ["snapshot", "verify", "--table"],
    ["demo", "demo"],
    ["openapi"],
]


def run_with_limit(limit: int, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh", *SRVSTAT, *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
def test_a_command_works_or_reports_the_limit(
    command: list[str], demo_snapshot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)
    before = sorted(Path.cwd().iterdir())

    for limit in (6, 9, STANDARD + NEEDED - 1):
        refused = run_with_limit(limit, *command)
        assert (refused.returncode, refused.stdout, refused.stderr) == (2, "", TOO_FEW)
    assert sorted(Path.cwd().iterdir()) == before

    done = run_with_limit(STANDARD + NEEDED, *command)
    assert (done.returncode, "error" in done.stderr) == (0, False)


def test_serve_reports_the_limit(demo_snapshot: str) -> None:
    refused = run_with_limit(6, "serve", "--port", "0", "--snapshot", demo_snapshot)

    assert (refused.returncode, refused.stdout, refused.stderr) == (2, "", TOO_FEW)
