"""Parse JSON that is unusual: lone surrogates, and numbers that ijson can't convert."""

from contextlib import suppress
from itertools import islice

import pytest

from srvstat.files.json_stream import NotJsonError, parse_events

pytestmark = pytest.mark.usefixtures("backend")


@pytest.mark.parametrize("size", [1, 7, 1_000])
@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        (r"\udc00\ud800", "\ufffd\ufffd"),
        (r"\uD83D\uDE00\uDE00", "😀\ufffd"),
        (r"\ud83d\ud83d\ude00", "\ufffd😀"),
        (r"\\ud83d\\\ud83d", "\\ud83d\\\ufffd"),
        (r"\ud7ff\ue000", "\ud7ff\ue000"),
    ],
)
def test_a_lone_surrogate_is_replaced(escaped: str, text: str, size: int) -> None:
    json = f'"{escaped}"'.encode()
    chunks = [json[start : start + size] for start in range(0, len(json), size)]

    assert list(parse_events(chunks)) == [("string", text)]


@pytest.mark.parametrize("number", [b"1" * 5_000, b"-" + b"1" * 5_000, b"1." + b"1" * (50 << 20)])
def test_a_number_that_is_too_long_is_not_json(number: bytes) -> None:
    chunks = (number[start : start + 65_536] for start in range(0, len(number), 65_536))

    with pytest.raises(NotJsonError):
        list(parse_events(chunks))


@pytest.mark.parametrize("number", ["1" * 4_301, "-" + "1" * 5_000])
def test_values_before_a_number_that_is_too_long_are_read(number: str) -> None:
    events = parse_events([f'["a", {number}, "b"]'.encode()])

    assert [value for _, value in islice(events, 2)] == [None, "a"]
    with pytest.raises(NotJsonError):
        [value for _, value in events]


def test_an_exponent_that_is_too_large_is_not_json_or_is_read() -> None:
    with suppress(NotJsonError):
        assert len(list(parse_events([b"1e99999999999999999999"]))) == 1
