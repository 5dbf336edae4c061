"""The script of the interactive chart agrees with the static pictures, written in Python."""

import json
import random
import shutil
import subprocess
from contextlib import closing
from datetime import UTC, date, datetime
from importlib.resources import files
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from conftest import ROOT
from srvstat.analysis.pictures import compute_timeline
from srvstat.analysis.questions import list_step_edges, parse_step
from srvstat.analysis.selection import Question
from srvstat.contract.requests import parse_server_reference
from srvstat.contract.windows import DAY_MS, find_window
from srvstat.documents.analysis import ServerTimeline, Timeline, build_runs
from srvstat.documents.document import GapPart, ServerPart, WindowPart
from srvstat.operations.answers import resolve_servers
from srvstat.render.axes import choose_ticks, choose_time_ticks, format_ticks
from srvstat.render.svg import name_servers
from srvstat.render.text import escape_text
from srvstat.render.timeline import (
    Point,
    choose_step,
    find_common_gaps,
    find_scale,
    get_window,
    join_points,
    merge_steps,
)
from srvstat.render.web import CHART_SCRIPTS
from srvstat.snapshot.read.file import open_file

pytestmark = pytest.mark.external

PROGRAM = ROOT / "tests" / "external" / "programs" / "chart_steps.js"
SCRIPTS = files("srvstat.render.web")
ZONES = ("UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "America/Sao_Paulo")
DRAWN_STEPS = {"30m", "1h", "2h", "3h", "6h", "day", "week", "month"}
YEAR = int(datetime(2025, 1, 1, tzinfo=UTC).timestamp()) * 1000
SECONDS = 60


@pytest.fixture
def source() -> random.Random:
    return random.Random(15)  # noqa: S311 - draws cases


def run_node(*arguments: str, stdin: str = "") -> str:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    done = subprocess.run(
        [node, *arguments], input=stdin.encode(), capture_output=True, timeout=SECONDS, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def run_script(**cases: Any) -> Any:
    """Return what `chart_steps.js` finds for cases."""
    names = ("ticks", "times", "timelines", "servers")
    document = {name: [] for name in names} | cases
    script = str(SCRIPTS / "timeline.js")
    return json.loads(run_node(str(PROGRAM), script, stdin=json.dumps(document)))


def draw_timeline(source: random.Random, zone: str) -> Timeline:
    """Draw a timeline of servers with gaps, in a window of up to 15 months that cuts its steps."""
    name = source.choice(["30m", "1h", "2h", "3h", "6h", "day", "week"])
    shortest = parse_step(name).shortest
    length = source.randint(shortest, min(3000 * shortest, 450 * DAY_MS))
    start = YEAR + source.randint(0, 450 * DAY_MS)
    end = start + length
    edges = list_step_edges(start + 1, end - 1, parse_step(name), ZoneInfo(zone)).tolist()

    def draw_server(number: int) -> ServerTimeline:
        steps = len(edges) - 1
        gaps = sorted(source.sample(range(steps), 2 * source.randint(0, min(3, steps // 2))))
        is_gap = [sum(edge <= at for edge in gaps) % 2 == 1 for at in range(steps)]
        counts = [0 if gap else source.choice((0, 1, 2, 6)) for gap in is_gap]
        players = [[source.randint(0, 99) for _ in range(count)] for count in counts]
        lengths = [2 * (after - before) for before, after in pairwise(edges)]
        return ServerTimeline(
            server_id=f"s{number}",
            cfx_id="x",
            hostname="h",
            sample_counts=tuple(counts),
            averages=tuple(sum(cell) / len(cell) if cell else None for cell in players),
            lowest=tuple(min(cell, default=None) for cell in players),
            peak=tuple(max(cell, default=None) for cell in players),
            observed_shares=tuple(
                0.0 if gap else source.choice((1.0, source.randint(1, half) / half))
                for gap, half in zip(is_gap, lengths, strict=True)
            ),
            gaps=tuple(
                GapPart(from_=edges[first] + 7, to=edges[last] + 11)
                for first, last in zip(gaps[::2], gaps[1::2], strict=True)
            ),
        )

    return Timeline(
        as_of=end,
        root="0" * 64,
        window=WindowPart(from_=start, to=end),
        time_zone=zone,
        step=name,
        steps=build_runs(edges),
        servers=tuple(map(draw_server, range(source.choice((1, 2))))),
    )


def list_points(points: list[Point], gaps: tuple[GapPart, ...]) -> list[list[Any]]:
    """Return points as `chart_steps.js` does, each with its joint to the one before."""
    joints = [None, *(join_points(*pair, gaps) for pair in pairwise(points))]
    return [[*point, point.is_partial, joint] for point, joint in zip(points, joints, strict=False)]


@pytest.mark.parametrize("name", [*CHART_SCRIPTS, "report.js"])
def test_scripts_are_valid(name: str) -> None:
    run_node("--check", str(SCRIPTS / name))


def test_script_chooses_the_ticks_of_pictures(source: random.Random) -> None:
    players = [
        (source.randint(1, 10 ** source.randint(0, 12)), source.randint(3, 9)) for _ in range(99)
    ]
    times = []
    for _ in range(300):
        end = source.randint(10**12, 2 * 10**12)
        start = end - source.randint(1, 10 ** source.randint(6, 12))
        times.append((source.choice(ZONES), start, end, source.randint(2, 14)))
    found = run_script(ticks=players, times=times)

    assert found["ticks"] == [format_ticks(choose_ticks(0, *case)) for case in players]
    for (zone, start, end, most), ticks in zip(times, found["times"], strict=True):
        expected = choose_time_ticks(start, end, most, ZoneInfo(zone))
        assert ticks == [list(tick) for tick in expected], (zone, start, end, most)


def test_script_names_servers_as_pictures_do() -> None:
    hostnames = (
        "twice", "twice", "", " \u3164\u00a0 ", "\u202eevil\u001b[1m", "\ufffe \U000e0001",
        "z\u0301\u0302\u0303\u0304\u0305", "日本\u3000語", "<b>&amp;", "\U0001f600",
    )  # fmt: skip
    servers = [
        ServerPart(server_id=f"s {number}/é", cfx_id="", hostname=hostname)
        for number, hostname in enumerate(hostnames)
    ]
    cases = [{"serverId": one.server_id, "hostname": one.hostname} for one in servers]

    assert run_script(servers=cases)["names"] == [escape_text(one) for one in name_servers(servers)]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Australia/Lord_Howe"])
def test_script_merges_steps_as_pictures_do(source: random.Random, zone: str) -> None:
    drawn = [
        (draw_timeline(source, zone), source.choice((4, 40, source.randint(150, 1600))))
        for _ in range(400)
    ]
    cases = [
        {"timeline": json.loads(timeline.to_json()), "width": width} for timeline, width in drawn
    ]
    found = run_script(timelines=cases)["timelines"]

    for (timeline, width), chart in zip(drawn, found, strict=True):
        step = choose_step(timeline, width)
        merged = [merge_steps(timeline, server, step) for server in timeline.servers]
        assert chart["step"] == step
        assert chart["points"] == [
            list_points(points, server.gaps)
            for points, server in zip(merged, timeline.servers, strict=True)
        ]
        assert chart["scales"] == [[one.start for one in find_scale(points)] for points in merged]
        assert chart["gaps"] == [list(gap) for gap in find_common_gaps(timeline)]
    assert {chart["step"] for chart in found} >= DRAWN_STEPS


def test_a_zoomed_view_has_the_whole_steps_of_the_window(source: random.Random) -> None:
    cases = []
    for _ in range(100):
        timeline = draw_timeline(source, "Europe/Berlin")
        start, end = get_window(timeline)
        length = source.randint(1, end - start)
        first = source.randint(start, end - length)
        cases.append((timeline, first, first + length))
    sent = [
        {
            "timeline": json.loads(timeline.to_json()),
            "width": 900,
            "view": {"from": first, "to": last},
        }
        for timeline, first, last in cases
    ]

    for (timeline, first, last), chart in zip(
        cases, run_script(timelines=sent)["timelines"], strict=True
    ):
        for server, points in zip(timeline.servers, chart["points"], strict=True):
            whole = merge_steps(timeline, server, chart["step"])
            inside = [point for point in whole if point.start < last and point.end > first]
            assert points == list_points(inside, server.gaps)


def test_days_of_real_servers_have_the_means_of_their_raw_rows(
    war_brokers_snapshot: str, war_brokers_rows: dict[str, list[tuple[int, int]]]
) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    ids = ["wb-usa", "wb-europe", "wb-usa-west", "wb-asia", "wb-japan"]
    with closing(open_file(war_brokers_snapshot)) as file:
        window = find_window("1y", file.as_of)
        servers = resolve_servers(file, [parse_server_reference(one) for one in ids])
        timeline = compute_timeline(Question(file, servers, window, berlin), 9_000)
    [chart] = run_script(timelines=[{"timeline": json.loads(timeline.to_json()), "width": 900}])[
        "timelines"
    ]

    assert chart["step"] == "day"
    for name, points in zip(ids, chart["points"], strict=True):
        days: dict[date, list[int]] = {}
        for at, players in war_brokers_rows[name]:
            if window.start < at <= window.end:
                days.setdefault(datetime.fromtimestamp(at / 1000, berlin).date(), []).append(
                    players
                )
        found = {
            datetime.fromtimestamp(start / 1000, berlin).date(): average
            for start, _, average, *_ in points
        }
        assert found == {day: sum(counts) / len(counts) for day, counts in days.items()}
