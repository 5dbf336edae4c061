"""The curl commands of the page of `serve --explore`, run in a shell."""

import json
import os
import shutil
import subprocess
from importlib.resources import files

import pytest

from asgi.small_service import COMPARED, SERVER_A, serve_small
from conftest import ROOT
from support.http import ERRORS

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(
        not (shutil.which("node") and shutil.which("curl")), reason="needs node and curl"
    ),
]

PROGRAM = ROOT / "tests" / "external" / "programs" / "explore_commands.mjs"
SCRIPT = files("srvstat.render.web") / "exchange.js"
HOSTILE = ["a'b", "'; exit 7; '", '"$(exit 7)"', "`exit 7`", "a\nb", "\\", "@/etc/passwd", "[1-3]"]


def test_a_command_asks_what_the_page_asked_however_hostile_the_identifiers() -> None:
    expected = {("a", "b"): COMPARED, ("a",): SERVER_A}
    expected |= {(one,): ERRORS["INVALID_REQUEST"] for one in HOSTILE}
    expected |= {("a", one): ERRORS["INVALID_REQUEST"] for one in HOSTILE}
    cases = [(ids, key) for ids in expected for key in ("any 'key'", None)]
    with serve_small() as service:
        printed = subprocess.run(
            ["node", str(PROGRAM), str(SCRIPT), service.url],
            input=json.dumps([(ids, "30d", key) for ids, key in cases]).encode(),
            capture_output=True,
            check=True,
        ).stdout
        commands = json.loads(printed)
        assert len(commands) == len(cases)
        for (ids, key), command in zip(cases, commands, strict=True):
            assert ('"X-Gateway-Key: $KEY"' in command) == (key is None)
            done = subprocess.run(
                ["sh", "-c", command],
                capture_output=True,
                env={**os.environ, "KEY": "k"},
                check=False,
            )
            assert (done.returncode, done.stdout) == (0, expected[ids]), command
