"""Keys are found and hidden, however they are escaped; tests/asgi/ has tests of the service."""

import json
import time
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srvstat.operations.redaction import HIDDEN, KeyFilter

GENERATED = "srvstat_" + "Ab3_-cD4" * 5 + "xyz"
FILTER = KeyFilter(["the-own-key", "short"], lambda key: key == b"registered-key")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the-own-key", True),
        ("before-the-own-key-after", True),
        (GENERATED, True),
        ("registered-key", True),
        ("a-registered-key", False),
        ("short", False),
        ("a-short-word", False),
    ],
)
def test_a_text_with_a_key_is_found(text: str, expected: bool) -> None:
    assert FILTER.has_key(text) is expected


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (f"no id {GENERATED}", f"no id {HIDDEN}"),
        ("no id the-own-", f"no id {HIDDEN}"),
        ('range: "12345678" is not', 'range: "…" is not'),
        ('range: "1234567…', 'range: "1234567…'),
        ("no id a-harmless-name", "no id a-harmless-name"),
    ],
)
def test_keys_and_long_quotations_are_removed_from_a_reason(reason: str, expected: str) -> None:
    assert FILTER.redact(reason) == expected


def test_a_long_path_is_hidden_in_a_moment() -> None:
    started = time.process_time()

    assert FILTER.hide_foreign_path(b"/x" * 200_000) == "/x" * 200_000
    assert FILTER.hide_foreign_path(b"/a:b@/c@d" + b"/x" * 9) == "/…@d" + "/x" * 9

    assert time.process_time() - started < 5  # only a quadratic search takes longer


def escape_percent(key: str) -> str:
    return "".join(f"%{byte:02x}" for byte in key.encode())


def escape_unicode(key: str) -> str:
    return "".join(f"\\u{unit:04X}" for unit in memoryview(key.encode("utf-16-le")).cast("H"))


def quote_all(key: str) -> str:
    return quote(key, safe="")


def quote_twice(key: str) -> str:
    return quote_all(quote_all(key))


def escape_json(key: str) -> str:
    return json.dumps(key)[1:-1]


FORMS = [str, quote_all, quote_twice, escape_percent, escape_json, escape_unicode]
KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=8, max_size=12)


@given(
    KEYS,
    st.sampled_from(FORMS),
    st.text('a/?&=%\\": \u00e9', max_size=7),
    st.text("a/?&=\u00e9", max_size=7),
)
def test_an_own_key_is_hidden_anywhere(
    key: str, escape: Callable[[str], str], before: str, after: str
) -> None:
    key_filter = KeyFilter([key.encode().decode("latin-1")], lambda _: False)

    hidden = key_filter.hide(f"{before}|{escape(key)}|{after}".encode()).decode()

    assert hidden == f"{before}|…|{after}"


@pytest.mark.parametrize(
    ("place", "escapes"),
    [
        ("{}", FORMS),
        ("/servers/{}", [quote_all, quote_twice, escape_percent]),
        ("/servers/a?by={}&by=a", [quote_all, escape_percent]),
        ("/servers/a?{}&by=a", [quote_all, escape_percent]),
        ('{{"a": "{}", "b": 1}}', [escape_json, escape_unicode]),
        ('{{"{}":"long enough"}}', [escape_json, escape_unicode]),
        ("no id {}.", [lambda _: "registered-key"]),
    ],
)
@pytest.mark.parametrize(
    "key", ["registered-key", 'gr\u00fcn "\U0001f511" und\\rot\n', "abc/d+e=="]
)
def test_a_registered_key_is_hidden_where_it_is_a_whole_part(
    place: str, escapes: list[Callable[[str], str]], key: str
) -> None:
    registered = {key.encode(), b"registered-key"}
    key_filter = KeyFilter([], registered.__contains__)

    for escape in escapes:
        hidden = key_filter.hide(place.format(escape(key)).encode()).decode()
        assert hidden == place.format("…")


def test_overlapping_and_generated_keys_become_one_mark() -> None:
    key_filter = KeyFilter(["abcdefgh", "efghijkl", "abcdefghij"], lambda _: False)

    assert key_filter.hide(b"-abcdefghijklm") == "-…m".encode()
    assert key_filter.hide(b'"srvstat_%41bcdefghi"') == '"…"'.encode()
    assert key_filter.hide(b"\xff%zz\\x no keys") == b"\xff%zz\\x no keys"


def test_a_key_in_latin_1_is_hidden_in_utf_8() -> None:
    key_filter = KeyFilter(["gr\u00fcn-und-blau"], lambda _: False)

    assert key_filter.hide("gr\u00fcn-und-blau".encode()) == "…".encode()


def test_short_keys_stay() -> None:
    key_filter = KeyFilter(["short"], {b"servers"}.__contains__)

    assert key_filter.hide(b"/servers/short") == b"/servers/short"
    assert key_filter.hide(b"short") == b"short"
