"""Comparisons as a table and as cards."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from conftest import AS_OF, DAY, Build, Cli, server
from srvstat.contract.ranges import Window
from srvstat.contract.responses import CompareResponse, GrowthFields, ServerResult
from srvstat.documents.analysis import ComparedServer, Comparison, StepCell
from srvstat.render.screen import Screen
from srvstat.render.tables.comparison import render_comparison
from support.terminal import run_srvstat_in_terminal

HOUR = DAY // 24
BAR = "│"
NONE = "–"  # noqa: RUF001 - the dash of a table

FIGURE = re.compile(
    r"(?P<name>current|average|median|peak|lowest|first → last) +[^ ]+( → \S+)?( \S+%)?"
)

identifiers = st.text("abcXYZ019-", min_size=1, max_size=24)
hostnames = st.text("aZ «夜勤»é\u0301|\x1b\u202e", max_size=60).map(lambda text: f"h{text}")
counts = st.one_of(st.integers(0, 9), st.integers(0, 9_999_999), st.integers(0, 2**53 - 1))


@st.composite
def servers(draw: st.DrawFn) -> ComparedServer:
    """Draw a server with statistics of any size, or without observations."""
    name = draw(identifiers)
    first, last, top = draw(counts), draw(counts), draw(counts)
    seen = draw(st.booleans())
    result = ServerResult(
        serverId=name,
        cfxId=draw(st.one_of(st.just(name), identifiers)),
        range="30d",
        currentPlayers=draw(counts),
        averagePlayers=top / 3 if seen else None,
        medianPlayers=top / 2 if seen else None,
        peakPlayers=top if seen else None,
        lowestPlayers=first if seen else None,
        growth=GrowthFields(
            players=last - first if seen else None,
            percentage=100 * (last - first) / first if seen and first else None,
        ),
        sampleCount=draw(st.integers(1, 99_999)) if seen else 0,
    )
    return ComparedServer(
        result,
        draw(st.one_of(st.just(name), hostnames)),
        tuple(
            StepCell(1, 1, draw(st.floats(0, top)), draw(st.floats(0, 1)))
            if seen
            else StepCell(0, 1, None, 0.0)
            for _ in range(30)
        ),
        draw(st.integers(1, 30)) if seen else 0,
        first if seen else None,
        AS_OF - draw(st.sampled_from([0, 3 * DAY])) if seen else None,
    )


def build_comparison(*shown: ComparedServer) -> Comparison:
    """Return a comparison of servers over 30 days."""
    response = CompareResponse(range="30d", data=tuple(one.result for one in shown))
    return Comparison(response, shown, Window(AS_OF - 30 * DAY, AS_OF), AS_OF, "day", DAY)


def expand_wide_characters(line: str) -> str:
    """Repeat each character by its number of cells on the screen."""
    return "".join(character * cell_len(character) for character in line)


def format_expected(shown: ComparedServer) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each figure except the first and the last count."""
    result = shown.result
    silent = "not seen" if shown.last_observed_at is None else "last seen Feb 26"
    yield "current", f"{result.currentPlayers:,}" if shown.last_observed_at == AS_OF else silent
    average, median = result.averagePlayers, result.medianPlayers
    yield "average", NONE if average is None else f"{average:,.2f}"
    yield "median", NONE if median is None else f"{median:,.1f}".removesuffix(".0")
    for name, count in (("peak", result.peakPlayers), ("lowest", result.lowestPlayers)):
        yield name, NONE if count is None else f"{count:,}"


@given(st.lists(servers(), min_size=2, max_size=5), st.one_of(st.none(), st.integers(60, 220)))
def test_figures_end_below_their_names(shown: list[ComparedServer], width: int | None) -> None:
    text = render_comparison(build_comparison(*shown), Screen(width))
    header, *lines = map(expand_wide_characters, text.split("\n\n", maxsplit=1)[0].split("\n"))

    assert max(map(cell_len, text.split("\n"))) <= (width or 1_000)
    for name in {name for one in shown for name in (one.result.serverId, one.result.cfxId)}:
        assert name in text
    if not header.startswith("server "):
        return
    places = [at for at, line in enumerate(lines) if not line.startswith("  ")]
    for one, at in zip(shown, places, strict=True):
        # An id that is too wide has a line of its own.
        row = lines[at + 1] if lines[at] == one.result.serverId else lines[at]
        for name, value in format_expected(one):
            assert row[: header.index(name) + len(name)].endswith(f" {value}")
    assert width is None or width >= 80
    assert len({line.index(BAR) for line in lines if BAR in line}) == 1


