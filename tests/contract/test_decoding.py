"""Decode JSON strictly (D9)."""

from typing import Any

import pytest

from srvstat.contract import wire

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


def test_text_is_decoded_by_the_rules_for_bytes() -> None:
    with pytest.raises(wire.JsonError, match=r"^starts with a byte order mark$"):
        wire.decode_text("\ufeff{}")
    with pytest.raises(wire.JsonError, match=r'^the key "a" is repeated$'):
        wire.decode_text('{"a":1,"a":1}')

    assert wire.decode_text(' {"a":"é"}\n') == {"a": "é"}


def test_numbers_can_keep_their_text() -> None:
    text = b'{"a":[12.0,1e5,-0,9007199254740993],"b":"12"}'
    decoded = wire.decode(text, keep_numbers=True)

    assert wire.encode(decoded) == text
    assert repr(decoded["a"]) == "[12.0, 1e5, -0, 9007199254740993]"
