"""Pictures show every observed step, gaps as gaps, and hostile names as text."""

import re
from collections.abc import Callable, Container, Sequence
from fractions import Fraction
from itertools import chain, pairwise
from typing import Any, get_args
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import few_examples
from srvstat.contract.time import LATEST
from srvstat.documents.analysis import (
    Distribution,
    GrowthDocument,
    MarkPart,
    StepCell,
    Timeline,
    build_runs,
)
from srvstat.documents.document import ChangePart, WindowPart
from srvstat.render.pictures import (
    Look,
    choose_size,
    draw_distribution,
    draw_growth,
    draw_heat_map,
    draw_sheet,
)
from srvstat.render.svg import (
    Size,
    Theme,
    build_style,
    choose_player_ticks,
    encode_svg,
    fit_text,
    measure_text,
    read_palette,
)
from srvstat.render.text import escape_text
from srvstat.render.timeline import (
    Layout,
    Point,
    choose_layout,
    choose_step,
    draw_timeline,
    get_window,
    join_points,
    merge_steps,
)
from support.documents import (
    FIRST,
    HOUR,
    Case,
    build_case,
    build_distribution,
    build_growth,
    build_peak_hours,
    cases,
    check_lines,
    find_all,
)

ZONE = ZoneInfo("Europe/Berlin")
SIZES = st.sampled_from([Size(360, 240), Size(960, 320)])
THEMES: st.SearchStrategy[Theme] = st.sampled_from(["light", "dark"])
Place = tuple[float, float]
NUMBER = re.compile(r"-?[\d.]+")


def read_vertices(path: ET.Element) -> list[list[tuple[float, float]]]:
    """Return the points of each part of a path."""
    parts = path.get("d", "").removesuffix("Z").split("M")[1:]
    numbers = [list(map(float, NUMBER.findall(part))) for part in parts]
    return [list(zip(part[::2], part[1::2], strict=True)) for part in numbers]


def read_center(circle: ET.Element) -> tuple[float, float]:
    return float(circle.get("cx", "")), float(circle.get("cy", ""))


@given(cases(), SIZES)
def test_a_point_is_the_exact_average_of_the_observations_in_its_step(
    case: Case, size: Size
) -> None:
    timeline = case.timeline
    step = choose_step(timeline, size.width)
    starts = timeline.list_edges()[:-1]
    for server, cells in zip(timeline.servers, case.players, strict=True):
        covered = 0
        for point in merge_steps(timeline, server, step):
            inside = [
                players
                for start, cell in zip(starts, cells, strict=True)
                for players in cell
                if point.start <= max(start, get_window(timeline)[0]) < point.end
            ]
            assert point.average == float(Fraction(sum(inside), len(inside)))
            assert (point.lowest, point.peak) == (min(inside), max(inside))
            covered += len(inside)
        assert covered == sum(server.sample_counts)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_the_last_days_of_the_calendar_have_points_of_their_own(zone: str) -> None:
    case = build_case([[[at] for at in range(96)]], ["a"])
    first = LATEST + 1 - 96 * HOUR
    timeline = case.timeline.model_copy(
        update={
            "time_zone": zone,
            "steps": build_runs([*range(first, LATEST + 2, HOUR)]),
            "window": WindowPart(from_=first, to=LATEST + 1),
        }
    )

    points = merge_steps(timeline, timeline.servers[0], "3h")

    assert all(one.end - one.start <= 3 * HOUR for one in points)
    assert sum(one.end - one.start for one in points) == 96 * HOUR


def build_timeline(step: str, days: int, servers: int = 1) -> Timeline:
    """Return a timeline without observations; its steps are as long as they are in UTC."""
    length = {"30m": 1, "2h": 4, "day": 48, "week": 336}[step] * HOUR // 2
    case = build_case([[[]]] * servers, [""] * servers)
    end = FIRST + days * 24 * HOUR
    return case.timeline.model_copy(
        update={
            "step": step,
            "steps": build_runs([*range(FIRST, end + 1, length)]),
            "window": WindowPart(from_=FIRST, to=end),
        }
    )


@pytest.mark.parametrize(
    ("base", "days", "width", "step"),
    [
        ("30m", 7, 960, "30m"),
        ("30m", 10, 960, "30m"),
        ("30m", 11, 1600, "1h"),
        ("30m", 45, 960, "1h"),
        ("30m", 46, 960, "day"),
        ("30m", 90, 1600, "day"),
        ("30m", 30, 360, "2h"),
        # 3h does not consist of 2h, nor a month of weeks.
        ("2h", 30, 200, "6h"),
        ("day", 7000, 100, "month"),
        ("week", 7000, 100, "week"),
    ],
)
def test_the_window_and_the_width_choose_a_step_for_any_number_of_servers(
    base: str, days: int, width: int, step: str
) -> None:
    assert choose_step(build_timeline(base, days), width) == step
    assert choose_step(build_timeline(base, days, 5), width) == step


