"""Foreign text, escaped and without color codes; counts, times and durations; a progress bar."""

import json
import signal
import sys
import unicodedata
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from rich.console import Console

from conftest import AS_OF, DAY, Cli, build_in, server
from srvstat.contract.time import LATEST, parse_instant
from srvstat.documents.document import WindowPart, remove_color_codes
from srvstat.render.figures import format_title_window
from srvstat.render.progress import show_build_progress
from srvstat.render.text import (
    escape_non_ascii,
    escape_text,
    format_duration,
    format_exact_duration,
    format_local_time,
    format_ordinal,
    format_share,
    format_span_length,
)

SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000
DANGEROUS = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@pytest.mark.slow
def test_no_code_point_can_control_a_terminal() -> None:
    shown = escape_text("".join(map(chr, range(sys.maxunicode + 1))))

    assert {unicodedata.category(character) for character in set(shown)}.isdisjoint(DANGEROUS)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred", r"\u001b[31mred"),
        ("a\nb\tc\rd", r"a\u000ab\u0009c\u000dd"),
        ("\x9b2J\x7f", r"\u009b2J\u007f"),
        ("\u202egpj.exe", r"\u202egpj.exe"),
        ("\U000e0041", r"\U000e0041"),
        ("[/x] :smile: \\", "[/x] :smile: \\"),
        ("a\u3000b\u00a0c", "a b c"),
        ("\u3164\u2800", "\ufffd\ufffd"),
        ("z" + "\u0301" * 200 + "!", "z" + "\u0301" * 4 + "!"),
        ("日本 🎮", "日本 🎮"),
        ("\udcff", r"\udcff"),
    ],
)
def test_text_is_escaped_to_one_line(text: str, shown: str) -> None:
    assert escape_text(text) == shown


def test_long_text_is_cut_with_an_ellipsis() -> None:
    assert escape_text("abcdef", max_length=6) == "abcdef"
    assert escape_text("abcdefg", max_length=6) == "abcdef…"


def test_escape_non_ascii_escapes_every_other_character() -> None:
    assert escape_non_ascii("né… 日🎮") == r"n\u00e9... \u65e5\U0001f3ae"


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (0, "0 seconds"),
        (1000, "1 second"),
        (60_000, "1 minute"),
        (90_000, "90 seconds"),
        (3_600_000, "1 hour"),
        (5_400_000, "90 minutes"),
        (86_400_000, "1 day"),
        (100_000_000, "27 hours"),
        (259_200_000, "3 days"),
    ],
)
def test_a_duration_has_its_largest_fitting_unit(milliseconds: int, words: str) -> None:
    assert format_duration(milliseconds) == words


def test_an_exact_duration_has_all_units() -> None:
    assert format_exact_duration(86_400_000) == "1 day"
    assert format_exact_duration(365 * 86_400_000 // 30) == "12 days 4 hours"
    assert format_exact_duration(90_001) == "1 minute 30 seconds 1 millisecond"
    assert format_exact_duration(0) == "0 seconds"


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


@pytest.mark.parametrize(
    ("start", "end", "title"),
    [
        ("2026-02-22T12:00Z", "2026-03-01T12:00Z", "7 days to 2026-03-01 13:00 Europe/Berlin"),
        ("2026-03-01T11:00Z", "2026-03-01T12:00Z", "1 hour to 2026-03-01 13:00 Europe/Berlin"),
        (
            "2026-03-01T11:00:00.5Z",
            "2026-03-01T12:00:10Z",
            "2026-03-01 12:00:00.500 to 2026-03-01 13:00:10 Europe/Berlin",
        ),
        (
            "2026-03-21T22:59:59.999Z",
            "2026-03-29T21:59:59.999Z",
            "2026-03-22 00:00 to 2026-03-30 00:00 Europe/Berlin",
        ),
        (None, "2026-10-25T00:30Z", "all observations to 2026-10-25 02:30 +02:00 Europe/Berlin"),
    ],
)
def test_a_title_has_the_length_of_a_window_if_it_is_round(
    start: str | None, end: str, title: str
) -> None:
    first = None if start is None else parse_instant(start)
    window = WindowPart(from_=first, to=parse_instant(end))

    assert format_title_window(window, ZoneInfo("Europe/Berlin")) == title


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0%"), (0.5, "50%"), (0.9951, "99.5%"), (0.999_999, "99.9%"), (1.0, "100%")],
)
def test_only_a_whole_is_a_hundred_percent(share: float, text: str) -> None:
    assert format_share(share) == text


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        *((1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th")),
        *((13, "13th"), (21, "21st"), (101, "101st"), (111, "111th"), (2123, "2,123rd")),
    ],
)
def test_a_rank_is_an_ordinal_number(number: int, shown: str) -> None:
    assert format_ordinal(number) == shown


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("instant", "shown"),
    [
        ("2026-08-22T17:30:00Z", "Aug 22, 2026, 19:30"),
        ("2026-10-25T00:30:00Z", "Oct 25, 2026, 02:30 +02:00"),
        ("2026-10-25T01:30:00Z", "Oct 25, 2026, 02:30 +01:00"),
        ("2026-10-25T02:30:00Z", "Oct 25, 2026, 03:30"),
        ("2026-03-29T01:30:00Z", "Mar 29, 2026, 03:30"),
        ("2026-01-01T12:00:59.998Z", "Jan 1, 2026, 13:00"),
    ],
)
def test_a_time_has_an_offset_only_where_the_clock_shows_it_twice(instant: str, shown: str) -> None:
    assert format_local_time(parse_instant(instant), BERLIN) == shown


