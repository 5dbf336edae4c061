"""Read JSON that is unusual, and find the lines of values in TOML."""

import tomllib
from contextlib import suppress
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srvstat.files.json_stream import NotJsonError, parse_events
from srvstat.files.toml import find_line
from support.records import AccessFile, access_files

EACH_BACKEND = pytest.mark.usefixtures("backend")


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
@EACH_BACKEND
def test_a_lone_surrogate_is_replaced(escaped: str, text: str, size: int) -> None:
    json = f'"{escaped}"'.encode()
    chunks = [json[start : start + size] for start in range(0, len(json), size)]

    assert list(parse_events(chunks)) == [("string", text)]


@pytest.mark.parametrize("number", [b"1" * 5_000, b"-" + b"1" * 5_000, b"1." + b"1" * (50 << 20)])
@EACH_BACKEND
def test_a_number_that_is_too_long_is_not_json(number: bytes) -> None:
    chunks = (number[start : start + 65_536] for start in range(0, len(number), 65_536))

    with pytest.raises(NotJsonError):
        list(parse_events(chunks))


@pytest.mark.parametrize("number", ["1" * 4_301, "-" + "1" * 5_000])
@EACH_BACKEND
def test_values_before_a_number_that_is_too_long_are_read(number: str) -> None:
    events = parse_events([f'["a", {number}, "b"]'.encode()])

    assert [value for _, value in islice(events, 2)] == [None, "a"]
    with pytest.raises(NotJsonError):
        [value for _, value in events]


@EACH_BACKEND
def test_an_exponent_that_is_too_large_is_not_json_or_is_read() -> None:
    with suppress(NotJsonError):
        assert len(list(parse_events([b"1e99999999999999999999"]))) == 1


def _has_value(text: str, location: tuple[int | str, ...]) -> bool | None:
    """Return whether a text has a value, or None if it is not TOML."""
    try:
        value = tomllib.loads(text)
        for step in location:
            value = value[step]  # type: ignore[index] # the location matches the value
    except tomllib.TOMLDecodeError:
        return None
    except (IndexError, KeyError):
        return False
    return True


def _list_locations(value: object) -> list[tuple[int | str, ...]]:
    """Return the locations of all parts of a value."""
    steps = enumerate(value) if isinstance(value, list) else []
    below = list(value.items() if isinstance(value, dict) else steps)
    return [(step, *rest) for step, part in below for rest in [(), *_list_locations(part)]]


@given(access_files(), st.data())
def test_the_line_is_where_the_statement_of_the_value_begins(
    file: AccessFile, data: st.DataObject
) -> None:
    text = file[0]
    location = data.draw(st.sampled_from(_list_locations(tomllib.loads(text))))

    lines = text.splitlines(keepends=True)
    line = find_line(text, location)

    assert _has_value("".join(lines[: line - 1]), location) is False
    ends = (_has_value("".join(lines[:end]), location) for end in range(line, len(lines) + 1))
    assert next(end for end in ends if end is not None)


@pytest.mark.parametrize(
    ("text", "location", "line"),
    [
        ("a = 1\nb.c = [\n1,\n2]\nb.d = 3", ("b", "d"), 5),
        ("a = 1\nb.c = [\n1,\n2]\nb.d = 3", ("b", "c", 1), 2),
        ("[a]\nb = 1\n[a.c]\nd = {e = {f = 1}}", ("a", "c", "d", "e", "f"), 4),
        ("[a.b]\nc = 1\n[a.d]", ("a", "e"), 1),
        ("[[a]]\n[a.b]\nc = 1\n[[a]]\n[a.b]\nc = 2", ("a", 1, "b", "c"), 6),
        ("[[a]]\n[[a.b]]\n[[a]]\n[[a.b]]\n[[a.b]]\nc = 1", ("a", 1, "b", 1, "c"), 6),
        ("a = '''\n[b]\n'''\n[b]\nc = 1", ("b", "c"), 5),
        ('a = """\n\\"""]\n"""""\n[b]\nc = 1', ("b", "c"), 5),
        ('a = \'[\'  # [\n[b]\nc = "]\\"["\nd = 1', ("b", "d"), 4),
        ('a = ["""x"""", "]"]\n[b]\nc = 1', ("b", "c"), 3),
        ("a = ['x', '''y'''', ']']\n[b]\nc = 1", ("b", "c"), 3),
        ("a = 1", ("b",), 1),
        ("", ("b",), 1),
    ],
)
def test_a_line_is_found_in_every_form_of_toml(
    text: str, location: tuple[int | str, ...], line: int
) -> None:
    assert find_line(text, location) == line
