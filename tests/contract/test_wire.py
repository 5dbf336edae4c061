"""Encode JSON to the bytes of ECMAScript (D7), and decode it strictly (D9)."""

import json
import math
import shutil
import struct
import subprocess
import unicodedata
from collections.abc import Callable
from random import Random
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srvstat.contract import wire

LARGEST_SAFE = 2**53 - 1
CHARACTERS = [
    chr(code)
    for code in (
        *range(0xD800),
        *range(0xE000, 0x40000),
        *range(0xE0000, 0xE0200),  # planes 4 to 13 have no characters, 15 and 16 only private ones
        0x10FFFF,
    )
]

NUMBERS = [
    (0, b"0"),
    (9007199254740991, b"9007199254740991"),
    (-0.0, b"0"),
    (0.1 + 0.2, b"0.30000000000000004"),
    (4503599627370495.5, b"4503599627370495.5"),
    (0.0000012345, b"0.0000012345"),
    (-1e-7, b"-1e-7"),
    (1e16, b"10000000000000000"),
    (999999999999999900000.0, b"999999999999999900000"),
    (-1e21, b"-1e+21"),
    (5e-324, b"5e-324"),
    (-1.7976931348623157e308, b"-1.7976931348623157e+308"),
]


@pytest.mark.parametrize(("value", "text"), NUMBERS)
def test_a_number_is_encoded_as_in_ecmascript(value: float, text: bytes) -> None:
    assert wire.encode(value) == text


def test_a_string_is_encoded_as_in_ecmascript() -> None:
    text = '"\\/\b\f\n\r\t\x00\x0b\x1b\x7f\x9fé\u2028\ufeff\U0001f680<&>' + "'"
    escaped = r'"\"\\/\b\f\n\r\t\u0000\u000b\u001b' + "\x7f\x9fé\u2028\ufeff\U0001f680<&>'\""
    assert wire.encode(text) == escaped.encode()


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("wrapped", [lambda value: value, lambda value: {"a": [value]}])
def test_nan_and_infinity_cannot_be_encoded(number: float, wrapped: Callable[[float], Any]) -> None:
    with pytest.raises(ValueError, match=r"^not a JSON number: NaN or infinite$"):
        wire.encode(wrapped(number))


def test_a_lone_surrogate_cannot_be_encoded() -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        wire.encode("\ud800")


class Name(str):
    """A subclass of str."""

    __slots__ = ()


OTHERS = [Name("text"), b"bytes", {"set"}, range(3), iter([1]), MappingProxyType({"a": 1})]


@pytest.mark.parametrize("value", OTHERS, ids=[type(value).__name__ for value in OTHERS])
@pytest.mark.parametrize("wrapped", [lambda value: value, lambda value: {"a": [value]}])
def test_a_value_of_any_other_type_is_an_error(value: Any, wrapped: Callable[[Any], Any]) -> None:
    with pytest.raises(KeyError):
        wire.encode(wrapped(value))


def node(script: str, stdin: bytes) -> bytes:
    """Run a script in Node, the reference for ECMAScript."""
    if shutil.which("node") is None:
        pytest.skip("needs node")
    done = subprocess.run(
        ["node", "-e", script], input=stdin, capture_output=True, timeout=60, check=True
    )
    return done.stdout


def list_doubles() -> list[float]:
    """Return random doubles, quotients as in statistics, and neighbors of powers of ten."""
    random = Random(1)  # noqa: S311 - the same in every run
    bits = [struct.unpack(">d", random.randbytes(8))[0] for _ in range(40_000)]
    doubles = [*filter(math.isfinite, bits)]
    for _ in range(10_000):
        integer = random.getrandbits(53) >> random.randrange(53)
        doubles += [integer / random.randint(1, 100_000), float(integer), -(integer >> 1) / 2]
        doubles.append(-100 * random.randrange(5_000) / random.randint(1, 5_000))
    for exponent in range(-324, 309):
        below = above = float(f"1e{exponent}")
        doubles.append(below)
        for _ in range(8 if abs(exponent) > 25 else 100):
            below, above = math.nextafter(below, 0), math.nextafter(above, math.inf)
            doubles += [below, -above]
    return doubles


def test_numbers_are_encoded_as_in_node() -> None:
    doubles = list_doubles()
    assert len(doubles) > 80_000
    script = """
        const bytes = require("node:fs").readFileSync(0);
        const texts = [];
        for (let at = 0; at < bytes.length; at += 8) {
            texts.push(JSON.stringify(bytes.readDoubleBE(at)));
        }
        process.stdout.write(texts.join("\\n"));
    """
    expected = node(script, struct.pack(f">{len(doubles)}d", *doubles)).split(b"\n")

    different = [
        (double, ours, text)
        for double, text in zip(doubles, expected, strict=True)
        if (ours := wire.encode(double)) != text
    ]
    assert different == []


