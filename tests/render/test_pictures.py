"""Pictures show every observed step, gaps as gaps, and hostile names as text."""

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import chain, pairwise
from typing import get_args
from xml.etree import ElementTree as ET
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from srvstat.contract.ranges import DAY_MS
from srvstat.documents.document import GapPart
from srvstat.documents.timeline import ServerTimeline, Timeline
from srvstat.render.pictures import (
    Size,
    Theme,
    choose_size,
    draw_sheet,
    draw_timeline,
    encode_svg,
)
from srvstat.render.pictures.keys import spread_keys
from srvstat.render.pictures.points import choose_length, get_window, merge_steps
from srvstat.render.pictures.style import build_style, read_palette
from srvstat.render.pictures.svg import Box, fit_text, measure_text
from srvstat.render.text import escape_text
from support.timelines import Case, build_case, cases, check_lines, find_all

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
def test_a_point_is_the_exact_average_of_the_observations_in_its_interval(
    case: Case, size: Size
) -> None:
    timeline = case.timeline
    length = choose_length(timeline, size.width)
    first, last = get_window(timeline)
    for server, cells in zip(timeline.servers, case.players, strict=True):
        runs = merge_steps(timeline, server, length, (last - first) / size.width)
        covered = 0
        for point in (point for run in runs for point in run):
            step = timeline.step_seconds * 1000
            inside = [
                players
                for at, cell in enumerate(cells)
                for players in cell
                if point.start < timeline.steps_from + (at + 1) * step <= point.end
            ]
            assert point.average == float(Fraction(sum(inside), len(inside)))
            assert (point.lowest, point.peak) == (min(inside), max(inside))
            covered += len(inside)
        assert covered == sum(server.sample_counts)


def test_merging_rounds_only_once() -> None:
    # With floats, 11 * (15 / 11) three times is more than 45.
    case = build_case([[[15] + [0] * 10] * 3], [""])
    ((point,),) = merge_steps(case.timeline, case.timeline.servers[0], DAY_MS, 1)

    assert point.average == 45 / 33


@given(cases(), SIZES)
def test_all_observed_steps_are_inside_the_picture_and_gaps_split_lines(
    case: Case, size: Size
) -> None:
    timeline = case.timeline
    picture = draw_timeline(timeline, size, ZONE)
    groups = find_all(picture, "series")
    assert len(groups) == len(timeline.servers)
    first, last = get_window(timeline)
    for server, group in zip(timeline.servers, groups, strict=True):
        lines = [line for path in find_all(group, "line") for line in read_vertices(path)]
        dots = [read_center(one) for one in find_all(group, "dot")]
        places = [*(place for line in lines for place in line), *dots]
        assert bool(places) == any(server.sample_counts)
        assert all(0 <= x <= size.width and 0 <= y <= size.height for x, y in places)
        assert len(places) <= 2 * size.width
        inner = list_inner_gaps(server, timeline)
        wide = [gap for gap in inner if gap.to - gap.from_ > 4 * (last - first) / size.width]
        assert not places or len(wide) < len(lines) + len(dots) <= len(inner) + 1


def list_inner_gaps(server: ServerTimeline, timeline: Timeline) -> list[GapPart]:
    """Return the gaps that have observations before and after them."""
    step = timeline.step_seconds * 1000
    observed = [at for at, count in enumerate(server.sample_counts) if count]
    if not observed:
        return []
    first, last = (timeline.steps_from + at * step for at in (observed[0], observed[-1]))
    return [gap for gap in server.gaps if first < gap.from_ and gap.to <= last]


@given(cases(), st.sampled_from([320, 960]), THEMES)
def test_any_hostname_gives_a_file_that_is_well_formed_and_the_same_each_time(
    case: Case, width: int, theme: Theme
) -> None:
    encoded = encode_svg(draw_sheet(case.timeline, width, ZONE), theme)

    root = ET.fromstring(encoded)  # noqa: S314 - our own output

    assert encoded == encode_svg(draw_sheet(case.timeline, width, ZONE), theme)
    tags = {one.tag.rpartition("}")[2] for one in root.iter()}
    allowed = "svg title desc style rect line path circle text g"
    assert tags <= set(allowed.split())
    assert not {name for one in root.iter() for name in one.attrib} & {"style", "href", "onload"}
    assert re.search(r"[^\t\n\x20-\x7e\xa0-\U0010ffff]", encoded.decode("utf-8")) is None


def read_place(picture: ET.Element, timeline: Timeline) -> Callable[[float, float], Place]:
    """Return a function from instants and players to pixels, as the axes of a picture say."""
    (axis,) = (one for one in find_all(picture, "axis") if one.get("y1") == one.get("y2"))
    left, right, bottom = (float(axis.get(name, "")) for name in ("x1", "x2", "y1"))
    labels = [one for one in find_all(picture, "tick") if one.get("text-anchor") == "end"]
    highest = float((labels[-1].text or "").replace(",", ""))
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
def test_lines_dots_and_bands_are_where_their_points_are_on_the_axes(case: Case) -> None:
    timeline, size = case.timeline, Size(500, 300)
    picture = draw_timeline(timeline, size, ZONE)
    place = read_place(picture, timeline)
    start, end = get_window(timeline)
    length = choose_length(timeline, size.width)
    for server, group in zip(timeline.servers, find_all(picture, "series"), strict=True):
        runs = merge_steps(timeline, server, length, (end - start) / size.width)
        lines = [[place(one.middle, one.average) for one in run] for run in runs]
        drawn = [line for path in find_all(group, "line") for line in read_vertices(path)]
        drawn += [[read_center(dot)] for dot in find_all(group, "dot")]
        assert is_near([*chain(*sorted(lines))], [*chain(*sorted(drawn))])
        for run, band in zip(runs, find_all(group, "band"), strict=False):
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

    assert len(find_all(picture, "dot")) == 1
    assert len(find_all(picture, "gap")) == 2
    (line,) = find_all(picture, "line")
    assert [len(part) for part in read_vertices(line)] == [2, 2]
    assert not find_all(picture, "band")
    description = picture.findtext("desc", "")
    assert description == "s0: average 6.2, lowest 4, peak 9, 5 observations, 2 gaps."


@given(st.lists(st.floats(0, 400), min_size=1, max_size=5))
def test_keys_beside_lines_do_not_overlap(wanted: list[float]) -> None:
    placed = spread_keys(wanted, Box(0, 20, 100, 300))

    heights = sorted(placed)
    assert all(after - before >= 17 - 1e-6 for before, after in pairwise(heights))
    assert heights[0] >= 20 - 1e-6
    assert heights[-1] <= 300


@given(cases(), st.sampled_from([280, 320, 600, 960]))
def test_all_text_is_inside_the_picture_and_none_covers_another(case: Case, width: int) -> None:
    size = choose_size(case.timeline, width)
    check_lines(draw_timeline(case.timeline, size, ZONE), size)


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