Drawn = dict[str, list[tuple[Place, Place]]]


def read_segments(group: ET.Element) -> Drawn:
    """Return the ends of the segments of a server's lines, those that are dashed and the others."""
    found: Drawn = {"line": [], "line partial": []}
    for path in find_all(group, "line"):
        for part in read_vertices(path):
            found[path.get("class", "")] += pairwise(part)
    return found


@given(cases(), SIZES)
def test_a_segment_of_a_partial_step_is_dashed_and_none_crosses_a_gap(
    case: Case, size: Size
) -> None:
    timeline = case.timeline
    picture = draw_timeline(timeline, size, ZONE)
    place, highest = read_place(picture, timeline), read_highest(picture)
    step = choose_step(timeline, size.width)
    for server, group in zip(timeline.servers, find_all(picture, "series"), strict=True):
        points = merge_steps(timeline, server, step)
        spots = [place(one.middle, min(one.average, highest)) for one in points]
        expected: Drawn = {"line": [], "line partial": []}
        is_joined = [False] * (len(points) + 1)
        for at, (one, other) in enumerate(pairwise(points), start=1):
            is_dashed = min(one.observed_share, other.observed_share) < 0.9
            is_crossed = any(
                gap.from_ < other.middle and gap.to > one.middle for gap in server.gaps
            )
            # What is less than a tenth of two whole steps does not interrupt the line.
            is_joined[at] = not is_crossed or (not is_dashed and one.end == other.start)
            if is_joined[at]:
                css = "line partial" if is_dashed else "line"
                expected[css].append((spots[at - 1], spots[at]))
        drawn = read_segments(group)
        for css, segments in expected.items():
            assert is_near([*chain(*segments)], [*chain(*drawn[css])])
        dots = [
            (spots[at], "dot partial" if one.observed_share < 0.9 else "dot")
            for at, one in enumerate(points)
            if one.observed_share < 0.9 or not any(is_joined[at : at + 2])
        ]
        assert is_near([spot for spot, _ in dots], list(map(read_center, find_all(group, "dot"))))
        assert [css for _, css in dots] == [one.get("class") for one in find_all(group, "dot")]


@given(cases(), SIZES)
def test_no_partial_step_reaches_the_axis_and_all_are_inside_the_picture(
    case: Case, size: Size
) -> None:
    timeline = case.timeline
    step = choose_step(timeline, size.width)
    picture = draw_timeline(timeline, size, ZONE)
    servers = [merge_steps(timeline, server, step) for server in timeline.servers]
    points = [one for of_server in servers for one in of_server]
    whole = [one for one in points if one.observed_share >= 0.9] or points
    values = [one.peak if len(servers) == 1 else one.average for one in whole]

    (axis,) = (one for one in find_all(picture, "axis") if one.get("y1") == one.get("y2"))
    bottom = float(axis.get("y1", ""))
    place = read_place(picture, timeline)
    height = bottom - place(0, read_highest(picture))[1]
    ticks = choose_player_ticks(max(values, default=None), height)
    assert read_highest(picture) == ticks[-1]
    for group in find_all(picture, "series"):
        ends = [end for part in read_segments(group).values() for pair in part for end in pair]
        for x, y in [*ends, *map(read_center, find_all(group, "dot"))]:
            assert 0 <= x <= size.width
            assert 0 <= y <= bottom


@given(cases(), st.sampled_from([320, 960]), THEMES)
def test_any_hostname_gives_a_file_that_is_well_formed_and_the_same_each_time(
    case: Case, width: int, theme: Theme
) -> None:
    encoded = encode_svg(draw_sheet(case.timeline, ZONE, Look(width)), theme)

    root = ET.fromstring(encoded)  # noqa: S314 - our own output

    assert encoded == encode_svg(draw_sheet(case.timeline, ZONE, Look(width)), theme)
    tags = {one.tag.rpartition("}")[2] for one in root.iter()}
    allowed = "svg title desc style rect line path circle text g"
    assert tags <= set(allowed.split())
    assert not {name for one in root.iter() for name in one.attrib} & {"style", "href", "onload"}
    assert re.search(r"[^\t\n\x20-\x7e\xa0-\U0010ffff]", encoded.decode("utf-8")) is None


