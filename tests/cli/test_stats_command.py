"""`srvstat stats` and `srvstat top`: options, errors and forms."""

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import AS_OF, DAY, Build, Cli, server

HOUR = DAY // 24


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["stats"], 2, "error: give IDENTIFIER… or --all\n"),
        (["stats", "--game", "fivem"], 2, "error: give IDENTIFIER… or --all\n"),
        (["stats", "a", "--all"], 2, "error: --all can't be combined with identifiers or --by\n"),
        (["stats", "--all", "--by=id"], 2, "can't be combined with identifiers or --by\n"),
        (["stats", "a", "--online"], 2, "filters can't be combined with identifiers"),
        (["stats", "a", "--quantile", "95"], 2, '"95" is not a decimal from 0 to 1 '),
        (["stats", "a b", "--range=all", "--versus=previous"], 2, "no earlier window"),
        (["stats", "a b"], 40, "may only contain"),
        (["stats", "harbor-city", "--by", "name"], 40, "is not one of id, cfxId"),
        (["stats", "harbor-cty"], 44, "no id harbor-cty; "),
        (["top", "-s", "absent.db"], 3, "absent.db"),
        (
            ["top", "-s", "absent.db", "--from=2", "--to=1"],
            2,
            "--from: must be earlier than --to\n",
        ),
        (["top", "-s", "absent.db", "--range=8"], 2, '--range: "8" is not a number of hours'),
        (["stats", "a", "-s", "absent.db", "--tz=x"], 2, '--tz: no time zone "x"'),
    ],
)
def test_invalid_usage_is_reported(  # noqa: PLR0913, PLR0917 - a case and its fixtures
    arguments: list[str],
    code: int,
    reason: str,
    cli: Cli,
    demo_snapshot: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)
    ran = cli(*arguments, "--table")

    assert (ran.exit_code, ran.stdout) == (code, b"")
    assert reason in ran.stderr
    assert "Traceback" not in ran.stderr


def test_an_end_that_looks_like_seconds_is_a_warning(cli: Cli, demo_snapshot: str) -> None:
    ran = cli(
        "top", "-n1", "-s", demo_snapshot, "--from", str(AS_OF // 1000 - 9), "--to=2026-03-01"
    )

    assert ran.exit_code == 0
    assert "read as milliseconds, 1970-01-21 12:19:26.391 UTC; if these are sec" in ran.stderr
    assert ran.stderr.startswith("warning: --from ")
    assert ran.stderr.count("\n") == 1


def test_servers_without_observations_are_reported(cli: Cli, build: Build) -> None:
    names = [f"none-{number:02}" for number in range(12)]
    path = build(
        [server("now"), server("once"), *map(server, names)],
        [("now", AS_OF, 1), ("now", AS_OF - 3 * DAY, 1), ("once", AS_OF - 2 * DAY, 1)],
    )

    ran = cli("stats", "now", "once", *names, "-s", path, "--range=2d")

    notes = ran.stderr.splitlines()
    outside = "no observation in the window; it has"
    seen = "2026-02-27 12:00:00 UTC"
    assert notes[0] == f"note: server once: {outside} {seen} to {seen}"
    assert notes[1:10] == [
        f"note: server {name}: no observation in the snapshot" for name in names[:9]
    ]
    assert notes[10:] == ["note: 3 more servers without observations in the window"]
    for command in ("growth", "history", "integrity", "peak-hours"):
        ran = cli(command, "now", "once", "-s", path, "--range=2d")
        assert (ran.exit_code, ran.stderr.splitlines()) == (0, notes[:1])
    assert cli("stats", "--all", "-s", path, "--range=2d").stderr == ""
    ran = cli("history", "now", "-s", path, "--range=1d", "--to=2026-02-28")
    assert ran.stderr.startswith(f"note: server now: {outside} 2026-02-26 12:00:00 UTC to 2026-03")


def test_a_server_named_twice_is_shown_once(cli: Cli, demo_snapshot: str) -> None:
    names = ["cfxId:hc4x2k", "old-guard", "id:harbor-city", "old-guard"]
    found = cli("stats", *names * 2_500, "-s", demo_snapshot).json

    assert [one["serverId"] for one in found["servers"]] == ["harbor-city", "old-guard"]


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


def test_notes_say_what_differs(build: Build, cli: Cli) -> None:
    rows = [
        *(("gap", AS_OF - 20 * HOUR + at * HOUR, 10) for at in range(5)),
        ("gap", AS_OF, 60),
        ("twice", AS_OF - 3 * HOUR, 8),
        ("twice", AS_OF - HOUR, 8),
        ("before", AS_OF - DAY, 5),
    ]
    path = build([server("gap"), server("twice"), server("before")], rows)
    asked = ["stats", "--all", "-s", path, "--range=24h", "--versus=previous", "--table"]
    shown = cli(*asked, "--above=9", "--quantile=0.5").stdout.decode()
    notes = [line.split("  ")[-1].strip().split("; ") for line in shown.split("\n")[2:7:2]]

    nothing_before = "no observation in the previous window"
    seen = ["2026-03-01 09:00", "2026-03-01 11:00", "2026-03-01 12:00"]
    assert notes == [
        [
            *("0 observations", "p50 –", "above 9: –"),  # noqa: RUF001 - no value
            "before: average 5.00, median 5, peak 5, lowest 5, p50 5",
        ],
        [
            *("6 observations", "29.2% covered", f"peak {seen[2]}", "p50 10", "above 9: 7 hours"),
            *("time-weighted average 10.00", nothing_before),
        ],
        [
            *("2 observations", "12.5% covered", f"peak {seen[0]}, last {seen[1]}", "p50 8"),
            *("above 9: never", nothing_before),
        ],
    ]


def test_one_observation_has_no_first_and_last(build: Build, cli: Cli) -> None:
    path = build([server("a")], [("a", AS_OF, 42)])

    for command in ("stats", "growth"):
        shown = cli(command, "a", "-s", path, "--table").stdout.decode()
        assert "42 → 42" not in shown


def test_all_observations_have_no_change_to_rank_by(build: Build, cli: Cli) -> None:
    path = build([server("a")], [("a", AS_OF, 42)])

    ran = cli("top", "-s", path, "--by", "change", "--range", "all")

    assert (ran.exit_code, ran.stdout) == (2, b"")
    assert ran.stderr.startswith("error: --range all: no earlier window; ")
