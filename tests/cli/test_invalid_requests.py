"""Invalid requests on the command line and in request files."""

import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Cli, srvstat

INVALID = b'{"error":{"code":"INVALID_REQUEST","message":"Invalid request"}}\n'


def test_compare_refuses_one_server_with_the_error_of_the_api(cli: Cli) -> None:
    ran = cli("compare", "A", "--json")

    assert (ran.exit_code, ran.stdout) == (40, INVALID)
    assert ran.stderr == "servers: 1 given, 2 to 5 needed\n"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["compare"], "servers: 0 given, 2 to 5 needed"),
        (["compare", "a", "b", "c", "d", "e", "f"], "servers: 6 given, 2 to 5 needed"),
        (["compare", "a", "a"], "servers[1]: the same reference as servers[0]"),
        (["compare", "a", "id:a"], "servers[1]: the same reference as servers[0]"),
        (["compare", "a", "b", "--range", "8d"], 'range: "8d" is not one of 24h, 7d, 30d, 90d, 1y'),
        (["compare", "a", "b", "--range", ""], 'range: "" is not one of 24h, 7d, 30d, 90d, 1y'),
        (["compare", "a", "b", "--by", "name"], 'by: "name" is not one of id, cfxId'),
        (["compare", "id:a", "id:b", "--by", ""], 'by: "" is not one of id, cfxId'),
        (["get", "a", "--by", "CFXID"], 'by: "CFXID" is not one of id, cfxId'),
        (["get", "id:a", "--by", "x"], 'by: "x" is not one of id, cfxId'),
        (["get", "name:a"], 'identifier: "name:a" may only contain letters, digits and hyphens'),
        (
            ["get", "id:cfxId:a"],
            'identifier: "cfxId:a" may only contain letters, digits and hyphens',
        ),
        (["get", "cfxId:"], "identifier: empty"),
        (["get", ""], "identifier: empty"),
        (["get", "a\n"], 'identifier: "a\\n" may only contain letters, digits and hyphens'),
        (["get", "a" * 129], "identifier: 129 characters, at most 128 allowed"),
        (["get", "\udcff"], "identifier: not Unicode text (a lone surrogate)"),
    ],
)
def test_an_invalid_request_needs_no_snapshot(
    cli: Cli,
    arguments: list[str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)

    as_json = cli(*arguments, "--json")
    as_table = cli(*arguments, "--table")

    assert (as_json.exit_code, as_json.stdout) == (40, INVALID)
    assert (as_table.exit_code, as_table.stdout) == (40, b"")
    assert as_json.stderr == f"{reason}\n"
    assert as_table.stderr == f"error: INVALID_REQUEST: Invalid request\n{reason}\n"


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


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "body: not JSON at column 1: Expecting value"),
        (b"[]", "body: must be an object"),
        (
            b'{"servers":[{"identifier":"s","by":"id"},{"identifier":"\\u0073","by":"id"}]}',
            "servers[1]: the same reference as servers[0]",
        ),
        (
            b'{"servers":[{"identifier":"a","by":"id"},{"identifier":"b","by":"id"}],"range":null}',
            "range: null is not one of 24h, 7d, 30d, 90d, 1y",
        ),
        (
            b'{"servers":[{"identifier":"a"},{"identifier":"b","by":"id"}]}',
            "servers[0].by: missing",
        ),
        (b" " * 16_385, "body: more than 16,384 bytes"),
    ],
)
def test_an_invalid_request_body_is_refused(
    cli: Cli, tmp_path: Path, body: bytes, reason: str
) -> None:
    (tmp_path / "request.json").write_bytes(body)

    ran = cli("compare", "--request", str(tmp_path / "request.json"), "--json")

    assert (ran.exit_code, ran.stdout, ran.stderr) == (40, INVALID, f"{reason}\n")


def test_a_closed_standard_input_exits_6() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m srvstat compare --request - <&-"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (6, "")
    assert done.stderr == "error: standard input: Bad file descriptor\n"


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_an_unreadable_request_file_exits_6(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = cli("compare", "--request", name)

    assert (ran.exit_code, ran.stdout) == (6, b"")
    assert ran.stderr.startswith(f"error: {name}: ")
