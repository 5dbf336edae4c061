"""JSON in, strictly, and JSON out, byte for byte as ECMAScript writes it (D7, D9)."""

import hashlib
import json
import math
import shutil
import struct
import subprocess
import unicodedata
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srvstat.contract import wire

LARGEST_SAFE = 2**53 - 1
EVERY_CHARACTER = [chr(code) for code in (*range(0xD800), *range(0xE000, 0x110000))]

NUMBERS = [
    (0, b"0"),
    (-1, b"-1"),
    (9007199254740991, b"9007199254740991"),
    (0.0, b"0"),
    (-0.0, b"0"),
    (12.0, b"12"),
    (-12.0, b"-12"),
    (12.5, b"12.5"),
    (0.1, b"0.1"),
    (0.1 + 0.2, b"0.30000000000000004"),
    (100 / 3, b"33.333333333333336"),
    (-200 / 3, b"-66.66666666666667"),
    (1 / 3, b"0.3333333333333333"),
    (9007199254740991.0, b"9007199254740991"),
    (9007199254740992.0, b"9007199254740992"),
    (4503599627370495.5, b"4503599627370495.5"),
    (0.001, b"0.001"),
    (0.0001, b"0.0001"),
    (0.00012, b"0.00012"),
    (0.0000095, b"0.0000095"),
    (-0.0000095, b"-0.0000095"),
    (0.000001, b"0.000001"),
    (0.0000012345, b"0.0000012345"),
    (0.00000099, b"9.9e-7"),
    (1e-7, b"1e-7"),
    (-1e-7, b"-1e-7"),
    (1.5e-7, b"1.5e-7"),
    (1e-10, b"1e-10"),
    (1e15, b"1000000000000000"),
    (1e16, b"10000000000000000"),
    (1.5e16, b"15000000000000000"),
    (1e20, b"100000000000000000000"),
    (123456789012345680000.0, b"123456789012345680000"),
    (999999999999999900000.0, b"999999999999999900000"),
    (1e21, b"1e+21"),
    (-1e21, b"-1e+21"),
    (1.5e21, b"1.5e+21"),
    (1.2345e22, b"1.2345e+22"),
    (1e100, b"1e+100"),
    (5e-324, b"5e-324"),
    (2.2250738585072014e-308, b"2.2250738585072014e-308"),
    (1.7976931348623157e308, b"1.7976931348623157e+308"),
    (-1.7976931348623157e308, b"-1.7976931348623157e+308"),
]


@pytest.mark.parametrize(("value", "text"), NUMBERS)
def test_a_number_is_written_as_ecmascript_writes_it(value: float, text: bytes) -> None:
    assert wire.encode(value) == text


STRINGS = [
    ("", b'""'),
    ("plain", b'"plain"'),
    ('"\\/', b'"\\"\\\\/"'),
    ("\b\f\n\r\t", b'"\\b\\f\\n\\r\\t"'),
    ("\x00\x01\x0b\x1b\x1f", b'"\\u0000\\u0001\\u000b\\u001b\\u001f"'),
    ("\x7f\x80\x9f", b'"\x7f\xc2\x80\xc2\x9f"'),
    ("é", b'"\xc3\xa9"'),
    ("\u2028\u2029", b'"\xe2\x80\xa8\xe2\x80\xa9"'),
    ("\ufeff", b'"\xef\xbb\xbf"'),
    ("\U0001f680", b'"\xf0\x9f\x9a\x80"'),
    ("<&>'", b'"<&>\'"'),
]


@pytest.mark.parametrize(("value", "text"), STRINGS)
def test_a_string_is_written_as_ecmascript_writes_it(value: str, text: bytes) -> None:
    assert wire.encode(value) == text


VALUES = [
    (None, b"null"),
    (True, b"true"),
    (False, b"false"),
    ([], b"[]"),
    ({}, b"{}"),
    ((1, "a", None), b'[1,"a",null]'),
    ([1.0, [True, {}]], b"[1,[true,{}]]"),
    ({"b": 1, "a": {"d": [], "c": 2.0}}, b'{"b":1,"a":{"d":[],"c":2}}'),
    ({'"\n': "é"}, b'{"\\"\\n":"\xc3\xa9"}'),
]