def test_a_terminal_below_80_columns_gets_cards_with_aligned_figures(build: Build) -> None:
    path = build(
        [server("a", hostname="夜勤"), server("b")],
        [
            ("a", AS_OF - HOUR, 12_345),
            ("a", AS_OF, 9_000),
            ("b", AS_OF - HOUR, 70),
            ("b", AS_OF, 7),
        ],
    )
    for columns in (40, 60, 79):
        _, shown = run_srvstat_in_terminal("compare", "a", "b", "-s", path, columns=columns)
        first, second = (
            [
                (found["name"], *found.span())
                for line in card.split("\n")
                for found in FIGURE.finditer(line)
            ]
            for card in shown.split("\n\n")[:2]
        )
        assert len(first) == 6
        assert first == second
    _, shown = run_srvstat_in_terminal("compare", "a", "b", "-s", path, columns=90)
    assert shown.startswith("server ")


def test_the_first_and_the_last_count_have_a_percentage_from_10_players_on(
    build: Build, cli: Cli
) -> None:
    changes = {
        "up": (80, 90),
        "down": (9_000, 80),
        "same": (10, 10),
        "small": (2, 78),
        "new": (0, 9),
        "idle": (0, 0),
        "left": (9, 0),
    }
    observations = [
        (name, AS_OF - HOUR * (1 - at), count)
        for name, pair in changes.items()
        for at, count in enumerate(pair)
    ]
    path = build([server(name) for name in changes], observations)
    shown_pairs = []
    for names in (["up", "down", "same", "small"], ["new", "idle", "left"]):
        shown = cli("compare", *names, "-s", path, "--table").stdout.decode()
        lines = shown.split("\n")
        end = lines[0].index("first → last") + len("first → last")
        rows = [line[:end] for line in lines if line.split(" ")[0] in names]
        shown_pairs += [re.split("  +", row)[-1] for row in rows]

    assert shown_pairs == [
        "80 → 90 +12.5%",
        "9,000 → 80 -99.1%",
        "10 → 10 0.0%",
        "2 → 78",
        "0 → 9",
        "0 → 0",
        "9 → 0",
    ]


def test_the_first_count_is_that_in_the_window(build: Build, cli: Cli) -> None:
    observations = [("a", AS_OF - DAY - 1, 500), ("a", AS_OF - DAY, 50), ("a", AS_OF - HOUR, 2)]
    path = build([server("a"), server("b")], [*observations, ("a", AS_OF, 3)])

    assert (
        " 2 → 3 "
        in cli("compare", "a", "b", "-s", path, "--range", "24h", "--table").stdout.decode()
    )


def test_the_first_and_the_last_count_have_an_arrow_of_ascii_where_they_must(build: Build) -> None:
    path = build([server("a"), server("b")], [("a", AS_OF - HOUR, 2), ("a", AS_OF, 78)])
    for columns in (60, 80, 140):
        env = {"LC_ALL": "C", "TERM": "dumb"}
        _, shown = run_srvstat_in_terminal(
            "compare", "a", "b", "-s", path, columns=columns, env=env
        )
        assert " 2 -> 78" in shown
        assert "first -> last " in shown
        assert shown.isascii()


def test_a_drawing_rounds_to_the_nearest_mark_and_reserves_the_lowest_for_zero(
    build: Build, cli: Cli
) -> None:
    # Seven steps from 0 to the highest average, 700.
    hours = [700, 651, 649, 0, 1, 351, 349]
    observations = [("a", AS_OF - HOUR * at, count) for at, count in enumerate(hours, 1)]
    path = build([server("a"), server("b")], [*observations, ("b", AS_OF, 0)])
    shown = cli("compare", "a", "b", "-s", path, "--range", "24h", "--table").stdout.decode()

    assert f" ▄▅▂▁▇██{BAR}" in shown
    assert "each row from 0 to its highest average: a 700, b 0 (part of an hour)\n" in shown


