"""`srvstat stats` and `srvstat top`: options, errors and forms."""

import json
from pathlib import Path
from typing import Any

from conftest import Cli


def test_a_bundle_without_the_previous_window_is_refused(
    cli: Cli, demo_snapshot: str, tmp_path: Path
) -> None:
    bundle = str(tmp_path / "bundle.db")
    cli("snapshot", "bundle", "harbor-city", "-s", demo_snapshot, "-o", bundle, "--range=7d")
    asked = ["stats", "harbor-city", "-s", bundle, "--versus=previous"]

    assert cli(*asked, "--range=3d").exit_code == 0
    ran = cli(*asked, "--range=7d")
    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert "a bundle that covers" in ran.stderr


def test_rows_have_the_values_of_the_document(cli: Cli, demo_snapshot: str) -> None:
    asked = ["top", "-n3", "--by=growth", "-s", demo_snapshot]
    asked += ["--quantile=.95", "--above=40", "--versus=previous"]
    document = cli(*asked).json
    rows = [json.loads(line) for line in cli(*asked, "--format=ndjson").stdout.splitlines()]

    def flatten(figures: dict[str, Any]) -> dict[str, Any]:
        flat = {name: value for name, value in figures.items() if name != "previous"}
        growth, above, (quantile,) = flat.pop("growth"), flat.pop("above"), flat.pop("quantiles")
        if "change" in flat:
            change = flat.pop("change") or {"players": None, "percentage": None}
            flat |= {"changePlayers": change["players"], "changePercentage": change["percentage"]}
        return flat | {
            "growthPlayers": growth["players"],
            "growthPercentage": growth["percentage"],
            "quantile0.95": quantile["players"],
            "abovePlayers": above["players"],
            "aboveHours": above["hours"],
        }

    assert rows == [
        flatten(one)
        | {
            f"previous{key[0].upper()}{key[1:]}": value
            for key, value in flatten(one["previous"]).items()
        }
        for one in document["servers"]
    ]
