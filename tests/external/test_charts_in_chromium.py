"""The interactive chart and the report in Chromium: one number at line, dot, cursor and table."""

import json
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest

from conftest import AS_OF, DAY, build_in, server, srvstat
from external.installed import HOSTILE_NAMES, browse
from srvstat.analysis.pictures import compute_timeline
from srvstat.analysis.selection import Question
from srvstat.contract.requests import parse_server_reference
from srvstat.contract.time import parse_instant
from srvstat.contract.windows import Window
from srvstat.documents.analysis import Timeline
from srvstat.operations.answers import resolve_servers
from srvstat.render.timeline import Point, find_scale, join_points, merge_steps
from srvstat.snapshot.read.file import open_file
from support.process import serve

pytestmark = pytest.mark.external

HOUR = DAY // 24
WINDOW = Window(AS_OF - 90 * DAY, AS_OF)
STEPS = {"an hour": "1h", "a day": "day"}
ROUNDED = 0.06
"""The greatest distance in pixels that comes from rounding to a tenth of a pixel."""


class Seen(NamedTuple):
    """What a chart shows in its whole window and in a zoomed view, and the timeline behind it."""

    timeline: Timeline
    views: list[list[dict[str, Any]]]
    complaints: list[str]


def is_observed(name: str, at: int) -> bool:
    """Server `b` has an outage of less than three days, and `c` begins 45 days before the end."""
    if name == "b":
        return not AS_OF - 20 * DAY + 6 * HOUR < at < AS_OF - 18 * DAY + 18 * HOUR
    return name == "a" or at >= AS_OF - 45 * DAY


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a snapshot of servers that are busy in the evening only."""
    rows = [
        (name, at, (40 if at // HOUR % 24 >= 18 else 2) + number)
        for number, name in enumerate("abc")
        for at in range(AS_OF - 100 * DAY, AS_OF + 1, HOUR)
        if is_observed(name, at)
    ]
    return build_in(tmp_path_factory.mktemp("chart"), [server(name) for name in "abc"], rows)


@pytest.fixture(scope="module", params=["explore page", "report"])
def seen(request: pytest.FixtureRequest, snapshot: Path) -> Seen:
    zone = "UTC" if request.param == "explore page" else "Europe/Berlin"
    with closing(open_file(str(snapshot))) as file:
        servers = resolve_servers(file, [parse_server_reference(name) for name in "abc"])
        timeline = compute_timeline(Question(file, servers, WINDOW, ZoneInfo(zone)), 3_000)
    if request.param == "explore page":
        with serve(snapshot, "--explore") as service:
            chart = browse("browse_charts.py", "chart", f"{service.url}/#id=a&id=b&id=c&range=90d")
    else:
        page = snapshot.with_name("report.html")
        options = ("--snapshot", str(snapshot), "--range", "90d", "--tz", zone, "-o", str(page))
        ran = srvstat("report", *"abc", *options)
        assert ran.exit_code == 0, ran.stderr
        chart = browse("browse_charts.py", "chart", page.as_uri())
    return Seen(timeline, chart["views"], chart["console"] + chart["errors"])


def list_points(seen: Seen, view: Sequence[dict[str, Any]]) -> list[list[Point]]:
    """Return the points of each server that a view must show, as the static pictures have them."""
    length = view[0]["notes"].split("averages of ")[1].split(" · ")[0]
    starts = {parse_instant(shown["from"]) for shown in view}
    return [
        [one for one in merge_steps(seen.timeline, server, STEPS[length]) if one.start in starts]
        for server in seen.timeline.servers
    ]


def read_ticks(shown: dict[str, Any]) -> dict[float, float]:
    """Return the heights of the ticks by their players, in order."""
    return dict(sorted((float(label), y) for y, label in shown["ticks"]))


def find_height(ticks: dict[float, float], players: float) -> float:
    """Return the height of a number of players; one above the axis is at its top."""
    top = max(ticks)
    return ticks[0] - min(players, top) / top * (ticks[0] - ticks[top])


def list_runs(points: Sequence[Point], joints: Sequence[str | None], joint: str) -> list[list[int]]:
    """Return the numbers of points that lines of one kind join."""
    runs: list[list[int]] = []
    for number, found in enumerate(joints, start=1):
        if found == joint and runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        elif found == joint:
            runs.append([number - 1, number])
    assert all(len(points) > run[-1] for run in runs)
    return runs


def test_a_view_shows_one_number_at_cursor_dot_and_table(seen: Seen) -> None:
    for view in seen.views:
        ticks = read_ticks(view[0])
        expected = [{one.start: one for one in points} for points in list_points(seen, view)]
        for shown in view:
            for number, points in enumerate(expected):
                row = shown["rows"][number]
                point = points.get(parse_instant(shown["from"]))
                dot = shown["dots"].get(f"series series-{number + 1}")
                if point is None:
                    assert (row["average"], row["observations"], row["texts"][1]) == ("", "0", "–")  # noqa: RUF001 - the dash
                    assert dot is None
                    continue
                assert float(row["average"]) == point.average
                assert row["texts"][1] == f"{point.average:,.2f}"
                assert dot["y"] == pytest.approx(find_height(ticks, point.average), abs=ROUNDED)


def test_lines_go_through_the_numbers_of_the_cursor(seen: Seen) -> None:
    for view in seen.views:
        ticks = read_ticks(view[0])
        places = {parse_instant(shown["from"]): shown["dots"] for shown in view}
        for number, points in enumerate(list_points(seen, view)):
            gaps = seen.timeline.servers[number].gaps
            joints = [join_points(*pair, gaps) for pair in pairwise(points)]
            for name, joint in (("line", "solid"), ("line partial", "dashed")):
                drawn = view[0]["lines"][number].get(name, "").split("M")[1:]
                runs = list_runs(points, joints, joint)
                assert len(drawn) == len(runs)
                for line, run in zip(drawn, runs, strict=True):
                    vertices = [tuple(map(float, one.split())) for one in line.split("L")]
                    assert [x for x, _ in vertices] == [
                        places[points[at].start][f"series series-{number + 1}"]["x"] for at in run
                    ]
                    assert [y for _, y in vertices] == pytest.approx(
                        [find_height(ticks, points[at].average) for at in run], abs=ROUNDED
                    )


def test_partial_days_are_pale_and_named_and_determine_no_axis(seen: Seen) -> None:
    days, hours = seen.views
    expected = [{one.start: one for one in points} for points in list_points(seen, days)]
    count = 0
    for shown in days:
        found = [points.get(parse_instant(shown["from"])) for points in expected]
        partial = [point is not None and point.is_partial for point in found]
        assert [row["texts"][0].endswith("part of a day") for row in shown["rows"]] == partial
        assert [
            shown["dots"].get(f"series series-{number}", {}).get("name") == "dot partial"
            for number in (1, 2, 3)
        ] == partial
        is_all = all(point.is_partial for point in found if point is not None)
        assert shown["label"].endswith(", part of a day") == is_all
        assert shown["caption"] == shown["label"]
        assert shown["announced"].count("part of a day, average ") == sum(partial)
        count += sum(partial)
    # The ends of the window, the outage, and the beginning of `c`.
    assert count >= 2 + 3 + 1 + 1
    for view in (days, hours):
        points = [one for of_server in list_points(seen, view) for one in of_server]
        ticks = sorted(read_ticks(view[0]))
        assert ticks[-2] < max(one.average for one in find_scale(points)) <= ticks[-1]
    top = max(read_ticks(days[0]))
    assert max(one.average for of in list_points(seen, days) for one in of) > top


def test_the_console_is_clean(seen: Seen) -> None:
    assert seen.complaints == []


HOSTNAMES = (*HOSTILE_NAMES, "x" * 250)
WHITE = "rgb(255, 255, 255)"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report of five servers; two days are missing on one of them."""
    directory = tmp_path_factory.mktemp("report")
    times = range(AS_OF - 72 * DAY, AS_OF + 1, HOUR)
    rows = [
        (name, at, number * 10 + at // HOUR % 24)
        for number, name in enumerate("abcde")
        for at in times
        if name != "b" or not AS_OF - 9 * DAY < at < AS_OF - 7 * DAY
    ]
    names = zip("abcde", HOSTNAMES, strict=True)
    servers = [server(name, hostname=hostname, players={"current": 1}) for name, hostname in names]
    snapshot = build_in(directory, servers, rows)
    options = ("--snapshot", str(snapshot), "--range", "35d", "--tz", "Europe/Berlin")
    for name, form in (("report.html", ()), ("report.json", ("--json",))):
        output = ("-o", str(directory / name))
        ran = srvstat("report", *"abcde", *options, *output, *form)
        assert ran.exit_code == 0, ran.stderr
    return directory / "report.html"


@pytest.fixture(scope="module")
def report(path: Path) -> Any:
    return json.loads(path.with_suffix(".json").read_bytes())


@pytest.fixture(scope="module")
def page(path: Path) -> Any:
    return browse("browse_charts.py", "report", path)


def test_nothing_leaves_the_page_and_the_console_is_clean(page: Any, path: Path) -> None:
    assert set(page["requests"]) == {path.as_uri()}
    assert (page["console"], page["errors"]) == ([], [])


def test_every_size_and_color_scheme_is_free_of_serious_barriers(page: Any) -> None:
    sizes = page["sizes"]

    assert {size: one["barriers"] for size, one in sizes.items()} == {size: [] for size in sizes}
    assert not any(one["tooWide"] for one in sizes.values())
    assert {size.split()[1]: one["background"] == WHITE for size, one in sizes.items()} == {
        "light": True,
        "dark": False,
    }


def test_hostile_names_are_text(page: Any) -> None:
    assert page["hacked"] is None
    assert not {"img", "iframe", "object"} & set(page["elements"])
    for hostname in HOSTILE_NAMES:
        assert hostname in page["text"]


def test_values_on_the_page_are_those_of_the_document(page: Any, report: Any) -> None:
    shown = {float(value) for value, _ in page["data"]}
    names = ("currentPlayers", "averagePlayers", "medianPlayers", "peakPlayers", "lowestPlayers")
    for figures in report["stats"]["servers"]:
        assert {figures[name] for name in names} <= shown
        assert {quantile["players"] for quantile in figures["quantiles"]} <= shown


def test_the_whole_chart_has_the_figures_of_the_document(page: Any, report: Any) -> None:
    chart = page["keyboard"]["charts"]["all"]

    assert chart["from"] == report["window"]["from"]
    assert chart["to"] == report["window"]["to"]
    assert chart["rows"] == [
        {
            "server": figures["serverId"],
            "average": json.dumps(figures["averagePlayers"]).removesuffix(".0"),
            "lowest": str(figures["lowestPlayers"]),
            "peak": str(figures["peakPlayers"]),
            "observations": str(figures["sampleCount"]),
        }
        for figures in report["stats"]["servers"]
    ]


def test_keys_move_zoom_and_reset_the_chart(page: Any) -> None:
    charts = page["keyboard"]["charts"]

    assert charts["first"]["from"] == charts["all"]["from"]
    assert charts["second"]["from"] == charts["first"]["to"]
    assert "observation" in charts["first"]["announced"]
    assert charts["zoomed"]["from"] <= charts["second"]["to"]
    assert charts["back"]["rows"] == charts["all"]["rows"]
    assert charts["back"]["announced"].startswith("The chart shows ")


def test_the_mouse_reads_and_selects_an_interval(page: Any) -> None:
    pointed, selected = page["mouse"]["pointed"], page["mouse"]["selected"]
    whole = page["keyboard"]["charts"]["all"]

    assert whole["from"] < pointed["from"] < pointed["to"] < whole["to"]
    assert whole["from"] < selected["from"] < selected["to"] < whole["to"]
    assert 0 < int(selected["rows"][0]["observations"]) < int(whole["rows"][0]["observations"])


def test_everything_is_reachable_by_keyboard_with_visible_focus(page: Any) -> None:
    keyboard = page["keyboard"]
    stops = keyboard["stops"]

    assert [
        place for place, has_outline, is_visible in stops if not (has_outline and is_visible)
    ] == []
    for part in ("skip", "chart-plot", "<summary", "<button"):
        assert any(part in place for place, _, _ in stops), part
    assert (keyboard["pressed"], keyboard["isOpen"]) == ("false", True)


def test_a_printed_page_is_light_and_has_all_pictures(page: Any) -> None:
    printed = page["print"]

    assert (printed["background"], printed["tooWide"], printed["pdf"]) == (WHITE, False, "%PDF-")
    assert printed["pictures"] == page["withoutScripts"]
    assert any("gaps" in caption.lower() for caption in printed["tables"])
    assert not [caption for caption in printed["tables"] if "by hour and weekday" in caption]


def test_without_scripts_all_pictures_are_there(page: Any) -> None:
    # The timeline, five heat maps, the distribution and the growth.
    assert page["withoutScripts"] == 8
