"""On which line of a TOML text something stands."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srvstat.files.toml_lines import find_line
from support.access import AccessFile, access_files


def _holds(text: str, location: tuple[int | str, ...]) -> bool | None:
    """Say whether a text has a value; None where it is no TOML."""
    try:
        value = tomllib.loads(text)
        for step in location:
            value = value[step]  # type: ignore[index] # the location says what is an array
    except tomllib.TOMLDecodeError:
        return None
    except (IndexError, KeyError):
        return False
    return True


def _locations(value: object) -> list[tuple[int | str, ...]]:
    """Return where each part of a value stands."""
    steps = enumerate(value) if isinstance(value, list) else []
    below = list(value.items() if isinstance(value, dict) else steps)
    return [(step, *rest) for step, part in below for rest in [(), *_locations(part)]]


@given(access_files(), st.data())
def test_the_line_of_a_value_is_that_of_the_statement_that_brings_it(
    file: AccessFile, data: st.DataObject
) -> None:
    text = file[0]
    location = data.draw(st.sampled_from(_locations(tomllib.loads(text))))

    lines = text.splitlines(keepends=True)
    line = find_line(text, location)

    assert _holds("".join(lines[: line - 1]), location) is False
    ends = (_holds("".join(lines[:end]), location) for end in range(line, len(lines) + 1))
    assert next(held for held in ends if held is not None)


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
def test_a_line_is_found_in_whatever_form(
    text: str, location: tuple[int | str, ...], line: int
) -> None:
    assert find_line(text, location) == line
