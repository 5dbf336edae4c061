"""Heat maps, distributions and growth show the figures of their documents."""

from collections.abc import Container, Sequence
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import few_examples
from srvstat.contract.time import DAY_MS
from srvstat.documents.analysis import (
    Distribution,
    GrowthDocument,
    GrowthStepPart,
    HourCellPart,
    HourPart,
    ServerDistribution,
    ServerGrowth,
    ServerPeakHours,
)
from srvstat.documents.document import ChangePart, GrowthPart, WindowPart
from srvstat.render.pictures.bars import draw_distribution, draw_growth, draw_heat_map
from srvstat.render.pictures.sheet import choose_size
from srvstat.render.pictures.svg import Size
from support.timelines import check_lines, find_all

SIZE = Size(960, 300)
AS_OF = 20_000 * DAY_MS
WINDOW = WindowPart(from_=AS_OF - 3 * DAY_MS, to=AS_OF)


def build_peak_hours(averages: list[float | None]) -> ServerPeakHours:
    cells = tuple(
        HourCellPart(at // 24 + 1, at % 24, 0 if average is None else 9, average, average)
        for at, average in enumerate(averages)
    )
    known = [cell for cell in cells if cell.average_players is not None]
    busiest = max(known, key=lambda cell: cell.average_players or 0, default=None)
    hour = busiest and HourPart(weekday=busiest.weekday, hour=busiest.hour)
    return ServerPeakHours(
        server_id="a",
        cfx_id="x-a",
        hostname="A",
        sample_count=sum(cell.sample_count for cell in cells),
        busiest=hour,
        quietest=hour,
        cells=cells,
    )


@settings(max_examples=few_examples())
@given(st.lists(st.none() | st.floats(0, 1e6), min_size=168, max_size=168))
def test_a_cell_is_darker_the_more_players_and_empty_without_figures(
    averages: list[float | None],
) -> None:
    server = build_peak_hours(averages)
    picture = draw_heat_map(server, SIZE)
    cells = [one for one in find_all(picture, "cell") if one.find("title") is not None]

    assert len(cells) == len(averages)
    levels = [one.get("class", "").removeprefix("cell ") for one in cells]
    assert [level == "empty" for level in levels] == [one is None for one in averages]
    shown = sorted(
        (average, level)
        for average, level in zip(averages, levels, strict=True)
        if average is not None
    )
    assert [level for _, level in shown] == sorted(level for _, level in shown)
    if shown and shown[0][0] < shown[-1][0]:
        assert (shown[0][1], shown[-1][1]) == ("level-0", "level-6")
    has_busiest = len({average for average, _ in shown}) > 1 and len(shown) >= 0.8 * 168
    assert len(find_all(picture, "marker")) == has_busiest


def read_heights(group: Element) -> list[float]:
    return [float(bar.get("height", "")) for bar in find_all(group, "bar")]


def build_distribution(unit: int) -> Distribution:
    """Return the distribution of a server, of counts around 14 units of players."""
    server = ServerDistribution(
        server_id="a",
        cfx_id="x-a",
        hostname="",
        sample_count=16,
        lowest_players=10 * unit,
        lower_quartile=11.0 * unit,
        median_players=14.0 * unit,
        upper_quartile=14.5 * unit,
        peak_players=19 * unit,
        counts=(4, 0, 8, 2, 2),
    )
    return Distribution(
        as_of=AS_OF,
        root="0",
        window=WINDOW,
        first_players=10 * unit,
        bin_players=2 * unit,
        servers=(server,),
    )


def test_bars_are_as_high_as_counts_and_the_median_is_a_line() -> None:
    picture = draw_distribution(build_distribution(1), SIZE)

    heights = read_heights(picture)
    assert [round(4 * height / max(heights), 2) for height in heights] == [2, 4, 1, 1]
    (line,) = find_all(picture, "marker")
    bar = find_all(picture, "bar")[1]
    # 14 is the first of the two counts of the third bar.
    quarter = float(bar.get("x", "")) + (float(bar.get("width", "")) + 1) / 4
    assert abs(float(line.get("x1", "")) - quarter) < 0.2
    (strip,) = find_all(picture, "spread")
    # The quartiles are 11, the second count of the first bar, and 14.5.
    first = find_all(picture, "bar")[0]
    lower = float(first.get("x", "")) + (float(first.get("width", "")) + 1) * 3 / 4
    assert abs(float(strip.get("x1", "")) - lower) < 0.2
    upper = float(bar.get("x", "")) + (float(bar.get("width", "")) + 1) / 2
    assert abs(float(strip.get("x2", "")) - upper) < 0.2
    assert bar.findtext("title") == "14 to 15 players: 50% of 16 observations"


def build_growth(
    averages: Sequence[float | None],
    partial: Container[int] = (),
    *,
    coverage: float = 0.9,
    previous_coverage: float = 1.0,
) -> GrowthDocument:
    """Return the growth of a server by days, of which some are partial."""
    start = AS_OF - len(averages) * DAY_MS
    steps = tuple(
        GrowthStepPart(
            from_=start + at * DAY_MS,
            to=start + (at + 1) * DAY_MS,
            is_partial=at in partial,
            observed_share=0.5 if at in partial else 1.0,
            sample_count=9 if average is not None else 0,
            average_players=average,
            change=None,
            growth=GrowthPart(players=0, percentage=0.0),
        )
        for at, average in enumerate(averages)
    )
    is_compared = min(coverage, previous_coverage) >= 0.8
    server = ServerGrowth(
        server_id="a",
        cfx_id="x-a",
        hostname="A",
        sample_count=18,
        average_players=7.5,
        change=ChangePart(players=-2.5, percentage=-25.0) if is_compared else None,
        coverage=coverage,
        previous_coverage=previous_coverage,
        growth=GrowthPart(players=5, percentage=100.0),
        previous_growth=None,
        first_players=5,
        last_players=10,
        players_per_week=17.5,
        steps=steps,
    )
    return GrowthDocument(
        as_of=AS_OF,
        root="0",
        step="day",
        time_zone="UTC",
        window=WINDOW,
        previous_window=None,
        servers=(server,),
    )


def read_texts(picture: Element, css: str) -> list[str]:
    return ["".join(one.itertext()) for one in find_all(picture, css)]


def test_steps_without_observations_have_no_bar_and_partial_ones_are_pale() -> None:
    picture = draw_growth(build_growth((5.0, None, 10.0, 400.0), {3}), SIZE)

    first, second, partial = read_heights(picture)
    assert abs(second - 2 * first) < 0.2
    # The scale is that of the whole days, and ends at 10.
    assert partial == second
    classes = [one.get("class") for one in find_all(picture, "bar")]
    assert classes == ["bar", "bar", "bar partial"]
    (trend,) = find_all(picture, "trend")
    rise = float(trend.get("y1", "")) - float(trend.get("y2", ""))
    assert abs(rise - first) < 0.3
    # It ends in the middle of the last whole day.
    last = find_all(picture, "bar")[1]
    middle = float(last.get("x", "")) + float(last.get("width", "")) / 2
    assert abs(float(trend.get("x2", "")) - middle) < 0.2
    assert read_texts(picture, "unit") == [
        (
            "players, average of each day · in UTC · pale: less than 90% observed"
            " · dashed: trend of whole days · change: average against the 3 days before"
        )
    ]


def test_the_change_leads_and_has_a_color() -> None:
    picture = draw_growth(build_growth((5.0, None, 10.0)), SIZE)

    assert read_texts(picture, "fall") == ["change -2.50 -25.0%"]
    assert "change -2.50 -25.0%, up 17.5 a week" in read_texts(picture, "tick")
    assert picture.findtext("desc") == (
        "A: average 7.5; -2.50 -25.0% against the 3 days before; up 17.5 a week; 18 observations."
    )


@pytest.mark.parametrize(
    ("coverage", "previous", "words"),
    [
        (0.9, 0.466, "the 3 days before were observed for 46.6% only; up 17.5 a week"),
        (0.9, 0.0, "the 3 days before were not observed; up 17.5 a week"),
        (0.7, 1.0, "the 3 days of the window were observed for 70% only; no trend"),
    ],
)
def test_there_is_no_change_and_no_trend_on_weak_ground(
    coverage: float, previous: float, words: str
) -> None:
    growth = build_growth((5.0, 7.0, 10.0), coverage=coverage, previous_coverage=previous)
    picture = draw_growth(growth, SIZE)

    assert picture.findtext("desc") == f"A: average 7.5; {words}; 18 observations."
    assert len(find_all(picture, "trend")) == words.endswith("week")
    assert "change" not in " ".join(read_texts(picture, "tick") + read_texts(picture, "unit"))


def test_only_partial_steps_have_a_scale_of_their_own_and_no_trend() -> None:
    picture = draw_growth(build_growth((5.0, 10.0), {0, 1}), SIZE)

    first, second = read_heights(picture)
    assert abs(second - 2 * first) < 0.2
    assert not find_all(picture, "trend")


def test_daily_data_have_no_busiest_hour() -> None:
    daily = [1.0 * at if at % 24 == 12 else None for at in range(168)]
    most = [1.0 * at if at % 6 else None for at in range(168)]

    for averages, is_well_observed, count in ((daily, True, 0), (most, False, 0), (most, True, 1)):
        picture = draw_heat_map(build_peak_hours(averages), SIZE, is_well_observed=is_well_observed)
        words = " ".join([picture.findtext("desc", ""), *read_texts(picture, "unit")]).lower()
        assert ("busiest" in words) == bool(count)
        assert len(find_all(picture, "marker")) == count


@settings(max_examples=few_examples())
@given(st.integers(1, 70), st.sampled_from([280, 460, 960, 1600]), st.sampled_from([1, 987_654]))
def test_all_text_is_inside_the_picture_and_none_covers_another(
    days: int, width: int, unit: int
) -> None:
    growth = build_growth([float(unit * day) for day in range(days)], {days - 1})
    check_lines(draw_growth(growth, Size(width, 200)), Size(width, 200))
    check_lines(draw_distribution(build_distribution(unit), Size(width, 200)), Size(width, 200))
    server = build_peak_hours([None, *(at * unit / 24.7 for at in range(167))])
    size = choose_size(server, width)
    check_lines(draw_heat_map(server, size), size)
