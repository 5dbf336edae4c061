"""Heat maps, distributions and growth show the figures of their documents."""

from xml.etree.ElementTree import Element

from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import few_examples
from srvstat.contract.ranges import DAY_MS
from srvstat.documents.distribution import Distribution, ServerDistribution
from srvstat.documents.document import GrowthPart, WindowPart
from srvstat.documents.growth import GrowthDocument, GrowthStep, ServerGrowth
from srvstat.documents.peak_hours import HourCell, HourPart, ServerPeakHours
from srvstat.render.pictures import (
    Size,
    choose_size,
    draw_distribution,
    draw_growth,
    draw_heat_map,
)
from support.timelines import check_lines, find_all

SIZE = Size(960, 300)
AS_OF = 20_000 * DAY_MS
WINDOW = WindowPart(from_=AS_OF - 3 * DAY_MS, to=AS_OF)


def build_peak_hours(averages: list[float | None]) -> ServerPeakHours:
    cells = tuple(
        HourCell(at // 24 + 1, at % 24, 0 if average is None else 9, average, average)
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
    assert len(find_all(picture, "marker")) == (len({average for average, _ in shown}) > 1)


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


def build_growth(averages: tuple[float | None, ...]) -> GrowthDocument:
    """Return the growth of a server by days, of which the last one is partial."""
    start, last = AS_OF - len(averages) * DAY_MS, len(averages) - 1
    steps = tuple(
        GrowthStep(start + at * DAY_MS, start + (at + 1) * DAY_MS, at == last, 9, average, 0, 0.0)
        for at, average in enumerate(averages)
    )
    growth = GrowthPart(players=5, percentage=100.0)
    server = ServerGrowth(
        server_id="a",
        cfx_id="x-a",
        hostname="A",
        sample_count=18,
        average_players=7.5,
        growth=growth,
        previous_growth=None,
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


def test_steps_without_observations_have_no_bar_and_partial_ones_are_pale() -> None:
    picture = draw_growth(build_growth((5.0, None, 10.0)), SIZE)

    first, second = read_heights(picture)
    assert abs(second - 2 * first) < 0.2
    assert [one.get("class") for one in find_all(picture, "bar")] == ["bar", "bar partial"]
    (trend,) = find_all(picture, "trend")
    rise = float(trend.get("y1", "")) - float(trend.get("y2", ""))
    assert abs(rise - first) < 0.3
    assert picture.findtext("desc") == "A: average 7.5; up 17.5 a week; 18 observations."


@settings(max_examples=few_examples())
@given(st.integers(1, 70), st.sampled_from([280, 460, 960, 1600]), st.sampled_from([1, 987_654]))
def test_all_text_is_inside_the_picture_and_none_covers_another(
    days: int, width: int, unit: int
) -> None:
    growth = build_growth(tuple(float(unit * day) for day in range(days)))
    check_lines(draw_growth(growth, Size(width, 200)), Size(width, 200))
    check_lines(draw_distribution(build_distribution(unit), Size(width, 200)), Size(width, 200))
    server = build_peak_hours([None, *(at * unit / 24.7 for at in range(167))])
    size = choose_size(server, width)
    check_lines(draw_heat_map(server, size), size)
