"""Invalid requests on the command line and in request files."""

import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Cli, srvstat

INVALID = b'{"error":{"code":"INVALID_REQUEST","message":"Invalid request"}}\n'


def test_arguments_that_are_not_utf8_are_an_invalid_request() -> None:
    for arguments in (
        [b"get", b"\xff"],
        [b"compare", b"a", b"b", b"--range", b"7d\xff"],
        [b"compare", b"a", b"b", b"--by", b"\xffid"],
    ):
        ran = srvstat(*arguments)
        assert (ran.exit_code, ran.stdout) == (40, INVALID)


@pytest.mark.usefixtures("crossed_snapshot")
def test_a_request_file_has_the_answer_of_the_same_arguments(cli: Cli, tmp_path: Path) -> None:
    body = b'{"servers":[{"identifier":"a","by":"id"},{"by":"cfxId","identifier":"a"}]}'
    (tmp_path / "request.json").write_bytes(body)

    from_file = cli("compare", "--request", str(tmp_path / "request.json"))
    from_stdin = cli("compare", "--request", "-", stdin=body)

    assert from_file.stdout == from_stdin.stdout == cli("compare", "a", "cfxId:a").stdout


def test_a_closed_standard_input_exits_6() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m srvstat compare --request - <&-"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (6, "")
    assert done.stderr == "error: standard input: Bad file descriptor\n"
