"""Foreign text escaped for a terminal; counts, times and durations."""

import sys
import unicodedata

import pytest

from srvstat.render.text import (
    escape_non_ascii,
    escape_text,
    format_duration,
    format_exact_duration,
    format_ordinal,
    format_share,
)

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