@pytest.mark.parametrize(
    ("range", "mark"),
    [("24h", "an hour"), ("7d", "6 hours"), ("30d", "a day"), ("90d", "3 days"), ("1y", "14 days")],
)
def test_the_notes_have_the_dates_and_the_length_of_a_mark(
    range: str, mark: str, build: Build, cli: Cli
) -> None:
    days = {"24h": 1, "7d": 7, "30d": 30, "90d": 90, "1y": 365}[range]
    start = {
        1: "2026-02-28",
        7: "2026-02-22",
        30: "2026-01-30",
        90: "2025-12-01",
        365: "2025-03-01",
    }[days]
    path = build([server("a"), server("b")], [("a", AS_OF, 1)])
    shown = cli("compare", "a", "b", "-s", path, "--range", range, "--table").stdout.decode()

    assert f"{start} to 2026-03-01, each mark is the average of {mark};" in shown


def test_a_row_shows_how_much_was_observed_and_when_a_silent_server_was_last_seen(
    build: Build, cli: Cli
) -> None:
    observations = [
        *(("full", AS_OF - DAY * at, 5) for at in range(7)),
        *(("day", AS_OF - DAY - at * HOUR, 5) for at in range(3)),
        *(("silent", AS_OF - DAY - 1 - at * DAY, 5) for at in range(3)),
        ("gone", AS_OF - 90 * DAY, 5),
    ]
    names = ["full", "day", "silent", "gone", "never"]
    path = build([server(name) for name in names], observations)
    ran = cli("compare", *names, "-s", path, "--range", "7d", "--table")
    lines = ran.stdout.decode().split("\n\n")[0].split("\n")[1:]

    assert [line.split("  ")[-1].strip() for line in lines[1::2]] == [
        "7 observations",
        "3 in 1 of 7 days",
        "3 in 3 of 7 days",
        "0 observations",
        "0 observations",
    ]
    assert [line[24:].strip().split("  ")[0] for line in lines[::2]] == [
        "5",
        "5",
        "last seen Feb 28",
        "last seen 2025-12-01",
        "not seen",
    ]
    assert ran.stderr == ""


def test_an_identifier_equal_to_another_name_is_shown_once(build: Build) -> None:
    long = "l" * 40
    path = build(
        [
            server("all", cfxId="all"),
            server("host", cfxId="other"),
            server("twice", cfxId="twice", hostname="Twice"),
            server(long, cfxId="y", hostname=long),
        ],
        [("all", AS_OF, 1)],
    )
    for columns in (60, 80, 140):
        _, shown = run_srvstat_in_terminal(
            "compare", "all", "host", "twice", long, "-s", path, columns=columns
        )
        listed = shown[: shown.index("window ")]
        for name, times in (("all", 1), ("host", 1), ("other", 1), ("twice", 1), (long, 1)):
            assert listed.split().count(name) == times, (columns, name)


def test_notes_wrap_between_words(build: Build, cli: Cli) -> None:
    path = build([server("a"), server("b")], [("a", AS_OF, 1)])
    whole = cli("compare", "a", "b", "-s", path, "--table").stdout.decode()
    for columns in (45, 60, 80, 100):
        _, shown = run_srvstat_in_terminal("compare", "a", "b", "-s", path, columns=columns)
        notes = shown[shown.index("window ") :]
        assert notes.split() == whole[whole.index("window ") :].split()


def test_with_at_the_notes_date_the_current_players(build: Build, cli: Cli) -> None:
    path = build([server("a"), server("b")], [("a", AS_OF, 1)])
    note = "current       from the server record, as of 2026-03-01 12:00:00 UTC\n"
    compared = ("compare", "a", "b", "-s", path, "--table")

    assert note not in cli(*compared).stdout.decode()
    assert note in cli(*compared, "--at", "2026-02-01T00:00Z").stdout.decode()


def test_a_window_that_starts_before_1970_has_dates(build: Build, cli: Cli) -> None:
    path = build([server("a"), server("b")], [("a", AS_OF, 1)])
    shown = cli("compare", "a", "b", "-s", path, "--at", str(20 * DAY), "--table").stdout.decode()

    assert (
        "window        after 1969-12-22 00:00:00 UTC, to 1970-01-21 00:00:00 UTC inclusive" in shown
    )
    assert "30d           1969-12-22 to 1970-01-21, each mark" in shown
