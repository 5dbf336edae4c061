"""The answers of `get` and `compare` on the command line."""

import itertools

import pytest

from conftest import AS_OF, DAY, Build, Cli, server


def test_an_answer_is_the_exact_bytes_and_a_newline(cli: Cli, crossed_snapshot: str) -> None:
    ran = cli("compare", "a", "b", "--range", "24h", "--snapshot", crossed_snapshot)

    assert ran.stdout == (
        b'{"range":"24h","data":[{"serverId":"a","cfxId":"x-a","range":"24h","currentPlayers":15,'
        b'"averagePlayers":12.5,"medianPlayers":12.5,"peakPlayers":15,"lowestPlayers":10,'
        b'"growth":{"players":5,"percentage":50},"uptime":null,"sampleCount":2},'
        b'{"serverId":"b","cfxId":"a","range":"24h","currentPlayers":0,"averagePlayers":0,'
        b'"medianPlayers":0,"peakPlayers":0,"lowestPlayers":0,'
        b'"growth":{"players":null,"percentage":null},"uptime":null,"sampleCount":1}]}\n'
    )


def test_results_keep_the_order_of_the_request(cli: Cli, demo_snapshot: str) -> None:
    references = ["harbor-city", "cfxId:nf8q1z", "old-guard", "cfxId:fa9t5w", "id:night-shift"]
    ids = ["harbor-city", "new-frontier", "old-guard", "flaky-arena", "night-shift"]
    ids_by_reference = dict(zip(references, ids, strict=True))
    whole = cli("compare", *references, "-s", demo_snapshot, "--range", "24h").json["data"]
    results_by_reference = dict(zip(references, whole, strict=True))

    for order in itertools.permutations(references):
        data = cli("compare", *order, "-s", demo_snapshot, "--range", "24h").json["data"]
        assert [result["serverId"] for result in data] == [ids_by_reference[name] for name in order]
        assert data == [results_by_reference[name] for name in order]


@pytest.mark.parametrize(
    ("range", "days"), [("24h", 1), ("7d", 7), ("30d", 30), ("90d", 90), ("1y", 365), (None, 30)]
)
def test_a_window_excludes_its_start_and_includes_its_end(
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


def test_an_empty_window_has_four_nulls_and_no_growth(cli: Cli, build: Build) -> None:
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


def test_the_median_of_an_even_number_is_the_mean_of_the_middle_two(cli: Cli, build: Build) -> None:
    observations = [("a", AS_OF - at, players) for at, players in enumerate([9, 1, 4, 100])]
    path = build([server("a"), server("b")], observations)

    assert cli("compare", "a", "b", "-s", path).json["data"][0]["medianPlayers"] == 6.5


def test_a_tiny_mean_is_written_as_in_ecmascript(cli: Cli, build: Build) -> None:
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


def test_at_moves_the_window_but_not_current_players(cli: Cli, build: Build) -> None:
    path = build(
        [server("a", players={"current": 99}), server("b")],
        [("a", AS_OF - DAY, 3), ("a", AS_OF, 5)],
    )
    before = cli("compare", "a", "b", "-s", path, "--at", "2026-02-28T12:00Z")
    first = before.json["data"][0]

    assert (first["currentPlayers"], first["peakPlayers"], first["sampleCount"]) == (99, 3, 1)
    assert before.stderr == ""


@pytest.mark.usefixtures("crossed_snapshot")
def test_at_before_all_data_gives_empty_windows(cli: Cli) -> None:
    ran = cli("compare", "a", "b", "--at", "0")

    assert [result["sampleCount"] for result in ran.json["data"]] == [0, 0]


@pytest.mark.usefixtures("crossed_snapshot")
def test_at_later_than_the_snapshot_is_answered_with_a_warning(cli: Cli) -> None:
    ran = cli("compare", "a", "b", "--at", "2026-03-02T00:00:00Z")

    assert ran.exit_code == 0
    assert [result["sampleCount"] for result in ran.json["data"]] == [2, 1]
    assert ran.stderr == (
        "warning: --at is later than the snapshot, which ends 2026-03-01 12:00:00 UTC\n"
    )


@pytest.mark.usefixtures("crossed_snapshot")
def test_at_changes_no_byte_of_get(cli: Cli) -> None:
    assert cli("get", "a", "--at", "1").stdout == cli("get", "a").stdout


@pytest.mark.parametrize(
    ("at", "warning"),
    [
        ("1744243200", "1970-01-21 04:30:43.200 UTC"),
        ("978307199999", "2000-12-31 23:59:59.999 UTC"),
        ("978307200000", None),
        ("1970-01-21T04:30Z", None),
    ],
)
def test_an_instant_in_seconds_is_answered_with_a_warning(
    cli: Cli, demo_snapshot: str, at: str, warning: str | None
) -> None:
    ran = cli("compare", "harbor-city", "old-guard", "--at", at, "-s", demo_snapshot)

    assert ran.exit_code == 0
    assert ran.stderr == (
        f"warning: --at {at}: read as milliseconds, {warning};"
        " if these are seconds, multiply by 1000\n"
        if warning
        else ""
    )