def read_highest(picture: ET.Element, unit: str = "") -> float:
    """Return the highest number on the axis of players."""
    labels = [one for one in find_all(picture, "tick") if one.get("text-anchor") == "end"]
    return float((labels[-1].text or "").replace(",", "").removesuffix(unit))


def read_place(picture: ET.Element, timeline: Timeline) -> Callable[[float, float], Place]:
    """Return a function from instants and players to pixels, as the axes of a picture say."""
    (axis,) = (one for one in find_all(picture, "axis") if one.get("y1") == one.get("y2"))
    left, right, bottom = (float(axis.get(name, "")) for name in ("x1", "x2", "y1"))
    labels = [one for one in find_all(picture, "tick") if one.get("text-anchor") == "end"]
    highest = read_highest(picture)
    height = float(labels[0].get("y", "")) - float(labels[-1].get("y", ""))
    start, end = get_window(timeline)

    def place(at: float, players: float) -> Place:
        x = left + (at - start) / (end - start) * (right - left)
        return x, bottom - players / highest * height

    return place


def is_near(one: Sequence[Place], other: Sequence[Place]) -> bool:
    pairs = zip(chain(*one), chain(*other), strict=True)
    return all(abs(left - right) < 0.2 for left, right in pairs)


@given(cases())
def test_a_band_covers_the_whole_steps_between_gaps_and_partial_steps(case: Case) -> None:
    timeline = build_case([case.players[0]], [""]).timeline
    picture = draw_timeline(timeline, Size(500, 300), ZONE)
    place = read_place(picture, timeline)
    (server,), (group,) = timeline.servers, find_all(picture, "series")
    runs: list[list[Point]] = [[]]
    for point in merge_steps(timeline, server, choose_step(timeline, 500)):
        last = runs[-1][-1] if runs[-1] else None
        if last is not None and join_points(last, point, server.gaps) != "solid":
            runs.append([])
        runs[-1].append(point)
    bands = find_all(group, "band")
    whole = [run for run in runs if run and not run[0].is_partial]
    assert len(bands) in {0, len(whole)}
    for run, band in zip(whole, bands, strict=False):
        first, last = run[0], run[-1]
        peaks = [(first.start, first.peak), *((one.middle, one.peak) for one in run)]
        lows = [(one.middle, one.lowest) for one in run]
        ring = [*peaks, (last.end, last.peak), (last.end, last.lowest), *reversed(lows)]
        ring.append((first.start, first.lowest))
        (vertices,) = read_vertices(band)
        assert is_near([place(*one) for one in ring], vertices)


def test_a_gap_of_all_servers_is_shaded_and_a_step_between_gaps_is_a_dot() -> None:
    cells = [[5], [7], [], [], [], [9], [], [], [], [4], [6]]
    case = build_case([cells], [""])
    picture = draw_timeline(case.timeline, Size(960, 320), ZONE)

    assert [one.get("class") for one in find_all(picture, "dot")] == ["dot"]
    assert len(find_all(picture, "gap")) == len(find_all(picture, "gap-mark")) == 2
    (line,) = find_all(picture, "line")
    assert [len(part) for part in read_vertices(line)] == [2, 2]
    assert not find_all(picture, "band")
    description = picture.findtext("desc", "")
    assert description == "s0: average 6.2, peak 9, lowest 4, 5 observations, 2 gaps."
    notes = [one.text for one in find_all(picture, "unit")]
    assert notes == ["players, averages of an hour · gray bar: no observations"]


def test_partial_steps_are_pale_dashed_and_out_of_the_axis() -> None:
    shares = [0.25, 1.0, 1.0, 0.89, 1.0]
    case = build_case([[[900], [4], [6], [700], [5]]], [""], hours=24, shares=shares)
    picture = draw_timeline(case.timeline, Size(960, 320), ZONE)

    assert read_highest(picture) == 6
    assert [one.get("class") for one in find_all(picture, "dot")] == ["dot partial"] * 2
    (group,) = find_all(picture, "series")
    assert [len(part) for part in read_segments(group).values()] == [1, 3]
    notes = [one.text for one in find_all(picture, "unit")]
    assert notes == ["players, averages of a day · dashed: less than 90% observed"]


@given(cases(), st.sampled_from([280, 320, 600, 960]))
def test_all_text_is_inside_the_picture_and_none_covers_another(case: Case, width: int) -> None:
    size = choose_size(case.timeline, width)
    check_lines(draw_timeline(case.timeline, size, ZONE), size)


