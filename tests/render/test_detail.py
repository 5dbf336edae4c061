"""The table of one server."""

from conftest import AS_OF, DAY, Build, Cli, server
from support.terminal import run_srvstat_in_terminal


def test_a_description_keeps_only_its_line_breaks(build: Build, cli: Cli) -> None:
    text = "\nOne\r\nTwo\n\nThree\x1b[2J\x0b\u2028\u202eFour\rFive\n\n"
    path = build([server("a", projectDescription=text)], [("a", AS_OF, 1)])
    shown = cli("get", "a", "-s", path, "--table").stdout.decode()
    start = shown.index("projectDescription")

    assert [line[20:] for line in shown[start:].split("\n")[:6]] == [
        "One",
        "Two",
        "",
        r"Three\u001b[2J\u000b\u2028\u202eFour",
        "Five",
        "–",  # noqa: RUF001 - the region is empty
    ]


def test_a_hostname_stays_on_one_line(build: Build, cli: Cli) -> None:
    path = build([server("a", hostname="a\nid  b")], [("a", AS_OF, 1)])

    assert cli("get", "a", "-s", path, "--table").stdout.startswith(rb"a\u000aid  b")


def test_a_server_shows_when_it_was_last_seen(build: Build, cli: Cli) -> None:
    observations = [("a", AS_OF - 40 * DAY, 1), ("a", AS_OF - 32 * DAY, 1), ("c", AS_OF, 1)]
    path = build([server(name) for name in "abc"], observations)

    def find_last_seen(name: str, *options: str) -> str:
        shown = cli("get", name, "-s", path, "--table", *options).stdout.decode()
        return shown[shown.rindex("last seen ") :].removeprefix("last seen").strip()

    assert find_last_seen("a") == "2026-01-28 12:00:00 UTC (32 days before the snapshot)"
    assert find_last_seen("b") == "never"
    assert find_last_seen("c") == "2026-03-01 12:00:00 UTC (the time of the snapshot)"
    at = ("--at", "2026-01-22T12:00Z")
    assert find_last_seen("a", *at) == "2026-01-20 12:00:00 UTC (2 days before the as-of time)"
    assert find_last_seen("c", *at) == "never"


def test_the_players_of_a_silent_server_are_not_those_of_today(build: Build, cli: Cli) -> None:
    record = {"players": {"current": 3, "max": 9}}
    path = build(
        [server(name, **record) for name in "abc"],
        [("a", AS_OF, 1), ("b", AS_OF - 2 * DAY, 1), ("b", AS_OF - 9 * DAY, 1)],
    )
    past = ("--at", str(AS_OF - 9 * DAY))
    for name, options, expected in (
        ("a", (), "3 of 9\n"),
        ("a", past, "3 of 9, as of the snapshot\n"),
        ("b", (), "3 of 9, last seen Feb 27\n"),
        ("b", past, "3 of 9, as of the snapshot, last seen Feb 27\n"),
        ("c", (), "3 of 9, not seen\n"),
    ):
        shown = cli("get", name, "-s", path, "--table", *options).stdout.decode()
        assert f"\nplayers             {expected}" in shown
    explained = cli("compare", "a", "b", "-s", path, "--explain", "--table").stdout.decode()
    assert "\ncurrent: 3, from the server record; it is not an observation\n" in explained
    assert "\ncurrent: 3, last seen Feb 27, from the server record; it is not" in explained


def test_with_at_the_player_count_is_marked_as_of_the_snapshot(build: Build) -> None:
    path = build([server("a", players={"current": 3, "max": 9})], [("a", AS_OF, 1)])
    _, shown = run_srvstat_in_terminal("get", "a", "-s", path, "--at", "2026-01-22T12:00Z")

    assert "3 of 9, as of the snapshot\n" in shown
    assert "as of               2026-01-22 12:00:00 UTC\n" in shown
