"""Times and player counts as text, in all forms and in every kind of source."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path
from string import ascii_letters, digits
from typing import TypeVar
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from conftest import AS_OF
from sources.readings import read_file, read_table
from srvstat.contract.time import LATEST, InstantError, parse_instant
from srvstat.sources.columns import EMPTY_COUNT, MALFORMED, Column, parse_counts, parse_times
from srvstat.sources.mapping import STRICT, ColumnMapping
from srvstat.sources.source import Source
from srvstat.sources.values import RowError, parse_number

Law = TypeVar("Law", bound=Callable[..., None])

PLAIN = ColumnMapping()
SECONDS = ColumnMapping(time_unit="s")
MILLISECONDS = ColumnMapping(time_unit="ms")
MICROSECONDS = ColumnMapping(time_unit="us")
NANOSECONDS = ColumnMapping(time_unit="ns")
UTC_TIMES = ColumnMapping(time_zone="UTC")
DAY_FIRST = ColumnMapping(time_zone="UTC", time_format="day-first")
MONTH_FIRST = ColumnMapping(time_zone="UTC", time_format="month-first")
DECLARED = ColumnMapping(time_zone="UTC", time_format="%y/%d/%m %H h %M")
WITH_OFFSET = ColumnMapping(time_format="%H:%M%z %d%m%Y")
BERLIN = ColumnMapping(time_zone="Europe/Berlin")
NEW_YORK = ColumnMapping(time_zone="America/New_York")

AT = 1_741_129_200_000  # 2025-03-04 23:00 UTC
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("mapping", "text"),
    [
        (PLAIN, "1741129200000"),
        (PLAIN, " 1741129200000.0 "),
        (PLAIN, "2025-03-04T23:00:00Z"),
        (PLAIN, "2025-03-04 23:00:00.000999 UTC"),
        (PLAIN, "2025-03-05 00:00+01"),
        (PLAIN, "2025-03-04 19:30:00 -0330"),
        (SECONDS, "1741129200"),
        (SECONDS, "1741129200.0009"),
        (SECONDS, "2025-03-04T23:00Z"),
        (UTC_TIMES, "2025-03-04 23:00:00"),
        (UTC_TIMES, "1741129200000"),
        (BERLIN, "2025-03-05"),
        (BERLIN, "2025-03-05T00:00:00.0"),
        (BERLIN, "2025-03-04T23:00:00Z"),
        (PLAIN, "20250304T230000Z"),
        (PLAIN, "Tue Mar 04 2025 23:00:00 GMT+0000 (Coordinated Universal Time)"),
        (PLAIN, "Tue Mar  4 23:00:00 UTC 2025"),
        (PLAIN, "Wed, 05 Mar 2025 00:00:00 +0100"),
        (MICROSECONDS, "1741129200000999"),
        (NANOSECONDS, "1741129200000999999"),
        (UTC_TIMES, "20250304230000"),
        (UTC_TIMES, "202503042300"),
        (UTC_TIMES, "20250304 23:00"),
        (UTC_TIMES, "2025/3/4 23:00"),
        (UTC_TIMES, "2025. 3. 4. 23:00"),
        (UTC_TIMES, "04.03.2025 23:00"),
        (UTC_TIMES, "4.3.2025, 23:00:00,0"),
        (UTC_TIMES, "4-Mar-25 11 PM"),
        (UTC_TIMES, "4 March 2025 23:00"),
        (UTC_TIMES, "Tuesday, March 4th, 2025 at 11:00 p.m."),
        (UTC_TIMES, "23:00 04.03.2025"),
        (BERLIN, "Mar 5, 2025"),
        (BERLIN, "20250305"),
        (DAY_FIRST, "04/03/2025 23:00"),
        (DAY_FIRST, "4-3-25 23:00"),
        (DAY_FIRST, "04.03.25 23:00"),
        (DAY_FIRST, "2025-03-04 23:00"),
        (MONTH_FIRST, "3/4/2025, 11:00:00\u202fPM"),
        (DECLARED, "25/04/03 23 h 00"),
        (WITH_OFFSET, "00:00+0100 05032025"),
    ],
)
def test_a_time_is_a_number_or_a_date(mapping: ColumnMapping, text: str) -> None:
    assert mapping.parse_time(text) == AT


NO_TIME = "unknown time format; set it with --time-format"
DAY_OR_MONTH = "day or month first? add --time-format day-first or month-first"
NO_ZONE = "no time zone; add Z or an offset such as +02:00"
OUTSIDE = "outside the years 1970 to 9999"
EARLY = "before 2001 as milliseconds"
LIKE_SECONDS = f"{EARLY}; it looks like Unix seconds"
LIKE_MILLISECONDS = "after the year 9999 as seconds; it looks like Unix milliseconds"


@pytest.mark.parametrize(
    ("mapping", "text", "reason"),
    [
        (PLAIN, "2025-03-04 23:00:00", NO_ZONE),
        (SECONDS, "2025-03-04", NO_ZONE),
        (PLAIN, "1741129200", LIKE_SECONDS),
        (UTC_TIMES, "1741129200.0", LIKE_SECONDS),
        (MILLISECONDS, "1741129200.0", LIKE_SECONDS),
        (MILLISECONDS, "253402300799", LIKE_SECONDS),
        (PLAIN, "978307199999", EARLY),
        (PLAIN, "0", EARLY),
        (PLAIN, "1411", EARLY),
        (UTC_TIMES, "20149923", EARLY),
        (UTC_TIMES, "20141123.5", EARLY),
        (UTC_TIMES, "020141123", EARLY),
        (PLAIN, "20141123", NO_ZONE),
        (UTC_TIMES, "19691231", OUTSIDE),
        (BERLIN, "19700101", OUTSIDE),
        (SECONDS, "1741129200000", LIKE_MILLISECONDS),
        (SECONDS, "9" * 5000, OUTSIDE),
        (PLAIN, "9" * 15, OUTSIDE),
        (PLAIN, "1.7e12", NO_TIME),
        (PLAIN, "-5", NO_TIME),
        (UTC_TIMES, "04/03/2025 23:00", DAY_OR_MONTH),
        (UTC_TIMES, "13/03/2025 23:00", DAY_OR_MONTH),
        (UTC_TIMES, "3-4-25", DAY_OR_MONTH),
        (UTC_TIMES, "04.03.25 23:00", DAY_OR_MONTH),
        (MONTH_FIRST, "13/03/2025", "invalid date"),
        (PLAIN, "04.03.2025 23:00", NO_ZONE),
        (UTC_TIMES, "4 March 23:00", NO_TIME),
        (UTC_TIMES, "2025-03-04 23:00 CET", NO_TIME),
        (UTC_TIMES, "04.03.2025 00:00 23:00", NO_TIME),
        (UTC_TIMES, "2025-03-04 13:00 PM", "no such time of day (hours 1 to 12 before AM and PM)"),
        (UTC_TIMES, "20251304230000", "invalid date"),
        (MICROSECONDS, "1741129200000", "before 2001 in the unit of --time-unit"),
        (DECLARED, "2025-03-04T23:00:00Z", "does not match --time-format"),
        (WITH_OFFSET, "00:00+0100 01011970", OUTSIDE),
        (PLAIN, "", "missing"),
        (PLAIN, "٣", NO_TIME),
        (UTC_TIMES, "2025-02-29 12:00:00", "invalid date"),
        (UTC_TIMES, "1969-12-31 12:00:00", OUTSIDE),
        (BERLIN, "1970-01-01 00:30:00", OUTSIDE),
        (NEW_YORK, "9999-12-31 23:30:00", OUTSIDE),
        (BERLIN, "2025-03-30 02:30", "does not exist in Europe/Berlin, where the clock"),
        (BERLIN, "2025-10-26 02:30:00", "occurs twice in Europe/Berlin, where the clock"),
    ],
)
def test_any_other_time_is_an_error(mapping: ColumnMapping, text: str, reason: str) -> None:
    with pytest.raises(RowError) as caught:
        mapping.parse_time(text)

    assert str(caught.value).startswith(f"observedAt: {reason}")


@pytest.mark.parametrize("text", ["20250305", "20250305.0", " 20250305 "])
def test_eight_digits_that_are_a_day_are_its_midnight(text: str) -> None:
    assert BERLIN.parse_time(text) == AT
    assert SECONDS.parse_time("20250305") == 20_250_305_000
    assert MILLISECONDS.parse_time("20250305") == 20_250_305


@pytest.mark.parametrize("at", [0, 1_411, 20_250_305, 253_402_300_800, 978_307_199_999])
def test_a_declared_unit_is_that_of_any_number(at: int) -> None:
    assert MILLISECONDS.parse_time(str(at)) == at


@given(
    minutes=st.lists(st.integers(0, 4_200_000_000 // 60), min_size=1, max_size=5),
    zone=st.sampled_from(["Europe/Berlin", "Australia/Lord_Howe", "Africa/Monrovia", "UTC"]),
)
def test_a_local_time_is_the_only_instant_with_that_clock_time(
    minutes: list[int], zone: str
) -> None:
    mapping = ColumnMapping(time_zone=zone)
    # Around an instant, so that changes of the clock are as frequent as any time.
    moments = [EPOCH + timedelta(minutes=each + 86_400) for each in minutes]
    for moment in moments:
        local = moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        text = local.isoformat(sep=" ", timespec="seconds")
        offsets = {
            (moment + timedelta(hours=hours)).astimezone(ZoneInfo(zone)).utcoffset()
            for hours in (-24, 24)
        }
        instants = [
            at
            for offset in offsets
            if (at := local.replace(tzinfo=UTC) - (offset or timedelta()))
            .astimezone(ZoneInfo(zone))
            .replace(tzinfo=None)
            == local
        ]
        if len(instants) == 1:
            expected = (instants[0] - EPOCH) // timedelta(milliseconds=1)
            assert mapping.parse_time(text) == expected
        else:
            with pytest.raises(RowError):
                mapping.parse_time(text)


def test_a_zone_can_choose_one_of_two_equal_times_when_the_clock_is_set_back() -> None:
    found = [
        ColumnMapping(time_zone=f"Europe/Berlin:{choice}").parse_time("2025-10-26 02:30")
        for choice in ("first", "second")
    ]

    assert found == [1_761_438_600_000, 1_761_442_200_000]


COMMAS, POINTS, SPACES, APOSTROPHES = (
    ColumnMapping(thousands=character) for character in (",", ".", " ", "'")
)
ROUNDED = ColumnMapping(rounds=True)
EMPTY = ("", " ", "NA", "NaN", "null", "NULL", "None", r"\N", "-", "\u2013", "n/a", "#N/A", "?")


@pytest.mark.parametrize(
    ("mapping", "text", "count"),
    [
        (PLAIN, "0", 0),
        (PLAIN, "007", 7),
        (PLAIN, " 12 ", 12),
        (PLAIN, "12.", 12),
        (PLAIN, "12.0000", 12),
        (PLAIN, "0.000", 0),
        (PLAIN, "9007199254740991", 2**53 - 1),
        (COMMAS, "1,942", 1942),
        (COMMAS, "1,234,567.0", 1_234_567),
        (COMMAS, "942", 942),
        (POINTS, "1.942", 1942),
        (POINTS, "12.000,00", 12_000),
        (SPACES, "1 942", 1942),
        (SPACES, "1\u202f942", 1942),
        (APOSTROPHES, "1'942", 1942),
        (APOSTROPHES, "1\u2019942", 1942),
        (ROUNDED, "72.5", 73),
        (ROUNDED, "72.49", 72),
        (ROUNDED, "1.942", 2),
        (ROUNDED, "4.1000000000e+01", 41),
        (replace(POINTS, rounds=True), "1.942,5", 1943),
        *((PLAIN, text, None) for text in EMPTY),
    ],
)
def test_a_player_count_is_whole_or_empty(
    mapping: ColumnMapping, text: str, count: int | None
) -> None:
    assert mapping.parse_count(text) == count


RULE = "must be a whole number from 0 to 2^53 - 1"
THOUSANDS = "thousands or a fraction?"
FRACTION = "fractional count; add --round"
GROUPED = "has thousands separators; set them with --thousands"
COMMA = "decimal comma; add --thousands . and --round"


@pytest.mark.parametrize(
    ("mapping", "text", "reason"),
    [
        *((PLAIN, text, RULE) for text in ("-1", "+1", "9007199254740992", "9" * 5000, "x", "٣")),
        *((PLAIN, text, THOUSANDS) for text in ("1,942", "1.942", "12.000")),
        *((PLAIN, text, FRACTION) for text in ("12.5", "1e3", "1.5e+01")),
        *((PLAIN, text, GROUPED) for text in ("1,234,567", "1 942", "1'942", "1,942.5")),
        (PLAIN, "3,5", COMMA),
        (PLAIN, "5%", RULE),
        (COMMAS, "1,94", COMMA),
        (COMMAS, "1,942.5", FRACTION),
        (COMMAS, "0,942", COMMA),
        (POINTS, "1.94", RULE),
        (ROUNDED, "1,942", THOUSANDS),
        (ROUNDED, "-0.2", RULE),
        (ROUNDED, "1e99", RULE),
    ],
)
def test_any_other_player_count_is_an_error(mapping: ColumnMapping, text: str, reason: str) -> None:
    with pytest.raises(RowError) as caught:
        mapping.parse_count(text)

    assert str(caught.value).startswith(f"players: {reason}")


DATE_FORMS = (PLAIN, SECONDS, MILLISECONDS, MICROSECONDS, BERLIN, DAY_FIRST, MONTH_FIRST, DECLARED)
COUNT_FORMS = (COMMAS, POINTS, SPACES, APOSTROPHES, ROUNDED, replace(POINTS, rounds=True))
DAYS = (
    *("2025-03-30", "30.3.2025", "3/30/2025", "30-Oct-25", "Jan 5, 2026", "20260105", "31/02/71"),
    *("Mon Jan  5 2026", "2026-01", "2026. 1. 5.", "1969-12-31", "9999-12-31", "29.02.2024"),
)
CLOCKS = ("", " 02:30", "T23:59:59.1239", " 12:00:00 AM", ", 13:00 pm", " 24:00", "T020000")
ZONES = ("", "Z", " UTC", "+02:00", "-2359", " GMT+0000 (Anywhere)", " CET")
OTHERS = (
    *("1741129200", "1741129200000.5", "1741129200000999", "0001741129200000", "202503042300"),
    *("1,942", "1.942", "12.50", "1,234,567.0", "1 942", "1\u202f942", "007", "4.1e+01", "n/a"),
)
WRITTEN = st.sampled_from(OTHERS) | st.builds(
    "{}{}{}".format, *map(st.sampled_from, (DAYS, CLOCKS, ZONES))
)
NOISE = st.builds(
    lambda text, at, more: f"{text[:at]}{more}{text[at + 1 :]}",
    WRITTEN,
    st.integers(0, 20),
    st.sampled_from(["", " ", "0", ".", "\t", "\0", "\n", "\u0663", "x"]),
)


@given(
    texts=st.lists(WRITTEN | NOISE, min_size=1, max_size=5),
    numbers=st.lists(st.integers(10**8, 10**9), max_size=4),
    mapping=st.sampled_from((STRICT, *DATE_FORMS, *COUNT_FORMS)),
)
@settings(max_examples=4 * settings().max_examples)
def test_a_column_is_parsed_as_its_texts_one_by_one(
    texts: list[str], numbers: list[int], mapping: ColumnMapping
) -> None:
    # Texts that differ without separators are parsed together.
    for number in numbers:
        digits = iter(str(number) * 9)
        texts.append("".join(next(digits) if "0" <= each <= "9" else each for each in texts[0]))
    column = Column.from_texts(texts)

    instants = [max(at, MALFORMED) for at in parse_times([column], mapping).tolist()]
    assert instants == [parse_or(MALFORMED, mapping.parse_time, text) for text in texts]
    counts = parse_counts(column, mapping).tolist()
    assert counts == [parse_or(MALFORMED, mapping.parse_count, text) for text in texts]


def parse_or(default: int, parse: Callable[[str], int | None], text: str) -> int:
    try:
        found = parse(text)
    except RowError:
        return default
    return EMPTY_COUNT if found is None else found


def try_also(*texts: str) -> Callable[[Law], Law]:
    """Return a decorator that adds examples of a text to a law."""
    return lambda law: reduce(lambda decorated, text: example(text=text)(decorated), texts, law)


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
@try_also("a", "--help", "a" * 128, "a" * 129, "a_b", "é", "\u212a", "\u017f")
def test_a_server_id_is_1_to_128_letters_digits_and_hyphens(text: str, folder: Path) -> None:
    is_valid = 1 <= len(text) <= 128 and set(text) <= set(ascii_letters + digits + "-")
    reason = "serverId: must be 1 to 128 letters, digits and hyphens"

    for name in FORMS:
        found = read_row(folder, name, server_id=text)
        assert found == ((text, 1772366400005, 7) if is_valid else reason)


NUMBERS = st.integers(0, 10**17).map(str) | st.text(st.sampled_from("0123456789-+._ eENax٣²"))


@given(text=NUMBERS)
@try_also("0", "1000000000000000", str(LARGEST), str(LARGEST + 1), "9" * 5000, "", "07", "-0")
@try_also("+1", "1\t", "12.0", "1e3", "\uff11")
def test_players_are_plain_digits_up_to_the_largest_exact_integer(text: str, folder: Path) -> None:
    is_digits = text != "" and set(text) <= set(digits) and (text == "0" or text[0] != "0")
    is_valid = is_digits and len(text) <= 16 and int(text) <= LARGEST
    reason = "players: must be a whole number from 0 to 2^53 - 1, without separators"

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
@try_also("0001772366400000", str(LATEST), str(LATEST + 1), "9" * 5000, "", "1_772_366_400_000")
@try_also("2026-03-01T12:00", "2026-03-01T12:00:00.999999999999Z", "2026-03-01T12:00:00.5Z")
@try_also("202\uff16-03-01T12:00Z")
def test_an_instant_is_parsed_as_in_the_contract(text: str, folder: Path) -> None:
    try:
        at = parse_number(text) if re.fullmatch("[0-9]+", text) else parse_instant(text)
        expected: tuple[str, int, int] | str = ("a", at, 7)
    except InstantError as error:
        expected = f"observedAt: {error}"

    for name in FORMS:
        assert read_row(folder, name, observed_at=text) == expected


MIDNIGHT = 1_416_700_800_000
"""2014-11-23T00:00Z."""

EARLY_NUMBERS = (AS_OF, 20141123, 20149923, 978_307_199_999, AS_OF // 1000)

LONG = ColumnMapping(id="name", at="when", players="online")
WIDE = ColumnMapping(at="when", is_wide=True)


def write_sources(folder: Path) -> list[Source]:
    """Write a source of each shape with the same rows."""
    columns = {"serverId": ["a"] * 5, "observedAt": EARLY_NUMBERS, "players": [5] * 5}
    points = [{"attributes": {"timestamp": at, "value": 5}} for at in EARLY_NUMBERS]
    texts = {
        "strict.csv": ("serverId,observedAt,players\n", "a,{},5\n"),
        "long.csv": ("when;name;online\n", "{};a;5\n"),
        "wide.csv": ("when,a\n", "{},5\n"),
        "strict.ndjson": ("", '{{"serverId":"a","observedAt":{},"players":5}}\n'),
        "long.ndjson": ("", '{{"name":"a","when":"{}","online":5}}\n'),
        "wide.ndjson": ("", '{{"when":{},"a":5}}\n'),
        "a.json": (json.dumps({"data": points}), ""),
    }
    for name, (header, row) in texts.items():
        (folder / name).write_text(header + "".join(map(row.format, EARLY_NUMBERS)))
    floats = pa.table({"when": pa.array(EARLY_NUMBERS, pa.float64()), "a": [5] * 5})
    parquet.write_table(pa.table(columns), folder / "strict.parquet")
    parquet.write_table(floats, folder / "wide.parquet")
    with duckdb.connect(str(folder / "rows.duckdb")) as connection:
        connection.from_arrow(pa.table(columns)).create("observations")
    mappings = {"long": LONG, "wide": WIDE}
    kinds = {".csv": "csv", ".ndjson": "ndjson", ".json": "battlemetrics"}
    return [
        Source(
            str(folder / name),
            kinds.get(Path(name).suffix, Path(name).suffix[1:]),
            mappings.get(name.partition(".")[0], STRICT),
        )
        for name in (*texts, "strict.parquet", "wide.parquet", "rows.duckdb")
    ]


def test_an_integer_before_2001_is_rejected_in_every_shape(tmp_path: Path) -> None:
    for source in write_sources(tmp_path):
        table = read_table(source)

        assert (source.name, [row[1:] for row in table.kept]) == (source.name, [("a", AS_OF, 5)])
        assert [reason for _, reason, _ in table.rejects] == [
            f"observedAt: {reason}" for reason in (NO_ZONE, EARLY, EARLY, LIKE_SECONDS)
        ]
        for at, (_, _, text) in zip(EARLY_NUMBERS[1:], table.rejects, strict=True):
            assert str(at) in text


def test_eight_digits_are_a_date_of_the_declared_zone_in_every_shape(tmp_path: Path) -> None:
    for source in write_sources(tmp_path):
        if source.kind != "battlemetrics":
            mapping = replace(source.mapping, time_zone="UTC", is_strict=False)
            table = read_table(replace(source, mapping=mapping))

            kept = sorted(row[1:] for row in table.kept)
            assert (source.name, kept) == (source.name, [("a", MIDNIGHT, 5), ("a", AS_OF, 5)])
            assert len(table.rejects) == len(EARLY_NUMBERS) - 2