@given(cases(), st.sampled_from([320, 960]), st.lists(st.integers(0, 40), max_size=5))
def test_a_mark_is_a_line_and_no_label_covers_another(
    case: Case, width: int, hours: list[int]
) -> None:
    start, end = get_window(case.timeline)
    marks = [MarkPart(min(start + hour * HOUR, end), f"Update {hour}") for hour in sorted(hours)]
    timeline = case.timeline.model_copy(update={"marks": tuple(marks)})
    for layout in get_args(Layout):
        size = Size(width, 700)
        picture = draw_timeline(timeline, size, ZONE, layout=layout)
        check_lines(picture, size)
        areas = len(timeline.servers) if layout == "panels" else 1
        assert len(find_all(picture, "mark")) == areas * len(marks)


@pytest.mark.parametrize("hours", [(36,), (30, 36, 41), (37, 90)])
def test_no_mark_crosses_the_label_of_the_peak(hours: Sequence[int]) -> None:
    case = build_case([[[4], [9], [6], [7], [5]]], [""], hours=24)
    start, _ = get_window(case.timeline)
    marks = [MarkPart(start + hour * HOUR, "Update") for hour in hours]
    timeline = case.timeline.model_copy(update={"marks": tuple(marks)})
    picture = draw_timeline(timeline, Size(960, 400), ZONE)

    label, *_ = find_all(picture, "label")
    lines = [float(one.attrib["x1"]) for one in find_all(picture, "mark")]
    shown = label.text or ""
    assert shown.startswith("9 · ")
    half = measure_text(shown) / 2
    assert all(abs(float(label.attrib["x"]) - x) > half for x in lines)


def test_shares_of_whole_steps_add_up_and_a_missing_server_makes_a_step_partial() -> None:
    players = [[[30], [10], [20], [5]], [[10], [30], [], [5]], [[], [40], [60], [10]]]
    case = build_case(players, ["", "", ""])
    picture = draw_timeline(case.timeline, Size(960, 400), ZONE, layout="share")

    assert read_highest(picture, "%") == 80
    dots = [len(find_all(group, "dot")) for group in find_all(picture, "series")]
    assert dots == [1, 0, 1]
    labels = [one.text for one in find_all(picture, "label")]
    assert labels[0] == "75% · Oct 4, 00:00"


def test_a_server_without_observations_says_so_and_has_no_line() -> None:
    case = build_case([[[5], [7]], [[], []]], ["a", "b"])
    expected: dict[Layout, str] = {"lines": "b: no observations", "panels": "no observations"}
    for layout, words in expected.items():
        picture = draw_timeline(case.timeline, Size(960, 400), ZONE, layout=layout)
        assert words in [one.text for one in find_all(picture, "unit")]
        assert not find_all(picture, "series")[1]


def test_days_of_two_months_have_a_line_of_weeks_and_many_servers_have_panels() -> None:
    case = build_case([[[at] for at in range(70)]] * 4, ["a", "b", "c", "d"], hours=24)
    picture = draw_timeline(case.timeline, Size(960, 600), ZONE, layout="panels")

    assert choose_layout(case.timeline) == "panels"
    assert [len(find_all(group, "weekly")) for group in find_all(picture, "series")] == [1] * 4
    assert choose_layout(build_case([[[1]]] * 3, ["a", "b", "c"]).timeline) == "lines"


@given(st.text(max_size=200), st.integers(100, 400))
def test_a_name_is_cut_to_a_width_but_no_escape_is(name: str, width: int) -> None:
    shown = fit_text(name, width)

    assert measure_text(shown) <= width
    assert shown == escape_text(name) or shown[:-1] in {
        escape_text(name[:length]) for length in range(len(name))
    }


def test_the_styles_of_files_have_no_variables_left() -> None:
    for theme in get_args(Theme):
        assert "var(" not in build_style(theme)
        assert "#" in build_style(theme)
    assert read_palette("light").keys() == read_palette("dark").keys()


TEXTS = ("--ink", "--muted", "--accent", "--rise", "--fall")