@pytest.mark.parametrize(("value", "text"), VALUES)
def test_a_value_is_written_compactly_with_its_keys_in_the_order_given(
    value: Any, text: bytes
) -> None:
    assert wire.encode(value) == text


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("wrapped", [lambda value: value, lambda value: {"a": [value]}])
def test_a_number_that_json_cannot_say_is_refused(
    number: float, wrapped: Callable[[float], Any]
) -> None:
    with pytest.raises(ValueError, match=r"^not a JSON number: NaN or infinite$"):
        wire.encode(wrapped(number))


def test_half_a_character_is_not_written() -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        wire.encode("\ud800")


class Name(str):
    """A text of another type, which is an iterable of texts."""

    __slots__ = ()


OTHERS = [Name("text"), b"bytes", {"set"}, range(3), iter([1]), MappingProxyType({"a": 1})]


@pytest.mark.parametrize("value", OTHERS, ids=[type(value).__name__ for value in OTHERS])
@pytest.mark.parametrize("wrapped", [lambda value: value, lambda value: {"a": [value]}])
def test_how_a_value_of_another_type_is_to_be_written_is_not_guessed(
    value: Any, wrapped: Callable[[Any], Any]
) -> None:
    with pytest.raises(KeyError):
        wire.encode(wrapped(value))