def test_strings_and_key_order_are_encoded_as_in_node() -> None:
    lines = ["".join(CHARACTERS[at : at + 97]) for at in range(0, len(CHARACTERS), 97)]
    value = {
        "text": lines,
        "alone": CHARACTERS[:0x3000],
        "z\u2028\x1f": {"b": 1.0, "a": [None, True, -0.0]},
        "emoji": "👩‍👩‍👧‍👦 🇸🇪 🏴‍☠️",
        "a": '"\\\b\f\n\r\t\x00\x7f',
    }
    script = """
        const text = require("node:fs").readFileSync(0, "utf8");
        process.stdout.write(JSON.stringify(JSON.parse(text)));
    """
    expected = node(script, json.dumps(value).encode("ascii"))

    assert wire.encode(value) == expected


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-LARGEST_SAFE, LARGEST_SAFE)
    | st.floats(-LARGEST_SAFE, LARGEST_SAFE)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@pytest.mark.parametrize("value", [None, 'a"b', 12.0, [{"b": True}, ()], {}])
def test_a_value_encoded_once_is_the_same_text_in_others(value: Any) -> None:
    assert wire.encode({"a": wire.encode_once(value)}) == wire.encode({"a": value})


@given(value=json_values)
def test_a_value_survives_encoding_and_decoding(value: Any) -> None:
    body = wire.encode(value)

    assert wire.decode(body) == value
    assert json.loads(body) == value
    assert wire.decode(wire.escape_for_terminal(body)) == value


def can_control_a_terminal(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Cf", "Zl", "Zp"}


def test_escaping_for_a_terminal_keeps_the_value() -> None:
    text = "".join(CHARACTERS)

    shown = wire.escape_for_terminal(wire.encode(text))

    assert json.loads(shown) == text
    assert list(filter(can_control_a_terminal, set(shown.decode()))) == []


ESCAPED = [
    ("\x7f\x80\xad", b"\\u007f\\u0080\\u00ad"),
    ("\u200f\u2028\u202e\ufeff", b"\\u200f\\u2028\\u202e\\ufeff"),
    ("\U000e0001\U000e007f", b"\\udb40\\udc01\\udb40\\udc7f"),
    ("\x1b[31m", b"\\u001b[31m"),
    ("é ü 漢 🚀 a\u0301", "é ü 漢 🚀 a\u0301".encode()),
]


@pytest.mark.parametrize(("text", "shown"), ESCAPED)
def test_only_characters_that_can_control_a_terminal_are_escaped(text: str, shown: bytes) -> None:
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
def test_decoding_coerces_nothing(body: bytes, value: Any) -> None:
    decoded = wire.decode(body)

    assert (type(decoded), decoded) == (type(value), value)


REJECTED = [
    (b'{"a":1,"a":1}', 'the key "a" is repeated'),
    (b'{"a":1,"\\u0061":2}', 'the key "a" is repeated'),
    (b'{"a\\n":1,"a\\n":2}', 'the key "a\\n" is repeated'),
    (b"\xef\xbb\xbf{}", "starts with a byte order mark"),
    (b'"\xff"', "not UTF-8 at byte 2"),
    (b'"\xed\xa0\x80"', "not UTF-8 at byte 2"),
    (b'"\xe2\x82"', "not UTF-8 at byte 2"),
    ("{}".encode("utf-16"), "not UTF-8 at byte 1"),
    (b"NaN", "NaN is not JSON"),
    (b"[Infinity]", "Infinity is not JSON"),
    (b'{"a":-Infinity}', "-Infinity is not JSON"),
    (b"1" * 5000, "an integer of 5000 digits is too long"),
    (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
]


@pytest.mark.parametrize(("body", "reason"), REJECTED, ids=[reason for _, reason in REJECTED])
def test_json_outside_our_rules_is_rejected_with_a_reason(body: bytes, reason: str) -> None:
    with pytest.raises(wire.JsonError) as caught:
        wire.decode(body)

    assert str(caught.value) == reason


NOT_JSON = [
    b"",
    b" ",
    b"{} {}",
    b"{}\x00",
    b"\x00{}",
    b"{}\xef\xbb\xbf",
    b"\xc2\xa0{}",
    b"{}\xc2\xa0",
    b"\x0c{}",
    b"{}\x0c",
    b"{}\x0b",
    b"{}\xe2\x80\xa8",
    b"/* c */{}",
    b'"\n"',
    b'"\x1f"',
    "\u0661".encode(),
    "1\u0661".encode(),
    "{}".encode("utf-16-le"),
    "{}".encode("utf-16-be"),
    *rb"""
        {}{} {}, {}x {}//c {}# { [ "a [1,] [,1] {,} {"a":1,} {"a"} {"a":} {a:1} {'a':1}
        "\x41" "\u12" "\u+041" 01 -01 +1 .5 5. 1e 0x10 1_000 -
        nan inf +Infinity -NaN True None undefined
    """.split(),
]


@pytest.mark.parametrize("body", NOT_JSON)
def test_invalid_json_is_rejected_with_its_position(body: bytes) -> None:
    with pytest.raises(wire.JsonError, match=r"^not JSON at (line \d+, )?column \d+: [^\n]+$"):
        wire.decode(body)


def test_the_position_of_an_error_is_a_line_and_a_column() -> None:
    with pytest.raises(wire.JsonError, match=r"^not JSON at line 3, column 3: "):
        wire.decode(b'{\n"a":\n  x}')


def test_numbers_can_keep_their_text() -> None:
    text = b'{"a":[12.0,1e5,-0,9007199254740993],"b":"12"}'
    decoded = wire.decode(text, convert_number=wire.EncodedJson)

    assert wire.encode(decoded) == text
    assert repr(decoded["a"]) == "[12.0, 1e5, -0, 9007199254740993]"
