"""Divide values into bands, and build the rows of bands of several values."""

import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from conftest import AS_OF, DAY, Build, server
from snapshot.described import describe_bands, describe_rows, read_stored_rows
from snapshot.described_numbers import pack_numbers
from snapshot.observed import LARGEST, Observed, spread_over_days
from snapshot.server_rows import build_server
from srvstat.contract.ranges import Window
from srvstat.contract.requests import ServerReference
from srvstat.snapshot.format.bands import (
    UNKNOWN,
    Bands,
    Members,
    ValueNumbers,
    build_band_rows,
    digest_rows,
    divide_into_bands,
    pack_digests,
    read_bands,
)
from srvstat.snapshot.format.digest import digest_row
from srvstat.snapshot.format.rows import BANDS_PER_SERVER
from srvstat.snapshot.read.reader import open_file
from srvstat.stats import compute_statistics

KEY = 7


@st.composite
def draw_players(draw: st.DrawFn) -> tuple[list[int], int]:
    """Draw the players of a server, some of them frequent, and the number of days."""
    drawn = random.Random(draw(st.integers(0, 2**32)))  # noqa: S311 - not for secrets
    count = draw(st.integers(1, 30) | st.integers(1, 3_000))
    highest = draw(st.sampled_from([0, 5, 60, 1_000, 10**6, LARGEST]))
    heavy = [drawn.randint(0, highest) for _ in range(3)]
    share = draw(st.sampled_from([0, 0.05, 0.5]))
    players = [
        drawn.choice(heavy) if drawn.random() < share else drawn.randint(0, highest)
        for _ in range(count)
    ]
    return players, draw(st.integers(1, count))


def count_values(starts: Sequence[int], players: Sequence[int]) -> list[Counter[int]]:
    """Return the frequencies of the values of each band."""
    bands: list[Counter[int]] = [Counter() for _ in starts]
    for value in players:
        bands[bisect_right(starts, value) - 1][value] += 1
    return bands


