"""The fields of an observation: the same rules in CSV, in quoted CSV and in NDJSON."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from string import ascii_letters, digits

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conftest import AS_OF
from sources.readings import read_file
from srvstat.contract.time import LATEST, InstantError, parse_instant
from srvstat.sources.values import parse_number

LARGEST = 2**53 - 1
HEADER = "serverId,observedAt,players\n"
CHARACTERS = st.characters(codec="utf-8", exclude_characters='\n\r",')


def write_ndjson(server_id: str, observed_at: str, players: str) -> str:
    instant = json.dumps(observed_at)
    return f'{{"serverId":{json.dumps(server_id)},"observedAt":{instant},"players":{players}}}'


FORMS: dict[str, tuple[str, Callable[[str, str, str], str]]] = {
    "plain.csv": (HEADER, "{},{},{}".format),
    "quoted.csv": (HEADER, '"{}","{}","{}"'.format),
    "week.ndjson": ("\n", write_ndjson),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fields")


def read_row(
    folder: Path,
    name: str,
    *,
    server_id: str = "a",
    observed_at: str = "1772366400005",
    players: str = "7",
) -> tuple[str, int, int] | str:
    """Return the observation of a row in one of the forms, or the reason for its rejection."""
    header, write = FORMS[name]
    row = write(server_id, observed_at, players)
    found = read_file(folder / name, f"{header}{row}\n".encode())
    assert [*found.kept, *found.rejects] == [2]
    return found.kept[2] if found.kept else found.rejects[2][0]


SERVER_IDS = st.text(st.sampled_from(ascii_letters + digits + "-") | CHARACTERS, max_size=130)


@given(text=SERVER_IDS)
@example(text="a")
@example(text="--help")
@example(text="a" * 128)
@example(text="a" * 129)
@example(text="a_b")
@example(text="é")
@example(text="\u212a")
@example(text="\u017f")
def test_a_server_id_is_1_to_128_letters_digits_and_hyphens(text: str, folder: Path) -> None:
    is_valid = 1 <= len(text) <= 128 and set(text) <= set(ascii_letters + digits + "-")
    reason = "serverId: must be 1 to 128 letters, digits and hyphens"

    for name in FORMS:
        found = read_row(folder, name, server_id=text)
        assert found == ((text, 1772366400005, 7) if is_valid else reason)


NUMBERS = st.integers(0, 10**17).map(str) | st.text(st.sampled_from("0123456789-+._ eENax٣²"))


@given(text=NUMBERS)
@example(text="0")
@example(text="1000000000000000")
@example(text=str(LARGEST))
@example(text=str(LARGEST + 1))
@example(text="9" * 5000)
@example(text="")
@example(text="07")
@example(text="-0")
@example(text="+1")
@example(text="1\t")
@example(text="12.0")
@example(text="1e3")
@example(text="\uff11")
def test_players_are_plain_digits_up_to_the_largest_exact_integer(text: str, folder: Path) -> None:
    is_digits = text != "" and set(text) <= set(digits) and (text == "0" or text[0] != "0")
    is_valid = is_digits and len(text) <= 16 and int(text) <= LARGEST
    reason = "players: must be a whole number from 0 to 9007199254740991, in digits only"

    for name in ("plain.csv", "quoted.csv"):
        found = read_row(folder, name, players=text)
        assert found == (("a", 1772366400005, int(text)) if is_valid else reason)


def insert(text: str, at: int, character: str) -> str:
    return f"{text[:at]}{character}{text[at + 1 :]}"


TIMES = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["1970-01-01", "2024-02-29", "2026-02-29", "9999-12-31", "1969-12-31"]),
    st.sampled_from(["T00:00", " 12:00", "T23:59:59", " 12:00:60", "T12:00:00."]),
    st.sampled_from(["", ".0", ".123", ".999999999", ".1239"]),
    st.sampled_from(["Z", "", "+02:00", "-23:59", "+24:00", " Z"]),
)
INSTANTS = st.integers(0, 2 * LATEST).map(str) | TIMES
CHANGED_INSTANTS = st.builds(insert, INSTANTS, st.integers(0, 30), CHARACTERS)


@given(text=INSTANTS | CHANGED_INSTANTS)
@example(text="0001772366400000")
@example(text=str(LATEST))
@example(text=str(LATEST + 1))
@example(text="9" * 5000)
@example(text="")
@example(text="1_772_366_400_000")
@example(text="2026-03-01T12:00")
@example(text="2026-03-01T12:00:00.999999999999Z")
@example(text="2026-03-01T12:00:00.5Z")
@example(text="202\uff16-03-01T12:00Z")
def test_an_instant_is_parsed_as_in_the_contract(text: str, folder: Path) -> None:
    try:
        at = parse_number(text) if re.fullmatch("[0-9]+", text) else parse_instant(text)
        expected: tuple[str, int, int] | str = ("a", at, 7)
    except InstantError as error:
        expected = f"observedAt: {error}"

    for name in FORMS:
        assert read_row(folder, name, observed_at=text) == expected


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("978307200000", 978_307_200_000),
        ("2026-03-01T12:00Z", AS_OF),
        ("2026-03-01 12:00:59Z", AS_OF + 59_000),
        ("2026-03-01T12:00:00.1239Z", AS_OF + 123),
        ("2026-03-01 06:30:00.000-05:30", AS_OF),
    ],
)
@pytest.mark.parametrize("name", FORMS)
def test_an_instant_is_unix_milliseconds_or_a_time_with_its_zone(
    name: str, text: str, at: int, folder: Path
) -> None:
    assert read_row(folder, name, observed_at=text) == ("a", at, 7)
