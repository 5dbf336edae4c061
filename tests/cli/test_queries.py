"""`get` and `compare`, as the interface promises them."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import AS_OF, DAY, SHARED_DATA, Build, Cli, server, srvstat

INVALID = b'{"error":{"code":"INVALID_REQUEST","message":"Invalid request"}}\n'
NOT_FOUND = b'{"error":{"code":"SERVER_NOT_FOUND","message":"Server not found"}}\n'


@pytest.fixture
def snapshot(build: Build, monkeypatch: pytest.MonkeyPatch) -> str:
    """Build two servers, a and b, where b's cfxId is a's id, and make it the one to ask."""
    path = build(
        [server("a", cfxId="x-a"), server("b", cfxId="a"), server("hidden", publishable=False)],
        [("a", AS_OF - 1, 10), ("a", AS_OF, 15), ("b", AS_OF, 0), ("hidden", AS_OF, 99)],
    )
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", path)
    return path


def test_real_data_gives_the_expected_bytes(tmp_path: Path) -> None:
    data = SHARED_DATA / "warbrokers"
    if not data.is_dir():
        pytest.skip("the War Brokers data is not beside the repository")
    path = str(tmp_path / "wb.db")
    sources = (
        *("--servers", str(data / "servers.ndjson")),
        *("--observations", str(data / "observations.csv.gz")),
    )
    built = srvstat("snapshot", "build", path, *sources)
    expected = json.loads((data / "expected.json").read_bytes())

    assert built.exit_code == 0
    assert "790,996 rows" in built.stderr
    assert len(expected["cases"]) == 7
    for case in expected["cases"]:
        ran = srvstat(*case["argv"], env={"SRVSTAT_SNAPSHOT": path})
        assert ran.stdout.decode() == case["stdout"]
        assert (ran.exit_code, ran.stderr) == (0, "")
    assert srvstat("snapshot", "info", path).json["asOf"] == expected["asOf"]


def test_an_answer_is_the_exact_bytes_and_a_newline(cli: Cli, snapshot: str) -> None:
    ran = cli("compare", "a", "b", "--range", "24h", "--snapshot", snapshot)

    assert ran.stdout == (
        b'{"range":"24h","data":[{"serverId":"a","cfxId":"x-a","range":"24h","currentPlayers":15,'
        b'"averagePlayers":12.5,"medianPlayers":12.5,"peakPlayers":15,"lowestPlayers":10,'
        b'"growth":{"players":5,"percentage":50},"uptime":null,"sampleCount":2},'
        b'{"serverId":"b","cfxId":"a","range":"24h","currentPlayers":0,"averagePlayers":0,'
        b'"medianPlayers":0,"peakPlayers":0,"lowestPlayers":0,'
        b'"growth":{"players":null,"percentage":null},"uptime":null,"sampleCount":1}]}\n'
    )


def test_one_identifier_is_the_apis_own_error(cli: Cli) -> None:
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
def test_the_contract_judges_before_any_snapshot_is_needed(
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


@pytest.mark.parametrize(
    "arguments",
    [
        ["get"],
        ["get", "a", "b"],
        ["get", "-a"],
        ["compare", "a", "b", "--json", "--table"],
        ["compare", "a", "b", "--at", "yesterday"],
        ["compare", "a", "b", "--at", "2026-01-01T00:00"],
        ["get", "a", "--at", ""],
        ["compare", "--request", "-", "a"],
        ["compare", "--request", "-", "--by", "id"],
        ["compare", "--request", "-", "--range", "7d"],
        ["compare", "a", "b", "--nonsense"],
        ["nonsense"],
        ["snapshot"],
        [],
    ],
)
def test_wrong_usage_exits_2_and_leaves_stdout_empty(cli: Cli, arguments: list[str]) -> None:
    ran = cli(*arguments)

    assert (ran.exit_code, ran.stdout) == (2, b"")
    assert ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "finding"),
    [
        (["get"], "Missing argument 'IDENTIFIER'."),
        (["nonsense"], "No such command 'nonsense'."),
        (["compare", "--nonsense"], "No such option: --nonsense"),
        (["snapshot", "build", "x.db"], "Missing option '--servers'."),
    ],
)
def test_wrong_usage_is_told_in_two_lines(cli: Cli, arguments: list[str], finding: str) -> None:
    remedy = "srvstat --help shows the commands and their options"

    assert cli(*arguments).stderr == f"error: {finding}\n{remedy}\n"


def test_no_command_shows_which_there_are(cli: Cli) -> None:
    for arguments, command in (([], "compare"), (["snapshot"], "draft-servers")):
        lines = cli(*arguments).stderr.split("\n")
        assert lines[0].startswith("Usage: srvstat")
        assert any(line.startswith(f"  {command} ") for line in lines)


def test_an_identifier_with_a_leading_hyphen_goes_behind_two_or_its_namespace(
    cli: Cli, build: Build
) -> None:
    path = build([server("-a"), server("b")], [("-a", AS_OF, 1)])

    after_hyphens = cli("get", "--json", "--snapshot", path, "--", "-a")
    with_namespace = cli("get", "--json", "--snapshot", path, "id:-a")

    assert after_hyphens.exit_code == with_namespace.exit_code == 0
    assert after_hyphens.stdout == with_namespace.stdout
    assert after_hyphens.json["data"]["id"] == "-a"


def test_no_snapshot_exits_3_and_says_where_one_is_looked_for(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SRVSTAT_SNAPSHOT", raising=False)

    ran = cli("get", "a")

    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert ran.stderr == (
        "error: no snapshot: give --snapshot PATH, set SRVSTAT_SNAPSHOT, or have snapshot.db in the"
        " current directory\n"
    )


def test_an_empty_name_is_no_other_snapshot(cli: Cli, snapshot: str) -> None:
    assert snapshot
    for arguments in (["get", "a", "--snapshot", ""], ["snapshot", "info", ""]):
        ran = cli(*arguments)
        assert (ran.exit_code, ran.stdout) == (3, b"")
        assert ran.stderr == "error: the name of the snapshot is empty; name a file\n"


def test_a_file_name_forges_no_line_on_standard_error(cli: Cli) -> None:
    ran = cli("get", "a", "--snapshot", "x\nerror: forged")

    assert ran.exit_code == 3
    assert ran.stderr.startswith("error: x\\u000aerror: forged: no such file")
    assert ran.stderr.count("\n") == 1


def test_an_id_that_is_another_servers_cfx_id_is_never_confused(cli: Cli, snapshot: str) -> None:
    assert snapshot
    assert cli("get", "a").json["data"]["id"] == "a"
    assert cli("get", "cfxId:a").json["data"]["id"] == "b"
    assert cli("get", "a", "--by", "cfxId").json["data"]["id"] == "b"
    both = cli("compare", "id:a", "cfxId:a").json["data"]
    assert [result["serverId"] for result in both] == ["a", "b"]


def test_one_server_named_in_both_namespaces_is_answered_twice(cli: Cli, snapshot: str) -> None:
    assert snapshot
    results = cli("compare", "a", "cfxId:x-a").json["data"]

    assert results[0] == results[1]


def test_unknown_and_not_publishable_servers_cannot_be_told_apart(cli: Cli, snapshot: str) -> None:
    assert snapshot
    unknown = cli("get", "hidde-", "--json")
    hidden = cli("get", "hidden", "--json")

    assert unknown.exit_code == hidden.exit_code == 44
    assert unknown.stdout == hidden.stdout == NOT_FOUND
    assert cli("get", "cfxId:x-hidden").stdout == NOT_FOUND
    assert b"hidden" not in Path(snapshot).read_bytes()


def test_a_missing_server_is_named_with_what_may_have_been_meant(cli: Cli, snapshot: str) -> None:
    assert snapshot
    other_namespace = cli("compare", "a", "x-a", "--json")
    near = cli("get", "X-b", "--by", "cfxId", "--table")

    assert (other_namespace.exit_code, other_namespace.stdout) == (44, NOT_FOUND)
    assert other_namespace.stderr == "servers[1]: no id x-a; did you mean cfxId:x-a?\n"
    assert (near.exit_code, near.stdout) == (44, b"")
    assert near.stderr == (
        "error: SERVER_NOT_FOUND: Server not found\nno cfxId X-b; the nearest: x-a\n"
    )


def test_every_permutation_of_five_mixed_references_keeps_its_order(
    cli: Cli, demo_snapshot: str
) -> None:
    references = ["harbor-city", "cfxId:nf8q1z", "old-guard", "cfxId:fa9t5w", "id:night-shift"]
    ids = ["harbor-city", "new-frontier", "old-guard", "flaky-arena", "night-shift"]
    id_of = dict(zip(references, ids, strict=True))
    whole = cli("compare", *references, "-s", demo_snapshot, "--range", "24h").json["data"]
    result_of = dict(zip(references, whole, strict=True))

    for order in itertools.permutations(references):
        data = cli("compare", *order, "-s", demo_snapshot, "--range", "24h").json["data"]
        assert [result["serverId"] for result in data] == [id_of[name] for name in order]
        assert data == [result_of[name] for name in order]


@pytest.mark.parametrize(
    ("range", "days"), [("24h", 1), ("7d", 7), ("30d", 30), ("90d", 90), ("1y", 365), (None, 30)]
)
def test_a_window_is_open_at_its_start_and_closed_at_its_end(
    cli: Cli, build: Build, range: str | None, days: int
) -> None:
    start = AS_OF - days * DAY
    observations = [
        ("a", start - 1, 1),
        ("a", start, 2),
        ("a", start + 1, 4),
        ("a", AS_OF - 1, 8),
        ("a", AS_OF, 16),
        ("a", AS_OF + 1, 32),
        ("b", start, 5),
    ]
    path = build([server("a"), server("b")], observations)
    options = [] if range is None else ["--range", range]

    ran = cli("compare", "a", "b", "-s", path, "--at", str(AS_OF), *options)
    first, second = ran.json["data"]

    assert ran.json["range"] == first["range"] == second["range"] == (range or "30d")
    assert first["sampleCount"] == 3
    assert first["averagePlayers"] * 3 == 4 + 8 + 16
    assert first["growth"] == {"players": 12, "percentage": 300}
    assert second["sampleCount"] == 0


def test_an_empty_window_is_four_nulls_and_no_growth(cli: Cli, build: Build) -> None:
    path = build([server("a"), server("b")], [("a", AS_OF, 7)])
    ran = cli("compare", "a", "b", "-s", path)

    assert ran.stdout.endswith(
        b'{"serverId":"b","cfxId":"x-b","range":"30d","currentPlayers":0,"averagePlayers":null,'
        b'"medianPlayers":null,"peakPlayers":null,"lowestPlayers":null,'
        b'"growth":{"players":null,"percentage":null},"uptime":null,"sampleCount":0}]}\n'
    )


def test_one_observation_has_statistics_but_no_growth(cli: Cli, build: Build) -> None:
    path = build([server("a"), server("b")], [("a", AS_OF, 7)])
    result = cli("compare", "a", "b", "-s", path).json["data"][0]

    assert result["averagePlayers"] == result["medianPlayers"] == result["peakPlayers"] == 7
    assert result["growth"] == {"players": None, "percentage": None}
    assert result["sampleCount"] == 1


def test_growth_from_zero_has_no_percentage(cli: Cli, build: Build) -> None:
    path = build([server("a"), server("b")], [("a", AS_OF - 1, 0), ("a", AS_OF, 7)])
    result = cli("compare", "a", "b", "-s", path).json["data"][0]

    assert result["growth"] == {"players": 7, "percentage": None}


def test_an_even_number_of_observations_has_the_mean_of_the_middle_two(
    cli: Cli, build: Build
) -> None:
    observations = [("a", AS_OF - at, players) for at, players in enumerate([9, 1, 4, 100])]
    path = build([server("a"), server("b")], observations)

    assert cli("compare", "a", "b", "-s", path).json["data"][0]["medianPlayers"] == 6.5


def test_a_tiny_mean_is_written_as_ecmascript_writes_it(cli: Cli, build: Build) -> None:
    observations = [("a", AS_OF - at, 1 if at == 0 else 0) for at in range(105_000)]
    path = build([server("a"), server("b")], observations)
    ran = cli("compare", "a", "b", "-s", path)

    assert b'"averagePlayers":0.000009523809523809523,"medianPlayers":0,' in ran.stdout


def test_the_largest_counts_stay_exact(cli: Cli, build: Build) -> None:
    most = 2**53 - 1
    path = build(
        [server("a"), server("b")],
        [("a", AS_OF - 2, most), ("a", AS_OF - 1, most), ("a", AS_OF, 0)],
    )
    ran = cli("compare", "a", "b", "-s", path)

    assert b'"averagePlayers":6004799503160660.7,' in ran.stdout or (
        b'"averagePlayers":6004799503160661,' in ran.stdout
    )
    assert b'"medianPlayers":9007199254740991,"peakPlayers":9007199254740991,' in ran.stdout
    assert b'"growth":{"players":-9007199254740991,"percentage":-100}' in ran.stdout


def test_at_travels_in_time_but_current_players_stay(cli: Cli, build: Build) -> None:
    path = build(
        [server("a", players={"current": 99}), server("b")],
        [("a", AS_OF - DAY, 3), ("a", AS_OF, 5)],
    )
    before = cli("compare", "a", "b", "-s", path, "--at", "2026-02-28T12:00Z")
    first = before.json["data"][0]

    assert (first["currentPlayers"], first["peakPlayers"], first["sampleCount"]) == (99, 3, 1)
    assert before.stderr == ""


def test_at_before_all_data_gives_empty_windows(cli: Cli, snapshot: str) -> None:
    assert snapshot
    ran = cli("compare", "a", "b", "--at", "0")

    assert [result["sampleCount"] for result in ran.json["data"]] == [0, 0]


def test_at_beyond_the_snapshot_is_answered_with_a_warning(cli: Cli, snapshot: str) -> None:
    assert snapshot
    ran = cli("compare", "a", "b", "--at", "2026-03-02T00:00:00Z")

    assert ran.exit_code == 0
    assert [result["sampleCount"] for result in ran.json["data"]] == [2, 1]
    assert ran.stderr == (
        "warning: --at is later than the snapshot, which ends 2026-03-01 12:00:00 UTC\n"
    )


def test_at_changes_no_byte_of_get(cli: Cli, snapshot: str) -> None:
    assert snapshot
    assert cli("get", "a", "--at", "1").stdout == cli("get", "a").stdout


def test_a_request_file_is_answered_like_its_command_line(
    cli: Cli, snapshot: str, tmp_path: Path
) -> None:
    assert snapshot
    body = b'{"servers":[{"identifier":"a","by":"id"},{"by":"cfxId","identifier":"a"}]}'
    (tmp_path / "request.json").write_bytes(body)

    from_file = cli("compare", "--request", str(tmp_path / "request.json"))
    from_stdin = srvstat(
        "compare", "--request", "-", stdin=body, env={"SRVSTAT_SNAPSHOT": snapshot}
    )

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
def test_a_request_body_is_judged_by_the_contract(
    cli: Cli, tmp_path: Path, body: bytes, reason: str
) -> None:
    (tmp_path / "request.json").write_bytes(body)

    ran = cli("compare", "--request", str(tmp_path / "request.json"), "--json")

    assert (ran.exit_code, ran.stdout, ran.stderr) == (40, INVALID, f"{reason}\n")


def test_a_closed_standard_input_is_no_empty_request() -> None:
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


def test_version_names_contract_and_format(cli: Cli) -> None:
    ran = cli("--version")

    assert ran.stdout == b"srvstat 0.2.0 (contract 1.0.0, snapshot format 5)\n"


def test_completion_offers_ranges_namespaces_and_identifiers(demo_snapshot: str) -> None:
    def completed(words: str, current: int) -> list[str]:
        ran = srvstat(
            env={
                "_SRVSTAT_COMPLETE": "complete_bash",
                "COMP_WORDS": words,
                "COMP_CWORD": str(current),
                "SRVSTAT_SNAPSHOT": demo_snapshot,
            }
        )
        return ran.stdout.decode().split()

    assert completed("srvstat compare a b --range ", 5) == ["24h", "7d", "30d", "90d", "1y"]
    assert completed("srvstat get a --by c", 4) == ["cfxId"]
    assert completed("srvstat get ha", 2) == ["harbor-city"]
    assert completed("srvstat get --by cfxId n", 4) == ["nf8q1z", "ns6r0b"]