@given(case=draw_players())
def test_bands_are_full_or_have_one_value(case: tuple[list[int], int]) -> None:
    players, days = case
    count, per_day = len(players), len(players) // days

    starts = divide_into_bands(players, days)

    assert starts[0] == 0
    bands = count_values(starts, players)
    assert {min(band) for band in bands if band} <= {*starts}
    if len({*players}) <= min(4096, 16 * per_day):
        event("a band for each value")
        assert max(map(len, bands)) == 1
        return
    event("bands of several values")
    wanted = max(16, min(per_day, 512))
    full = -(-count // wanted)
    for band in bands:
        assert len(band) <= 1 or (band.total() < 2 * full and max(band.values()) < full)
    assert sum(map(bool, bands)) <= 2 * wanted + 1


@given(case=draw_players())
def test_bands_match_their_description(case: tuple[list[int], int]) -> None:
    players, days = case

    starts = divide_into_bands(players, days)

    assert starts == describe_bands(players, days)
    values, numbers = {*players, 0, LARGEST}, ValueNumbers(starts)
    expected = {value: sum(start <= value for start in starts) - 1 for value in values}
    assert {value: numbers[value] for value in values} == expected == numbers


@given(case=draw_players(), later=st.integers(0, LARGEST))
def test_a_later_value_shares_a_band_with_near_values_only(
    case: tuple[list[int], int], later: int
) -> None:
    players, days = case
    starts = divide_into_bands(players, days)
    least, greatest = min(players), max(players)
    band = bisect_right(starts, later) - 1
    start, end = starts[band], [*starts, LARGEST + 1][band + 1]

    if later < least:
        assert end - start <= 2 * (least - end) + 1 or start == 0
    elif greatest < later <= 2 * greatest and end <= 2 * greatest:
        assert end - start <= start - greatest
    elif end - start > 1 and len({*players}) <= 16 * (len(players) // days):
        assert not {*players} & {*range(start, min(end, start + 100))}


def list_below(starts: Sequence[int], limit: int) -> list[int]:
    return [start for start in starts if start < limit]


BORDERS = [
    (24, 24, 16, True),
    (24, 24, 17, False),
    (39, 20, 16, True),
    (39, 20, 17, False),
    (40, 20, 32, True),
    (40, 20, 33, False),
    (5_100, 20, 4_080, True),
    (5_100, 20, 4_081, False),
    (5_120, 20, 4_096, True),
    (5_120, 20, 4_097, False),
    (9_000, 2, 4_096, True),
    (9_000, 2, 4_097, False),
]


@pytest.mark.parametrize(("observations", "days", "values", "is_single"), BORDERS)
def test_each_of_few_values_is_a_band(
    observations: int, days: int, values: int, is_single: bool
) -> None:
    players = [2 * (at % values) for at in range(observations)]

    starts = divide_into_bands(players, days)

    assert (max(map(len, count_values(starts, players))) == 1) is is_single


@pytest.mark.parametrize(
    ("observations", "days", "bands"),
    [
        (5_000, 5_000, 16),
        (16 * 300, 300, 16),
        (17 * 300, 300, 17),
        (512 * 100, 100, 512),
        (513 * 100, 100, 512),
        (1_000_000, 1_900, 512),
    ],
)
def test_the_number_of_bands_is_the_observations_per_day_within_16_to_512(
    observations: int, days: int, bands: int
) -> None:
    # Each value is observed once, so all bands are equally full.
    starts = divide_into_bands(range(observations), days)

    full = -(-observations // bands)
    assert list_below(starts, observations) == list(range(0, observations, full))


def test_many_observations_have_a_band_per_100_000(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("srvstat.snapshot.format.bands._MAX_OBSERVATIONS_PER_BAND", 10)

    starts = divide_into_bands(range(5_000), 5_000)

    assert list_below(starts, 5_000) == list(range(0, 5_000, 10))


def test_a_value_that_fills_a_band_has_its_own() -> None:
    # Of 200 observations on 50 days, 13 are a full band.
    light = [*range(100, 180), *range(300, 380)]
    players = [*light, *[200] * 13, *[201] * 12, *[202] * 14, 203]

    starts = divide_into_bands(players, 50)

    assert {200, 201, 202, 203} <= {*starts}
    bands = dict(zip(starts, count_values(starts, players), strict=True))
    assert bands[200] == {200: 13}
    assert bands[202] == {202: 14}


def build_rows(players: Sequence[int], starts: Sequence[int]) -> list[tuple[Any, ...]]:
    numbers = {value: ValueNumbers(starts)[value] for value in players}
    return list(build_band_rows(KEY, players, starts, numbers))


def test_a_row_of_bands_has_the_players_minus_the_least_in_order_of_time() -> None:
    rows = build_rows([9, 300, 5, 7, 5, 40, 3, 812, 9], [3, 9, 40, 300])

    assert rows == [
        (7_000_000, 4, bytes([2, 4, 2, 0])),
        (7_000_003, 2, b"\0\0\0\2"),
    ]
    assert build_rows([5, 9, 5], [5, 7, 9]) == []
    assert build_rows([6, 6], [5, 7]) == [(7_000_000, 2, b"\1\1")]
    assert build_rows([], []) == []


@pytest.mark.parametrize(
    ("above", "width"), [(255, 1), (256, 2), (65_536, 4), (2**32, 8), (LARGEST - 3, 8)]
)
def test_the_players_of_a_band_take_the_fewest_bytes(above: int, width: int) -> None:
    assert build_rows([3, 3 + above], [3]) == [
        (7_000_000, 2, bytes(width) + above.to_bytes(width, "little"))
    ]


def read_back(starts: Sequence[int], digests: bytes) -> Bands:
    """Return the bands in the row of a server."""
    return read_bands(
        build_server(KEY, band_count=len(starts), bands=pack_numbers(starts), band_digests=digests)
    )


def test_a_band_of_one_value_has_no_digest() -> None:
    rows = build_rows([3, 5, 9, 40, 41], [3, 9, 40])
    first, last = (digest_row("bands", row) for row in rows)
    packed = pack_digests(digest_rows("bands", rows))

    assert packed == b"\0\0\0\0\2\0\0\0" + first + last
    bands = read_back([3, 9, 40], packed)
    assert [bands.get_digest(band) for band in range(3)] == [first, None, last]
    assert bands.list_rows() == [0, 2]
    assert read_back([3, 9], b"").list_rows() == []


@given(
    starts=st.sets(st.integers(0, LARGEST), max_size=40).map(sorted),
    digests=st.dictionaries(
        st.integers(0, 2**32 - 1),
        st.one_of(st.binary(min_size=16, max_size=16), st.just(UNKNOWN)),
        max_size=9,
    ),
)
def test_the_bands_of_a_server_are_read_back(starts: list[int], digests: dict[int, bytes]) -> None:
    bands = read_back(starts, pack_digests(digests))

    assert list(bands.starts) == starts
    assert bands.digests_by_number == digests
    stored = {band for band, digest in digests.items() if digest != UNKNOWN}
    assert {band for band in digests if bands.is_known(band)} == stored
    assert bands.list_rows() == sorted(stored)


def test_a_part_of_a_digest_is_refused() -> None:
    with pytest.raises(ValueError, match="digests"):
        read_back([3, 9], bytes(21))


@pytest.mark.parametrize(("count", "bands"), [(2, b"\1\2\3"), (-1, b"\1"), (1, b""), (2**62, b"")])
def test_a_wrong_number_of_bands_is_refused(count: int, bands: bytes) -> None:
    with pytest.raises(ValueError, match="width"):
        read_bands(build_server(KEY, band_count=count, bands=bands))


@given(data=st.data(), above=st.lists(st.integers(0, 70_000), min_size=1, max_size=50))
def test_a_slice_of_members_is_read(data: st.DataObject, above: list[int]) -> None:
    first = data.draw(st.integers(0, len(above)))
    last = data.draw(st.integers(first, len(above)))

    assert list(Members(len(above), pack_numbers(above)).slice(first, last)) == above[first:last]


def test_a_wrong_number_of_members_is_refused() -> None:
    with pytest.raises(ValueError, match="width"):
        Members(2, b"\1\2\3").slice(0, 1)


def test_stored_rows_match_their_description_for_all_kinds_of_bands(build: Build) -> None:
    drawn = random.Random(5)  # noqa: S311 - not for secrets
    of = {
        "few": spread_over_days([at % 7 for at in range(90)], 1),
        "heavy": spread_over_days(
            [500 if at % 3 else drawn.randrange(999) for at in range(300)], 2
        ),
        "large": spread_over_days([drawn.randrange(LARGEST) for _ in range(600)], 4),
        "light": spread_over_days([drawn.randrange(4_000) for _ in range(2_000)], 20),
        "silent": Observed([], []),
        "single": spread_over_days([LARGEST] * 3, 1),
    }
    path = build(map(server, of), [row for name, one in of.items() for row in one.rows(name)])

    stored = read_stored_rows(path)

    assert stored == describe_rows(path)
    assert {row[0] // BANDS_PER_SERVER for row in stored["bands"]} == {2, 3, 4}
    with closing(open_file(path)) as snapshot:
        for number, (name, observed) in enumerate(of.items(), 1):
            (row,) = snapshot.find_servers([ServerReference(identifier=name, by="id")])
            assert row is not None
            wide = [each for each in stored["bands"] if each[0] // BANDS_PER_SERVER == number]
            assert snapshot.verify_bands(row) == len(wide)
            for start, end in ((-1, AS_OF), (3 * DAY, 40 * DAY), (50 * DAY + 1, 51 * DAY + 9)):
                window = Window(start, end)
                expected = compute_statistics(observed.within(window))
                assert snapshot.compute_statistics([row], window) == [expected]
