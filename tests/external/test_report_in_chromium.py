"""Open a report of servers with hostile names in headless Chromium.

`make external` installs Playwright and axe-core. Without them or Chromium, the tests are skipped.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import AS_OF, DAY, build_in, server, srvstat
from external.chromium import HOSTILE_NAMES, browse

pytestmark = pytest.mark.external

HOUR = DAY // 24
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
def seen(path: Path) -> Any:
    return browse("browse_report.py", path)


def test_nothing_leaves_the_page_and_the_console_is_clean(seen: Any, path: Path) -> None:
    assert set(seen["requests"]) == {path.as_uri()}
    assert (seen["console"], seen["errors"]) == ([], [])


def test_every_size_and_color_scheme_is_free_of_serious_barriers(seen: Any) -> None:
    sizes = seen["sizes"]

    assert {size: one["barriers"] for size, one in sizes.items()} == {size: [] for size in sizes}
    assert not any(one["tooWide"] for one in sizes.values())
    assert {size.split()[1]: one["background"] == WHITE for size, one in sizes.items()} == {
        "light": True,
        "dark": False,
    }


def test_hostile_names_are_text(seen: Any) -> None:
    assert seen["hacked"] is None
    assert not {"img", "iframe", "object"} & set(seen["elements"])
    for hostname in HOSTILE_NAMES:
        assert hostname in seen["text"]


def test_values_on_the_page_are_those_of_the_document(seen: Any, report: Any) -> None:
    shown = {float(value) for value, _ in seen["data"]}
    names = ("currentPlayers", "averagePlayers", "medianPlayers", "peakPlayers", "lowestPlayers")
    for figures in report["stats"]["servers"]:
        assert {figures[name] for name in names} <= shown
        assert {quantile["players"] for quantile in figures["quantiles"]} <= shown


def test_the_whole_chart_has_the_figures_of_the_document(seen: Any, report: Any) -> None:
    chart = seen["keyboard"]["charts"]["all"]

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


def test_keys_move_zoom_and_reset_the_chart(seen: Any) -> None:
    charts = seen["keyboard"]["charts"]

    assert charts["first"]["from"] == charts["all"]["from"]
    assert charts["second"]["from"] == charts["first"]["to"]
    assert "observation" in charts["first"]["announced"]
    assert charts["zoomed"]["from"] <= charts["second"]["to"]
    assert charts["back"]["rows"] == charts["all"]["rows"]
    assert charts["back"]["announced"].startswith("The chart shows ")


def test_the_mouse_reads_and_selects_an_interval(seen: Any) -> None:
    pointed, selected = seen["mouse"]["pointed"], seen["mouse"]["selected"]
    whole = seen["keyboard"]["charts"]["all"]

    assert whole["from"] < pointed["from"] < pointed["to"] < whole["to"]
    assert whole["from"] < selected["from"] < selected["to"] < whole["to"]
    assert 0 < int(selected["rows"][0]["observations"]) < int(whole["rows"][0]["observations"])


def test_everything_is_reachable_by_keyboard_with_visible_focus(seen: Any) -> None:
    keyboard = seen["keyboard"]
    stops = keyboard["stops"]

    assert [
        place for place, has_outline, is_visible in stops if not (has_outline and is_visible)
    ] == []
    for part in ("skip", "chart-plot", "<summary", "<button"):
        assert any(part in place for place, _, _ in stops), part
    assert (keyboard["pressed"], keyboard["isOpen"]) == ("false", True)


def test_a_printed_page_is_light_and_has_all_pictures(seen: Any) -> None:
    printed = seen["print"]

    assert (printed["background"], printed["tooWide"], printed["pdf"]) == (WHITE, False, "%PDF-")
    assert printed["pictures"] == seen["withoutScripts"]
    assert any("gaps" in caption.lower() for caption in printed["tables"])
    assert not [caption for caption in printed["tables"] if "by hour and weekday" in caption]


def test_without_scripts_all_pictures_are_there(seen: Any) -> None:
    # The timeline, five heat maps, the distribution and the growth.
    assert seen["withoutScripts"] == 8
