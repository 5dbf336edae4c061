"""The page of a report, read as a browser reads it, against the JSON of the same report."""

import json
import math
import re
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from conftest import AS_OF, build_in, few_examples, server
from srvstat.analysis.report import ReportOrigin, build_report
from srvstat.analysis.window_query import WindowQuery, choose_window, find_zone
from srvstat.documents.analysis import Report
from srvstat.documents.document import Part, remove_color_codes
from srvstat.documents.servers import is_silent
from srvstat.render.report.page import render_report
from srvstat.render.text import escape_text
from srvstat.snapshot.read.snapshot import SnapshotFile, open_file
from support.markdown import Node, Page

HOUR = 3_600_000
HOURS = 29 * 24
HOSTNAMES = {
    "busy": "<script>alert(1)</script>",
    "calm": "]]></title><img src=x onerror=alert(1)>",
    "flat": "\u202egnp.exe\u0007{{7*7}}",
    "long": "ä" * 200,
    "none": "",
}
DOCUMENTS = ("stats", "timeline", "peak_hours", "distribution", "growth", "integrity")


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SnapshotFile]:
    """Return a snapshot of 29 days with five servers, with a gap and a server without data."""
    servers = [server(name, hostname=hostname) for name, hostname in HOSTNAMES.items()]
    counts = [
        (name, AS_OF - (HOURS - hour) * HOUR, players)
        for hour in range(HOURS + 1)
        for name, players in {
            "busy": 60 + 30 * (hour % 24) + hour,
            "calm": 20 + hour % 7,
            "flat": 12,
            "long": hour % 5,
        }.items()
        if not (name == "calm" and 100 < hour < 140)
    ]
    with closing(
        open_file(str(build_in(tmp_path_factory.mktemp("report"), servers, counts)))
    ) as file:
        yield file


@pytest.fixture(scope="module")
def report(snapshot: SnapshotFile) -> Report:
    """Return a report of 28 days about all servers."""
    return build(snapshot, [*HOSTNAMES])


def build(snapshot: SnapshotFile, names: list[str]) -> Report:
    window = choose_window(snapshot, WindowQuery(range="28d"))
    origin = ReportOrigin("A & </title> B", "srvstat 1", "srvstat report '<x>'")
    rows = [row for row in snapshot.iter_servers() if row.id in names]
    return build_report(snapshot, rows, window, find_zone("Europe/Berlin"), origin)


@pytest.fixture(scope="module")
def page(report: Report) -> Node:
    """Return the page of the report."""
    return Page.parse(render_report(report)).root


def test_equal_reports_have_equal_pages(report: Report) -> None:
    assert render_report(report) == render_report(report)


def test_a_page_has_its_parts_in_order_and_refers_to_no_other_file(page: Node) -> None:
    elements = page.find_all()
    identifiers = [one.attributes["id"] for one in elements if "id" in one.attributes]
    levels = [int(one.tag[1]) for one in page.find_all("h1", "h2", "h3", "h4")]
    references = [
        one.attributes[name]
        for one in elements
        for name in ("href", "src", "aria-labelledby", "aria-describedby")
        if name in one.attributes
    ]
    regions = [
        one.attributes["aria-label"] for one in elements if one.attributes.get("role") == "region"
    ]

    assert len(set(identifiers)) == len(identifiers)
    assert len(set(regions)) == len(regions) > 5
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert {one.removeprefix("#") for one in references} <= {*identifiers, "data:,"}
    assert [one.tag for one in page.find_all("header", "nav", "main")] == ["header", "nav", "main"]
    for one in elements:
        assert not [name for name in one.attributes if name == "style" or name.startswith("on")]


def test_a_picture_has_a_text_and_a_table_in_its_section(page: Node) -> None:
    for section in page.find_all("section"):
        pictures = [one for one in section.find_all("svg") if "role" in one.attributes]
        for picture in pictures:
            title, description = picture.children[:2]
            assert isinstance(title, Node)
            assert isinstance(description, Node)
            assert (title.tag, description.tag) == ("title", "desc")
            assert title.text
            assert description.text
        if pictures:
            assert section.find_all("details", "table")
    for table in page.find_all("table"):
        assert table.find_all("caption")[0].text
        assert all(header.attributes["scope"] for header in table.find_all("th"))


def test_a_policy_allows_the_texts_of_the_page_and_nothing_else(page: Node) -> None:
    scripts = [one for one in page.find_all("script") if "type" not in one.attributes]
    (policy,) = (
        one.attributes["content"]
        for one in page.find_all("meta")
        if one.attributes.get("http-equiv") == "Content-Security-Policy"
    )

    assert policy == (
        f"default-src 'none'; style-src {hash_text(page.find_all('style')[0])};"
        f" script-src {' '.join(map(hash_text, scripts))};"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )


def hash_text(node: Node) -> str:
    return f"'sha256-{b64encode(sha256(node.text.encode()).digest()).decode()}'"


def test_a_figure_is_a_rounded_value_of_the_json(report: Report, page: Node) -> None:
    numbers = {*iter_numbers(json.loads(report.to_json()))}
    figures = page.find_all("data")

    assert len(figures) > 1000
    for figure in figures:
        value = float(figure.attributes["value"])
        assert value in numbers
        assert is_rounded(value, figure.text), f"{figure.text} for {value}"


