"""Find the lines of values in TOML texts."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srvstat.files.toml import find_line
from support.records import AccessFile, access_files


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
