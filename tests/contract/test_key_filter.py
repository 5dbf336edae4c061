"""The filter finds keys and hides them in reasons; tests/asgi/ tests it in the service."""

import pytest

from srvstat.contract.key_filter import HIDDEN, KeyFilter

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
