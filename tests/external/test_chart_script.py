"""The script of the interactive chart agrees with the static pictures, written in Python."""

import json
import random
import shutil
import subprocess
from collections.abc import Iterator
from importlib.resources import files
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest

from conftest import ROOT
from srvstat.contract.ranges import DAY_MS
from srvstat.documents.document import GapPart, WindowPart
from srvstat.documents.timeline import ServerTimeline, Timeline
from srvstat.render.axes import choose_ticks, choose_time_ticks, format_ticks
from srvstat.render.pictures.points import choose_length, get_window, merge_steps
from srvstat.render.pictures.svg import name_servers
from srvstat.render.text import escape_text
from srvstat.web import CHART_SCRIPTS

pytestmark = pytest.mark.external

PROGRAM = ROOT / "tests" / "external" / "programs" / "chart_steps.js"
SCRIPTS = files("srvstat.web")
ZONES = ("UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "America/Sao_Paulo")
HOUR = DAY_MS // 24
SECONDS = 60


class Server(NamedTuple):
    """A server as far as its name goes."""

    server_id: str
    hostname: str


@pytest.fixture(scope="module")
def source() -> random.Random:
    return random.Random(15)  # noqa: S311 - draws cases


def run_node(*arguments: str, stdin: str = "") -> str:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    done = subprocess.run(
        [node, *arguments],
        input=stdin.encode(),
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def run_script(**cases: Any) -> Any:
    """Return what `chart_steps.js` finds for cases."""
    document = {"ticks": [], "times": [], "timelines": [], "servers": []} | cases
    return json.loads(
        run_node(str(PROGRAM), str(SCRIPTS / "timeline.js"), stdin=json.dumps(document))
    )


def draw_timeline(source: random.Random) -> Timeline:
    """Draw a timeline of servers with gaps, and observations in all other steps."""
    steps = source.randint(1, 3000)
    step = source.choice((HOUR // 2, HOUR, 3 * HOUR))
    begin = source.randint(0, 10**6) * step

    def draw_server(number: int) -> ServerTimeline:
        gaps = sorted(source.sample(range(steps), 2 * source.randint(0, min(3, steps // 2))))
        is_gap = [sum(edge <= at for edge in gaps) % 2 == 1 for at in range(steps)]
        counts = [0 if gap else source.randint(1, 6) for gap in is_gap]
        players = [[source.randint(0, 99) for _ in range(count)] for count in counts]
        return ServerTimeline(
            server_id=f"s{number}",
            cfx_id="x",
            hostname="h",
            sample_counts=tuple(counts),
            averages=tuple(sum(cell) / len(cell) if cell else None for cell in players),
            lowest=tuple(min(cell, default=None) for cell in players),
            peak=tuple(max(cell, default=None) for cell in players),
            gaps=tuple(
                GapPart(from_=begin + first * step, to=begin + last * step)
                for first, last in zip(gaps[::2], gaps[1::2], strict=True)
            ),
        )

    end = begin + steps * step
    return Timeline(
        as_of=end,
        root="0" * 64,
        window=WindowPart(from_=begin, to=end),
        steps_from=begin,
        step_seconds=step // 1000,
        servers=tuple(map(draw_server, range(source.choice((1, 2))))),
    )


def list_figures(timeline: Timeline, width: int) -> Iterator[list[list[list[float]]]]:
    """Yield the figures of the points of each server, in runs between gaps."""
    start, end = get_window(timeline)
    length = choose_length(timeline, width)
    for server in timeline.servers:
        runs = merge_steps(timeline, server, length, (end - start) / width)
        yield [[[point.average, point.lowest, point.peak] for point in run] for run in runs]


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
        Server(server_id=f"s {number}/é", hostname=hostname)
        for number, hostname in enumerate(hostnames)
    ]
    cases = [{"serverId": one.server_id, "hostname": one.hostname} for one in servers]

    assert run_script(servers=cases)["names"] == [escape_text(one) for one in name_servers(servers)]


def test_script_merges_steps_as_pictures_do(source: random.Random) -> None:
    timelines = [(draw_timeline(source), source.randint(150, 1600)) for _ in range(100)]
    cases = [
        {"timeline": json.loads(timeline.to_json()), "width": width}
        for timeline, width in timelines
    ]
    found = run_script(timelines=cases)

    for (timeline, width), runs in zip(timelines, found["runs"], strict=True):
        assert runs == list(list_figures(timeline, width))