def iter_numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from iter_numbers(one)
    elif isinstance(value, int | float):
        yield value


UNITS = {"%": (100, 1), " h": (1 / 3600,), " min": (1 / 60,), " a week": (1,)}
"""The factors of a value in its unit. A share is in percent, and a growth already is."""


def is_rounded(value: float, text: str) -> bool:
    if "→" in text:  # the first and the last count
        before, _, after, *_ = text.replace(",", "").split()
        return int(after) - int(before) == value
    if text == "flat":
        return True
    number = text.replace(",", "").replace("up ", "+").replace("down ", "-")
    unit = next((unit for unit in UNITS if number.endswith(unit)), "")
    number = number.removesuffix(unit)
    digits = max(len(number.partition(".")[2]), 1)  # a single 0 after the point is left out
    return any(
        math.isclose(float(number), value * factor, abs_tol=0.5001 * 10**-digits)
        for factor in UNITS.get(unit, (1,))
    )


def test_the_tables_have_the_figures_of_each_server(report: Report, page: Node) -> None:
    rows = {
        row.find_all("th")[0].text: row.find_all("td")
        for row in page.find("comparison").find_all("tr")
    }
    expected = {
        "Average": [one.average_players for one in report.stats.servers],
        "Median": [one.median_players for one in report.stats.servers],
        "Peak": [one.peak_players for one in report.stats.servers],
        "Lowest": [one.lowest_players for one in report.stats.servers],
        "95%": [one.quantiles[3].players for one in report.stats.servers],
        "Count": [one.sample_count for one in report.stats.servers],
        "Coverage": [one.coverage for one in report.stats.servers],
    }
    current = [
        "silent" if is_silent(one.last_observed_at, report.as_of) else one.current_players
        for one in report.stats.servers
    ]
    maps = page.find("hours").find_all("table")
    bins = page.find("distribution").find_all("table")[0]

    assert len(maps) == 4
    shown = [cell.text.replace(",", "") for cell in rows["Current"]]
    assert [
        "silent" if " seen" in text else int(text.replace(",", "")) for text in shown
    ] == current
    assert {name: [*map(read_value, rows[name])] for name in expected} == expected
    assert [[*map(read_value, one.find_all("td"))] for one in maps] == [
        [one.cells[24 * day + hour].average_players for hour in range(24) for day in range(7)]
        for one in report.peak_hours.servers
        if one.busiest
    ]
    assert [*map(read_value, bins.find_all("td"))] == [
        count
        for counts in zip(*(one.counts for one in report.distribution.servers), strict=True)
        for count in counts
    ]


def read_value(cell: Node) -> float | None:
    figures = cell.find_all("data")
    return float(figures[0].attributes["value"]) if figures else None


NASTY = st.text(st.sampled_from("<>&\"'/!-[]{}\\\u0000\u001b\u202e\u2028\ufffe a\n\U0001f600"))


@settings(max_examples=few_examples() // 2)
@given(st.lists(st.text(max_size=60) | NASTY, min_size=5, max_size=5))
@example([*HOSTNAMES.values()])
@example(["<!--", "-->", "</script><script>", "&lt;b&gt;", "\u2029"])
def test_a_hostname_is_text_and_changes_no_element(
    report: Report, page: Node, hostnames: list[str]
) -> None:
    renamed = Page.parse(render_report(rename(report, hostnames))).root
    cells = renamed.find("comparison").find_all("thead")[0].find_all("bdi")

    assert not set("<>&\u2028\u2029") & set(renamed.find("timeline").text)
    assert list_tags(renamed) == list_tags(page)
    assert {one.tag for one in renamed.find_all()} == {one.tag for one in page.find_all()}
    data = renamed.find("timeline").text
    assert re.fullmatch("[ -~]+", data)
    assert [one["hostname"] for one in json.loads(data)["servers"]] == (hostnames)
    for cell, hostname, identifier in zip(cells, hostnames, HOSTNAMES, strict=True):
        assert cell.text == (
            escape_text(remove_color_codes(hostname)) if hostname.strip() else identifier
        )


def rename(report: Report, hostnames: list[str]) -> Report:
    """Return a report of which the servers have other hostnames."""
    renamed = {}
    for name in DOCUMENTS:
        document = getattr(report, name)
        servers = tuple(
            one.model_copy(update={"hostname": hostname})
            if isinstance(one, Part)
            else replace(one, hostname=hostname)
            for one, hostname in zip(document.servers, hostnames, strict=True)
        )
        renamed[name] = document.model_copy(update={"servers": servers})
    return report.model_copy(update=renamed)


def list_tags(page: Node) -> list[tuple[str, ...]]:
    """Return the elements with the names of their attributes, without those that make pictures.

    Of these, the number depends on the width of names.
    """
    return [
        (one.tag, *one.attributes)
        for one in page.find_all()
        if one.tag not in {"g", "line", "text"}
    ]


def test_a_page_without_observations_has_no_pictures(snapshot: SnapshotFile) -> None:
    page = Page.parse(render_report(build(snapshot, ["none"]))).root

    assert page.find("summary").find_all("li")[0].text == (
        "There are no observations in this window."
    )
    assert not page.find_all("figure")
