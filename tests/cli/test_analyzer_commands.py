"""Commands of the analyzer: rows and documents, bundles, damage, and charts above tables."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from conftest import AS_OF, DAY, Build, Cli, server
from support.snapshots import forge

HOUR = DAY // 24


def read_rows(cli: Cli, *arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in cli(*arguments, "--format=ndjson").stdout.splitlines()]


def flatten(part: dict[str, Any]) -> dict[str, Any]:
    """Return figures as the columns of a row."""
    flat = {name: value for name, value in part.items() if name != "previous"}
    if "change" in flat:
        flat["change"] = flat["change"] or {"players": None, "percentage": None}
    for name in {"growth", "change", "above"} & flat.keys():
        flat |= {f"{name}{key.capitalize()}": value for key, value in flat.pop(name).items()}
    flat |= {f"quantile{one['quantile']}": one["players"] for one in flat.pop("quantiles", ())}
    return flat


def test_a_row_of_statistics_has_the_values_of_the_document(cli: Cli, demo_snapshot: str) -> None:
    asked = ["top", "-n3", "--by=growth", "-s", demo_snapshot]
    asked += ["--quantile=.95", "--above=40", "--versus=previous"]

    assert read_rows(cli, *asked) == [
        flatten(one)
        | {
            f"previous{key[0].upper()}{key[1:]}": value
            for key, value in flatten(one["previous"]).items()
        }
        for one in cli(*asked).json["servers"]
    ]


@pytest.mark.parametrize(
    ("command", "field"), [(["growth", "--step=month"], "steps"), (["peak-hours"], "cells")]
)
def test_a_row_of_steps_or_hours_has_the_values_of_the_document(
    command: list[str], field: str, cli: Cli, demo_snapshot: str
) -> None:
    asked = [*command, "old-guard", "cfxId:hc4x2k", "id:old-guard", "-s", demo_snapshot]

    assert read_rows(cli, *asked) == [
        {"serverId": shown["serverId"], **flatten(part)}
        for shown in cli(*asked).json["servers"]
        for part in shown[field]
    ]


def test_a_row_of_integrity_has_what_a_rule_has(cli: Cli, demo_snapshot: str) -> None:
    asked = ["integrity", "old-guard", "-s", demo_snapshot]
    (found,) = cli(*asked).json["servers"]

    for row, rule in zip(read_rows(cli, *asked), found["rules"], strict=True):
        parts = {name: row[name] and json.loads(row[name]) for name in ("evidence", "threshold")}
        names = {name: found[name] for name in ("serverId", "cfxId", "hostname")}
        causes = {"innocentCauses": " ".join(rule["innocentCauses"])}
        assert row | parts == names | rule | causes


def test_a_bundle_without_the_previous_window_shows_or_compares_none(
    cli: Cli, demo_snapshot: str, tmp_path: Path
) -> None:
    bundle = str(tmp_path / "bundle.db")
    cli("snapshot", "bundle", "harbor-city", "-s", demo_snapshot, "-o", bundle, "--range=7d")
    compared = ["stats", "harbor-city", "-s", bundle, "--versus=previous"]

    assert [cli(*compared, f"--range={length}").exit_code for length in ("3d", "7d")] == [0, 3]
    short, whole = (
        cli("growth", "harbor-city", "-s", bundle, f"--range={length}").json
        for length in ("3d", "7d")
    )
    assert short["previousWindow"]["to"] == short["window"]["from"]
    assert short["servers"][0]["previousGrowth"]["players"] is not None
    assert whole["previousWindow"] is whole["servers"][0]["previousGrowth"] is None


@pytest.mark.parametrize("step", [[], ["--step=1h"], ["--step=1h", "--sum"]])
def test_damage_stops_a_history_after_the_rows_before_it(
    step: list[str], build: Build, cli: Cli
) -> None:
    path = build([server("a")], [("a", AS_OF - at * HOUR, at % 7) for at in range(2_160)])
    asked = ["history", "a", "-s", path, "--range=90d", *step]
    whole = cli(*asked).stdout
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE blocks SET players = x'00' WHERE server_block % 1000000000 = 1")
    ran = cli(*asked)

    assert ran.exit_code == 3
    assert ran.stderr.startswith(f"error: {path}: damaged (observations of server a from ")
    assert step or ran.stdout.count(b"\n") >= 1000
    assert whole.startswith(ran.stdout)


@pytest.mark.parametrize("value", ["zeroblob(length(times))", "x'ffffffff'", "NULL"])
def test_forged_observations_are_refused(
    value: str, two_servers: bytes, tmp_path: Path, cli: Cli
) -> None:
    path = tmp_path / "forged.db"
    path.write_bytes(two_servers)
    forge(str(path), f"UPDATE blocks SET times = {value};")  # noqa: S608 - a value of ours

    ran = cli("integrity", "--all", "-s", str(path))

    assert (ran.exit_code, ran.stdout) == (3, b"")


def test_a_server_named_many_times_is_read_once(build: Build, cli: Cli) -> None:
    path = build([server("a"), server("b")], [("a", AS_OF, 5), ("b", AS_OF, 6)])
    ran = cli("history", *["a", "b", "cfxId:x-a", "id:b"] * 2_500, "-s", path)

    assert [json.loads(line)["serverId"] for line in ran.stdout.splitlines()] == ["a", "b"]


def test_a_comparison_has_the_chart_of_a_history_above_its_table(
    cli: Cli, demo_snapshot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)
    pair = ["harbor-city", "night-shift", "--range=7d"]
    compared = ["compare", *pair, "--at=2026-02-20T12:00Z"]

    chart, table = cli(*compared, "--chart").stdout.split(b"\n\n", 1)

    assert table == cli(*compared, "--table").stdout
    drawn = cli("history", *pair, "--to=2026-02-20T12:00Z", "--chart").stdout
    assert chart == drawn.split(b"\n\n", 1)[0]
