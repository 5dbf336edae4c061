"""`srvstat growth` and `srvstat peak-hours`: options, errors, forms and tables."""

import json
from pathlib import Path

import pytest

from conftest import Cli


@pytest.mark.parametrize(
    ("command", "field"), [(["growth", "--step=month"], "steps"), (["peak-hours"], "cells")]
)
def test_rows_have_the_values_of_the_document(
    command: list[str], field: str, cli: Cli, demo_snapshot: str
) -> None:
    asked = [*command, "old-guard", "cfxId:hc4x2k", "id:old-guard", "-s", demo_snapshot]
    rows = [json.loads(line) for line in cli(*asked, "--format=ndjson").stdout.splitlines()]

    expected = []
    for shown in cli(*asked).json["servers"]:
        for part in shown[field]:
            growth = part.pop("growth", {})
            if "change" in part:
                change = part.pop("change") or {"players": None, "percentage": None}
                part |= {f"change{name.capitalize()}": value for name, value in change.items()}
            flat = {f"growth{name.capitalize()}": value for name, value in growth.items()}
            expected.append({"serverId": shown["serverId"], **part, **flat})
    assert rows == expected
    assert {row["serverId"] for row in rows} == {"old-guard", "harbor-city"}


def test_a_bundle_that_ends_with_the_window_has_no_previous_growth(
    cli: Cli, demo_snapshot: str, tmp_path: Path
) -> None:
    bundle = str(tmp_path / "bundle.db")
    cli("snapshot", "bundle", "harbor-city", "-s", demo_snapshot, "-o", bundle, "--range=7d")
    asked = ["growth", "harbor-city", "-s", bundle]

    short, whole = (cli(*asked, f"--range={length}").json for length in ("3d", "7d"))

    assert short["previousWindow"]["to"] == short["window"]["from"]
    assert short["servers"][0]["previousGrowth"]["players"] is not None
    assert whole["previousWindow"] is whole["servers"][0]["previousGrowth"] is None
    assert cli(*asked, "--range=30d").exit_code == 3
