"""`srvstat integrity`: options, errors, forms and tables."""

import json
from pathlib import Path

import pytest

from analysis.honest_series import MODES, Shape, change_series, draw_series
from conftest import DAY, Cli, build_in, server
from support.snapshots import forge


@pytest.fixture(scope="module")
def changed_servers(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Build a snapshot of an honest server and of one for each change of its counts.

    The server `add` has observations on six of seven days, and a maximum that it exceeds.
    """
    shape = Shape(30, 18, 10, 1)
    honest = draw_series(shape)
    servers = {"honest": honest} | {mode: change_series(honest, mode, shape) for mode in MODES}
    rows = [
        (name, at, players)
        for name, series in servers.items()
        for at, players in zip(series.instants, series.players, strict=True)
        if name != "add" or at // DAY % 7
    ]
    records = [server(name, hostname=f"The {name} server") for name in servers]
    records[1]["players"] = {"max": 75}
    return str(build_in(tmp_path_factory.mktemp("changed"), records, rows))


def test_the_default_window_is_the_last_90_days(cli: Cli, changed_servers: str) -> None:
    whole = cli("integrity", "honest", "-s", changed_servers)
    named = cli("integrity", "honest", "--range=90d", "-s", changed_servers)
    later = cli("integrity", "honest", "--from=2026-02-20", "-s", changed_servers)

    assert whole.stdout == named.stdout
    assert later.json["window"]["from"] == "2026-02-20T00:00:00.000Z"


def test_a_row_has_what_a_rule_has_in_json(cli: Cli, changed_servers: str) -> None:
    (found,) = cli("integrity", "constant", "-s", changed_servers).json["servers"]
    ran = cli("integrity", "constant", "-s", changed_servers, "--format", "ndjson")

    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    for row, rule in zip(rows, found["rules"], strict=True):
        parts = {name: row[name] and json.loads(row[name]) for name in ("evidence", "threshold")}
        server = {name: found[name] for name in ("serverId", "cfxId", "hostname")}
        causes = {"innocentCauses": " ".join(rule["innocentCauses"])}
        assert row | parts == server | rule | causes


@pytest.mark.parametrize("value", ["zeroblob(length(times))", "x'ffffffff'", "NULL"])
def test_a_forged_snapshot_is_refused(
    value: str, two_servers: bytes, tmp_path: Path, cli: Cli
) -> None:
    path = tmp_path / "forged.db"
    path.write_bytes(two_servers)
    forge(str(path), f"UPDATE days SET times = {value};")  # noqa: S608 - a value of ours

    ran = cli("integrity", "--all", "-s", str(path))

    assert (ran.exit_code, ran.stdout) == (3, b"")