def measure_luminance(color: str) -> float:
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in channels
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def measure_contrast(one: str, other: str) -> float:
    darker, lighter = sorted(map(measure_luminance, (one, other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_and_lines_stand_out_from_the_paper(theme: Theme) -> None:
    palette = read_palette(theme)
    contrast = {
        name: measure_contrast(color, palette["--paper"]) for name, color in palette.items()
    }

    assert min(contrast[name] for name in TEXTS) >= 4.5
    assert min(contrast[f"--series-{number}"] for number in range(1, 6)) >= 3


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_levels_differ_from_their_neighbors_and_in_one_direction(theme: Theme) -> None:
    palette = read_palette(theme)
    levels = [measure_luminance(palette[f"--level-{number}"]) for number in range(7)]

    assert levels == sorted(levels, reverse=theme == "light")
    for number in range(6):
        one, other = palette[f"--level-{number}"], palette[f"--level-{number + 1}"]
        assert measure_contrast(one, other) >= 1.2


SIZE = Size(960, 300)


@settings(max_examples=few_examples())
@given(st.lists(st.none() | st.floats(0, 1e6), min_size=168, max_size=168))
def test_a_cell_is_darker_the_more_players_and_empty_without_figures(
    averages: list[float | None],
) -> None:
    (server,) = build_peak_hours(averages).servers
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


def build_bins(unit: int) -> Distribution:
    """Return the distribution of a server, of counts around 14 units of players."""
    figures = (10 * unit, 11.0 * unit, 14.0 * unit, 14.5 * unit, 19 * unit)
    return build_distribution([(4, 0, 8, 2, 2)], figures, 10 * unit, 2 * unit, hostname="")


def test_bars_are_as_high_as_counts_and_the_median_is_a_line() -> None:
    picture = draw_distribution(build_bins(1), SIZE)

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


def build_days(
    averages: Sequence[float | None], partial: Container[int] = (), **fields: float
) -> GrowthDocument:
    """Return the growth of a server by days, of which some are partial."""
    days = [
        StepCell(0 if average is None else 9, 1, average, 0.5 if at in partial else 1.0)
        for at, average in enumerate(averages)
    ]
    coverages: dict[str, Any] = {"coverage": 0.9, "previous_coverage": 1.0} | fields
    if min(coverages.values()) >= 0.8:
        coverages["change"] = ChangePart(players=-2.5, percentage=-25.0)
    return build_growth(days, **coverages)


def read_texts(picture: Element, css: str) -> list[str]:
    return ["".join(one.itertext()) for one in find_all(picture, css)]


def test_steps_without_observations_have_no_bar_and_partial_ones_are_pale() -> None:
    picture = draw_growth(build_days((5.0, None, 10.0, 400.0), {3}), SIZE)

    first, second, partial = read_heights(picture)
    assert abs(second - 2 * first) < 0.2
    # Only whole days determine the scale, which ends at 10.
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
            " · dashed: trend of whole days · change: average against the 4 days before"
        )
    ]


def test_the_change_leads_and_has_a_color() -> None:
    picture = draw_growth(build_days((5.0, None, 10.0)), SIZE)

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
    growth = build_days((5.0, 7.0, 10.0), coverage=coverage, previous_coverage=previous)
    picture = draw_growth(growth, SIZE)

    assert picture.findtext("desc") == f"A: average 7.5; {words}; 27 observations."
    assert len(find_all(picture, "trend")) == words.endswith("week")
    assert "change" not in " ".join(read_texts(picture, "tick") + read_texts(picture, "unit"))


def test_only_partial_steps_have_a_scale_of_their_own_and_no_trend() -> None:
    picture = draw_growth(build_days((5.0, 10.0), {0, 1}), SIZE)

    first, second = read_heights(picture)
    assert abs(second - 2 * first) < 0.2
    assert not find_all(picture, "trend")


def test_daily_data_have_no_busiest_hour() -> None:
    daily = [1.0 * at if at % 24 == 12 else None for at in range(168)]
    most = [1.0 * at if at % 6 else None for at in range(168)]

    for averages, is_well_observed, count in ((daily, True, 0), (most, False, 0), (most, True, 1)):
        picture = draw_heat_map(
            build_peak_hours(averages).servers[0], SIZE, is_well_observed=is_well_observed
        )
        words = " ".join([picture.findtext("desc", ""), *read_texts(picture, "unit")]).lower()
        assert ("busiest" in words) == bool(count)
        assert len(find_all(picture, "marker")) == count


@settings(max_examples=few_examples())
@given(st.integers(1, 70), st.sampled_from([280, 460, 960, 1600]), st.sampled_from([1, 987_654]))
def test_all_text_of_bars_and_cells_is_inside_and_none_covers_another(
    days: int, width: int, unit: int
) -> None:
    growth = build_days([float(unit * day) for day in range(days)], {days - 1})
    check_lines(draw_growth(growth, Size(width, 200)), Size(width, 200))
    check_lines(draw_distribution(build_bins(unit), Size(width, 200)), Size(width, 200))
    (server,) = build_peak_hours([None, *(at * unit / 24.7 for at in range(167))]).servers
    size = choose_size(server, width)
    check_lines(draw_heat_map(server, size), size)