def test_a_day_and_a_month_are_local() -> None:
    at = parse_instant("2025-12-31T23:00:00Z")

    assert format_local_time(at, BERLIN, "day") == "Jan 1, 2026"
    assert format_local_time(at, BERLIN, "month") == "Jan 2026"
    assert format_local_time(LATEST, BERLIN) == "9999-12-31 23:59:59.999 UTC"


RAW = "^1Harbor ^5City^0"
IDS = ["a", "b"]
TABLES = [
    ["get", "a"],
    ["compare", *IDS],
    ["compare", *IDS, "--explain"],
    ["compare", *IDS, "--chart"],
    ["servers", "harbor city"],
    ["snapshot", "info"],
    ["stats", *IDS],
    ["top"],
    ["growth", "a"],
    ["peak-hours", *IDS],
    ["history", *IDS, "--step", "1d"],
    ["history", "a", "--chart", "--step", "1d"],
    ["integrity", *IDS],
    ["integrity", "a"],
]


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Build two servers with color codes in their names."""
    servers = [
        server(name, hostname=f"{RAW} {name}", projectName="^3Harbor^7", tags=["^2cars"])
        for name in IDS
    ]
    rows = [(name, AS_OF - day * DAY, 5 + day) for name in IDS for day in range(5)]
    return str(build_in(tmp_path_factory.mktemp("colors"), servers, rows))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (RAW, "Harbor City"),
        ("plain ^ text ^x ^", "plain ^ text ^x ^"),
        ("^^11", "^1"),
        ("^1 ^2", "^1 ^2"),
        ("^1", "^1"),
        ("", ""),
    ],
)
def test_color_codes_are_removed_unless_nothing_else_is_there(text: str, shown: str) -> None:
    assert remove_color_codes(text) == shown


@pytest.mark.parametrize("command", TABLES, ids=" ".join)
def test_no_table_shows_color_codes(command: list[str], snapshot: str, cli: Cli) -> None:
    ran = cli(*command, "--snapshot", snapshot, *([] if "--chart" in command else ["--table"]))

    assert ran.exit_code == 0, ran.stderr
    shown = ran.stdout.decode()
    assert "Harbor City" in shown
    assert "^" not in shown


def test_pictures_and_reports_show_no_color_codes(snapshot: str, tmp_path: Path, cli: Cli) -> None:
    for command, name in (("plot", "one.svg"), ("report", "one.html")):
        path = tmp_path / name
        assert cli(command, *IDS, "--snapshot", snapshot, "-o", str(path)).exit_code == 0
        text = path.read_text("utf-8")
        # The data of a report, and its commands, have the names unchanged.
        shown = text.partition('<script type="application/json"')[0]
        assert "Harbor City" in shown
        assert "^1" not in shown
        assert "^5" not in shown


def test_answers_and_documents_keep_color_codes(snapshot: str, cli: Cli) -> None:
    answer = cli("get", "a", "--snapshot", snapshot).json["data"]
    found = cli("servers", "--snapshot", snapshot, "--json").json["servers"]

    assert (answer["hostname"], answer["projectName"]) == (f"{RAW} a", "^3Harbor^7")
    assert json.dumps(found).count(RAW) == len(IDS)


HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


@pytest.mark.parametrize("moment", ["set_live", "push_render_hook", "print"])
def test_an_interrupted_bar_leaves_the_cursor_visible(
    moment: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    begin = getattr(Console, moment)
    interruptions = [SystemExit(128 + signal.SIGINT)]

    def interrupt(console: Console, *arguments: object) -> object:
        if interruptions:
            raise interruptions.pop()
        return begin(console, *arguments)

    monkeypatch.setattr(Console, moment, interrupt)

    with pytest.raises(SystemExit) as stopped, show_build_progress(None):
        pytest.fail("no interruption")

    shown = capfd.readouterr().err
    assert stopped.value.code == 130
    assert shown.rfind(SHOW_CURSOR) > shown.rfind(HIDE_CURSOR)
    assert (HIDE_CURSOR in shown) == (moment != "set_live")
