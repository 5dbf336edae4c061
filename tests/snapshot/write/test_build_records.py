"""Build from server records and as_of: defaults, fallbacks, warnings."""

from pathlib import Path

import pytest

from conftest import AS_OF, DAY, SERVERS, Cli, csv, ndjson
from support.snapshots import WEEK, parse_summary

pytestmark = pytest.mark.usefixtures("here")


def test_servers_that_are_not_publishable_leave_no_trace(cli: Cli) -> None:
    rows = [("a", AS_OF, 5), ("a", AS_OF - 1, 4)]
    hidden = [("hidden", AS_OF + at, at % 2) for at in range(100)]
    Path("week.csv").write_bytes(csv([*rows, *hidden, *hidden]))
    assert parse_summary(cli(*WEEK))["skipped"] == "200 (200 not publishable)"
    with_hidden = Path("out.db").read_bytes()

    Path("week.csv").write_bytes(csv(rows))
    Path("servers.ndjson").write_bytes(ndjson(SERVERS[:2]))
    assert cli(*WEEK, "--overwrite").exit_code == 0

    assert Path("out.db").read_bytes() == with_hidden
    assert b"secret" not in with_hidden
    assert cli("get", "hidden", "-s", "out.db").exit_code == 44


def test_as_of_is_the_latest_observation_kept(cli: Cli) -> None:
    rows = [("a", AS_OF, 5), ("b", AS_OF - 1, 5), ("hidden", AS_OF + 9, 5), ("c", AS_OF + 8, 5)]
    Path("week.csv").write_bytes(csv([*rows, ("a", AS_OF + 7, "x")]))

    assert cli(*WEEK).exit_code == 0

    assert cli("snapshot", "info", "out.db").json["asOf"] == "2026-03-01T12:00:00.000Z"


@pytest.mark.parametrize("as_of", [str(AS_OF), "2026-03-01T12:00Z", "2026-03-01 13:00:00+01:00"])
def test_observations_after_as_of_are_skipped_before_defaults_are_derived(
    as_of: str, cli: Cli
) -> None:
    rows = [("a", AS_OF - DAY, 1), ("a", AS_OF + DAY, 9), ("a", AS_OF, 2), ("b", AS_OF + 1, 9)]
    Path("week.csv").write_bytes(csv(rows))

    ran = cli(*WEEK, "--as-of", as_of)

    assert parse_summary(ran)["skipped"] == "2 (2 after the as-of time)"
    info = cli("snapshot", "info", "out.db").json
    assert info["asOf"] == info["lastObservedAt"] == "2026-03-01T12:00:00.000Z"
    a, b = (cli("get", name, "-s", "out.db").json["data"] for name in ("a", "b"))
    assert a["players"]["current"] == 2
    assert a["firstSeenAt"] == "2026-02-28T12:00:00.000Z"
    assert a["updatedAt"] == "2026-03-01T12:00:00.000Z"
    assert b["players"]["current"] == 0
    assert b["firstSeenAt"] == b["updatedAt"] == "2026-03-01T12:00:00.000Z"


NOTHING_KEPT = [
    b"serverId,observedAt,players\n",
    csv([("unknown", AS_OF, 5), ("hidden", AS_OF, 5)]),
    csv([("a", AS_OF, "x")]),
]


@pytest.mark.parametrize("data", NOTHING_KEPT)
def test_a_snapshot_without_observations_needs_allow_empty_and_as_of(data: bytes, cli: Cli) -> None:
    Path("week.csv").write_bytes(data)

    for options in ([], ["--as-of", str(AS_OF)], ["--allow-empty"]):
        refused = cli(*WEEK, *options)
        assert (refused.exit_code, Path("out.db").exists()) == (6, False)
        assert refused.stderr.startswith("error: no observation was kept: ")

    assert cli(*WEEK, "--allow-empty", "--as-of", str(AS_OF)).exit_code == 0
    info = cli("snapshot", "info", "out.db").json
    assert (info["observations"], info["firstObservedAt"], info["lastObservedAt"]) == (
        0,
        None,
        None,
    )
    assert info["asOf"] == "2026-03-01T12:00:00.000Z"


def test_missing_fields_of_a_record_have_defaults(cli: Cli) -> None:
    assert cli(*WEEK).exit_code == 0

    assert cli("get", "a", "-s", "out.db").json["data"] == {
        "id": "a",
        "game": "game_a",
        "cfxId": "x-a",
        "hostname": "a",
        "projectName": "",
        "projectDescription": "",
        "region": "",
        "players": {"current": 6, "max": 0},
        "tags": [],
        "flags": [],
        "chatUrl": "",
        "iconUrl": None,
        "offline": False,
        "firstSeenAt": "2026-02-28T12:00:00.000Z",
        "updatedAt": "2026-03-01T12:00:00.000Z",
    }


def test_the_fields_of_a_record_are_returned_unchanged(cli: Cli) -> None:
    record = {
        "id": "a",
        "game": "game_b",
        "cfxId": "abc123",
        "hostname": "Härbor 夜 😀",
        "projectName": "Harbor",
        "projectDescription": "A city\nby the sea",
        "region": "EU",
        "players": {"current": 0, "max": 2**53 - 1},
        "tags": ["one", "two", "one", ""],
        "flags": ["PREMIUM"],
        "chatUrl": "https://chat.example/harbor",
        "iconUrl": "https://icons.example/harbor.png",
        "offline": True,
        "firstSeenAt": "2017-01-01T00:00:00.000Z",
        "updatedAt": "2030-01-01T00:00:00.001Z",
    }
    Path("servers.ndjson").write_bytes(ndjson([record]))

    assert cli(*WEEK).exit_code == 0

    assert cli("get", "a", "-s", "out.db").json == {"data": record}
    assert cli("snapshot", "info", "out.db").json["fallbacks"] == 0
