"""The table of servers that compare and the analyzer share."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from srvstat.render.screen import Screen, build_server_table, escape_server
from srvstat.render.text import format_span_length

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000

names = st.text("abcXYZ019-", min_size=1, max_size=40)
hostnames = st.text("aZ «夜勤»é\u0301|\x1b\u202e", max_size=60).map(lambda text: f"h{text}")
notes = st.integers(0, 99).map(lambda number: f"note{number} of some words")


Server = tuple[tuple[str, ...], tuple[Text, ...], tuple[str, ...], str]
"""The hostname and identifiers, the figures, the notes and the rank of a server."""


@st.composite
def servers(draw: st.DrawFn) -> Server:
    figures = draw(st.tuples(st.integers(0, 99), st.integers(0, 2**53)))
    return (
        (draw(hostnames), draw(names), draw(names)),
        tuple(Text(f"{figure:,}") for figure in figures),
        tuple(draw(st.lists(notes, max_size=9))),
        draw(st.sampled_from(["", "7 ", "10 "])),
    )


@given(st.lists(servers(), min_size=1, max_size=4), st.one_of(st.none(), st.integers(40, 160)))
def test_all_parts_are_shown_within_the_width(shown: list[Server], width: int | None) -> None:
    screen = Screen(width)
    text = screen.render(
        *build_server_table(
            ("current", "peak"), [escape_server(screen, *one) for one in shown], screen
        )
    )
    words = text.replace(";", " ").split()

    assert max(map(cell_len, text.split("\n"))) <= (width or 10_000)
    for (_, *identifiers), _, of_notes, _ in shown:
        assert {*identifiers, *(word for note in of_notes for word in note.split())} <= {*words}
    header, *lines = text.split("\n")
    if not header.startswith("server "):
        return
    places = [at for at, line in enumerate(lines) if line and not line.startswith("  ")]
    for ((_, identifier, _), figures, _, rank), at in zip(shown, places, strict=True):
        title = f"{rank}{identifier}"
        # An id that is too wide has a line of its own.
        row = lines[at + 1] if lines[at] == title else lines[at]
        assert lines[at] == title or row.startswith(f"{title} ")
        assert row.endswith(f" {figures[1]}")
        assert cell_len(row) == len(header)


def test_notes_are_beside_identifiers_where_there_is_room() -> None:
    lines = [
        (("A", "a", "x-a"), (Text("1"),), ("one", "two"), "1 "),
        (("long-name", "long-name", "x"), (Text("20"),), ("three",), "2 "),
    ]
    shown = {
        screen.width: screen.render(
            *build_server_table(("peak",), [escape_server(screen, *one) for one in lines], screen)
        )
        for screen in map(Screen, (29, 40, 80))
    }

    assert shown == {
        29: ("1 a\nA  x-a\npeak   1\none; two\n\n2 long-name\nx\npeak  20\nthree\n"),
        40: (
            "server                    peak\n"
            "1 a                          1\n  A  x-a\n  one; two\n"
            "2 long-name                 20\n  x\n  three\n"
        ),
        80: (
            "server                    peak\n"
            "1 a                          1\n  A  x-a  one; two\n"
            "2 long-name                 20\n  x       three\n"
        ),
    }


def test_a_length_is_rounded_to_two_units() -> None:
    lengths = {
        0: "0 seconds",
        999: "999 milliseconds",
        59_999: "59 seconds 999 milliseconds",
        HOUR - 1: "1 hour",
        HOUR + 29 * SECOND: "1 hour",
        HOUR + 30 * SECOND: "1 hour 1 minute",
        12 * DAY + 4 * HOUR + 29 * MINUTE: "12 days 4 hours",
        12 * DAY + 23 * HOUR + 30 * MINUTE: "13 days",
    }

    assert {length: format_span_length(length) for length in lengths} == lengths