def node(script: str, stdin: bytes) -> bytes:
    """Run a script in Node, the ECMAScript that anyone can check us against."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed; the tables of literals stand alone")
    done = subprocess.run(
        ["node", "-e", script], input=stdin, capture_output=True, timeout=60, check=True
    )
    return done.stdout


def seeded_integers(seed: str, count: int) -> tuple[int, ...]:
    """Return integers of 64 random bits, the same in every run."""
    stream = hashlib.shake_256(seed.encode()).digest(8 * count)
    return struct.unpack(f">{count}Q", stream)


def doubles_of_random_bits(count: int) -> Iterator[float]:
    for bits in seeded_integers("bits", count):
        (double,) = struct.unpack(">d", bits.to_bytes(8))
        if math.isfinite(double):
            yield double


def quotients_as_statistics_have_them(count: int) -> Iterator[float]:
    tops = seeded_integers("tops", count)
    bottoms = seeded_integers("bottoms", count)
    for top, bottom in zip(tops, bottoms, strict=True):
        yield (top >> top % 64) / (1 + bottom % 100_000)
        yield -100 * (top % 5000) / (1 + bottom % 5000)


def integers_and_halves(count: int) -> Iterator[float]:
    for number in seeded_integers("integers", count):
        integer = (number >> 11) >> number % 53
        yield float(integer)
        yield -(integer >> 1) / 2
    yield from (float(2**53 - step) for step in range(-10, 10))


def doubles_around_the_changes_of_form() -> Iterator[float]:
    for exponent in range(-324, 309):
        around = float(f"1e{exponent}")
        below = above = around
        for _ in range(8 if abs(exponent) > 25 else 100):
            below, above = math.nextafter(below, 0), math.nextafter(above, math.inf)
            yield from (below, -above)
        yield around
    for numerator in range(1, 2000):
        for denominator in (10**6, 10**7, 10**8, 3 * 10**7):
            yield numerator / denominator
        yield numerator * 1e18
        yield numerator * 1e19


def test_numbers_are_the_bytes_of_nodes_json() -> None:
    doubles = [
        *doubles_of_random_bits(60_000),
        *quotients_as_statistics_have_them(30_000),
        *integers_and_halves(15_000),
        *doubles_around_the_changes_of_form(),
    ]
    assert len(doubles) > 150_000
    script = """
        const bytes = require("node:fs").readFileSync(0);
        const texts = [];
        for (let at = 0; at < bytes.length; at += 8) {
            texts.push(JSON.stringify(bytes.readDoubleBE(at)));
        }
        process.stdout.write(texts.join("\\n"));
    """
    theirs = node(script, struct.pack(f">{len(doubles)}d", *doubles)).split(b"\n")

    different = [
        (double, ours, text)
        for double, text in zip(doubles, theirs, strict=True)
        if (ours := wire.encode(double)) != text
    ]
    assert different == []


def test_strings_and_the_order_of_keys_are_the_bytes_of_nodes_json() -> None:
    lines = ["".join(EVERY_CHARACTER[at : at + 97]) for at in range(0, len(EVERY_CHARACTER), 97)]
    value = {
        "text": lines,
        "alone": EVERY_CHARACTER[:0x3000],
        "z\u2028\x1f": {"b": 1.0, "a": [None, True, -0.0]},
        "emoji": "👩‍👩‍👧‍👦 🇸🇪 🏴‍☠️",
        "a": '"\\\b\f\n\r\t\x00\x7f',
    }
    script = """
        const text = require("node:fs").readFileSync(0, "utf8");
        process.stdout.write(JSON.stringify(JSON.parse(text)));
    """
    theirs = node(script, json.dumps(value).encode("ascii"))

    assert wire.encode(value) == theirs


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-LARGEST_SAFE, LARGEST_SAFE)
    | st.floats(-LARGEST_SAFE, LARGEST_SAFE)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@settings(max_examples=300)
@given(value=json_values)
def test_what_is_written_reads_back_as_the_same_value(value: Any) -> None:
    body = wire.encode(value)

    assert wire.decode(body) == value
    assert json.loads(body) == value
    assert wire.decode(wire.escape_for_terminal(body)) == value


@given(double=st.floats(allow_nan=False, allow_infinity=False))
def test_a_written_double_reads_back_as_itself(double: float) -> None:
    assert float(wire.encode(double)) == double


def drives_a_terminal(character: str) -> bool:
    """Say whether a character is a control, a format character or a separator of lines."""
    return unicodedata.category(character) in {"Cc", "Cf", "Zl", "Zp"}


def test_for_a_terminal_every_character_keeps_its_value_and_none_can_drive_it() -> None:
    text = "".join(EVERY_CHARACTER)

    shown = wire.escape_for_terminal(wire.encode(text))

    assert json.loads(shown) == text
    assert list(filter(drives_a_terminal, set(shown.decode()))) == []


FOR_A_TERMINAL = [
    ("\x7f", b"\\u007f"),
    ("\x80\x9b\x9f", b"\\u0080\\u009b\\u009f"),
    ("\xad", b"\\u00ad"),
    ("\u061c", b"\\u061c"),
    ("\u200b\u200d\u200e\u200f", b"\\u200b\\u200d\\u200e\\u200f"),
    ("\u2028\u2029", b"\\u2028\\u2029"),
    ("\u202a\u202b\u202c\u202d\u202e", b"\\u202a\\u202b\\u202c\\u202d\\u202e"),
    ("\u2066\u2067\u2068\u2069", b"\\u2066\\u2067\\u2068\\u2069"),
    ("\ufeff", b"\\ufeff"),
    ("\U000e0001\U000e007f", b"\\udb40\\udc01\\udb40\\udc7f"),
    ("\x1b[31m", b"\\u001b[31m"),
    ("é ü 漢 🚀 a\u0301", "é ü 漢 🚀 a\u0301".encode()),
]


@pytest.mark.parametrize(("text", "shown"), FOR_A_TERMINAL)
def test_for_a_terminal_only_what_can_drive_it_is_escaped(text: str, shown: bytes) -> None:
    assert wire.escape_for_terminal(wire.encode({text: text})) == b'{"%b":"%b"}' % (shown, shown)


ACCEPTED: list[tuple[bytes, Any]] = [
    (b"12", 12),
    (b"12.0", 12.0),
    (b"-0", -0.0),
    (b"-0.0", -0.0),
    (b"1e2", 100.0),
    (b"9007199254740993", 9007199254740993),
    (b"true", True),
    (b"null", None),
    (b'""', ""),
    (b" \t\r\n[ 1 ,\n2 ] \t\r\n", [1, 2]),
    (b'{"a":{"a":1},"b":{"a":2}}', {"a": {"a": 1}, "b": {"a": 2}}),
    (b'{"a":1,"A":2}', {"a": 1, "A": 2}),
    (b'"\\u0061\\ud83d\\ude80\xf0\x9f\x9a\x80"', "a🚀🚀"),
    (b'"\xef\xbb\xbf"', "\ufeff"),
    (b'"\x7f\xc2\xa0"', "\x7f\xa0"),
]


@pytest.mark.parametrize(("body", "value"), ACCEPTED)
def test_json_is_read_with_nothing_coerced(body: bytes, value: Any) -> None:
    read = wire.decode(body)

    assert (type(read), read) == (type(value), value)


REFUSED = [
    (b'{"a":1,"a":1}', 'the key "a" is repeated'),
    (b'[{"b":{"a":1,"c":2,"a":3}}]', 'the key "a" is repeated'),
    (b'{"a":1,"\\u0061":2}', 'the key "a" is repeated'),
    (b'{"":1,"":2}', 'the key "" is repeated'),
    (b'{"a\\n":1,"a\\n":2}', 'the key "a\\n" is repeated'),
    (b"\xef\xbb\xbf{}", "starts with a byte order mark"),
    (b'"\xff"', "not UTF-8 at byte 2"),
    (b'"\xc0\xaf"', "not UTF-8 at byte 2"),
    (b'"\xed\xa0\x80"', "not UTF-8 at byte 2"),
    (b'"\xf4\x90\x80\x80"', "not UTF-8 at byte 2"),
    (b'"\xe2\x82"', "not UTF-8 at byte 2"),
    ("{}".encode("utf-16"), "not UTF-8 at byte 1"),
    (b"NaN", "NaN is not JSON"),
    (b"[Infinity]", "Infinity is not JSON"),
    (b'{"a":-Infinity}', "-Infinity is not JSON"),
    (b"1" * 5000, "an integer of 5000 digits is too long"),
    (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
    (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply"),
]


@pytest.mark.parametrize(("body", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_json_that_others_forgive_is_refused_with_its_reason(body: bytes, reason: str) -> None:
    with pytest.raises(wire.JsonError) as refused:
        wire.decode(body)

    assert str(refused.value) == reason


NOT_JSON = [
    b"",
    b" ",
    b"{} {}",
    b"{}{}",
    b"{},",
    b"{}x",
    b"{}\x00",
    b"\x00{}",
    b"{}\xef\xbb\xbf",
    b"\xc2\xa0{}",
    b"{}\xc2\xa0",
    b"\x0c{}",
    b"{}\x0c",
    b"{}\x0b",
    b"{}\xe2\x80\xa8",
    b"[1,]",
    b"[,1]",
    b'{"a":1,}',
    b"{,}",
    b"{a:1}",
    b"{'a':1}",
    b'{"a"}',
    b'{"a":}',
    b"{",
    b"[",
    b'"a',
    b"/* c */{}",
    b"{}// c",
    b"{}#",
    b'"\n"',
    b'"\x1f"',
    b'"\\x41"',
    b'"\\u12"',
    b'"\\u+041"',
    b"01",
    b"-01",
    b"+1",
    b".5",
    b"5.",
    b"1e",
    b"0x10",
    b"1_000",
    b"-",
    "\u0661".encode(),
    "1\u0661".encode(),
    b"nan",
    b"inf",
    b"+Infinity",
    b"-NaN",
    b"True",
    b"None",
    b"undefined",
    "{}".encode("utf-16-le"),
    "{}".encode("utf-16-be"),
]


@pytest.mark.parametrize("body", NOT_JSON)
def test_what_is_not_one_json_value_is_refused_at_its_place(body: bytes) -> None:
    with pytest.raises(wire.JsonError, match=r"^not JSON at (line \d+, )?column \d+: [^\n]+$"):
        wire.decode(body)


def test_the_reason_gives_the_line_and_the_column() -> None:
    with pytest.raises(wire.JsonError, match=r"^not JSON at line 3, column 3: "):
        wire.decode(b'{\n"a":\n  x}')


def test_text_is_judged_as_its_bytes_are() -> None:
    with pytest.raises(wire.JsonError, match=r"^starts with a byte order mark$"):
        wire.decode_text("\ufeff{}")
    with pytest.raises(wire.JsonError, match=r'^the key "a" is repeated$'):
        wire.decode_text('{"a":1,"a":1}')

    assert wire.decode_text(' {"a":"é"}\n') == {"a": "é"}
