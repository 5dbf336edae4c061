"""The page of a report, read as a browser reads it, against the JSON of the same report."""

import json
import math
import re
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from itertools import chain, pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from conftest import AS_OF, build_in, few_examples, server
from srvstat.analysis.questions import WindowQuery, choose_window, find_zone
from srvstat.analysis.report import build_report
from srvstat.analysis.selection import Question
from srvstat.documents.analysis import Report
from srvstat.documents.document import ChangePart, Part, is_silent, remove_color_codes
from srvstat.render.figures import format_first_last
from srvstat.render.report import render_report
from srvstat.render.text import escape_text, format_local_time, format_share, format_span_length
from srvstat.snapshot.read.file import SnapshotFile, open_file
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
    query = WindowQuery(range="28d")
    rows = [row for row in snapshot.iter_servers() if row.id in names]
    window, zone = choose_window(snapshot, query), find_zone("Europe/Berlin")
    return build_report(Question(snapshot, rows, window, zone), query, "A & </title> B")


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
    assert [one.tag for one in page.find_all("header", "nav", "main")] == ["header", "main"]
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
    servers = report.stats.servers
    rows = [row for row in page.find("players").find_all("tr") if row.find_all("data")]
    maps = page.find("hours").find_all("table")
    quantiles, bins = page.find("distribution").find_all("table")
    figures = [
        [getattr(one, f"{name}_players") for name in ("average", "lowest", "peak")]
        for one in servers
    ]
    current = [row.find_all("td")[-1] for row in page.find("growth").find_all("tr")[1:6]]

    assert [row.attributes["data-server"] for row in rows] == [one.server_id for one in servers[:4]]
    for row, expected in zip(rows, figures, strict=False):
        cells = {cell.attributes.get("data-figure"): cell for cell in row.find_all("td")}
        assert [read_value(cells[name]) for name in ("average", "lowest", "peak")] == expected
    for row, one in zip(quantiles.find_all("tr")[1:], servers, strict=True):
        q5, q25, q75, q95 = (quantile.players for quantile in one.quantiles)
        assert list(map(read_value, row.find_all("td"))) == [
            *(one.lowest_players, q5, q25, one.median_players, q75, q95, one.peak_players)
        ]
    for cell, one in zip(current, servers, strict=True):
        silent = is_silent(one.last_observed_at, report.as_of)
        assert (" seen" in cell.text) == silent
        assert silent or read_value(cell) == one.current_players
    assert [list(map(read_value, one.find_all("td"))) for one in maps] == [
        [one.cells[24 * day + hour].average_players for hour in range(24) for day in range(7)]
        for one in report.peak_hours.servers
        if one.busiest
    ]
    counts = zip(*(one.counts for one in report.distribution.servers), strict=True)
    assert list(map(read_value, bins.find_all("td"))) == list(chain(*counts))


def test_a_server_without_observations_has_a_row_and_a_color(page: Node) -> None:
    rows = [row.text for row in page.find("players").find_all("tr")[1:]]
    (finding,) = page.find_all("header")[0].find_all("p")

    assert rows[4] == "noneno observations"
    assert "There are no observations of none." in finding.text
    assert page.find("hours").text.count("0 observations, fewer than 4 in each hour") == 1
    for section in ("distribution", "growth"):
        assert "no observations" in page.find(section).find_all("svg")[0].text


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
    cells = renamed.find("players").find_all("tbody")[0].find_all("bdi")

    assert not set("<>&\u2028\u2029") & set(renamed.find("timeline").text)
    assert list_tags(renamed) == list_tags(page)
    assert {one.tag for one in renamed.find_all()} == {one.tag for one in page.find_all()}
    data = renamed.find("timeline").text
    assert re.fullmatch("[ -~]+", data)
    assert [one["hostname"] for one in json.loads(data)["servers"]] == hostnames
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
    elements = page.find_all()
    return [(one.tag, *one.attributes) for one in elements if one.tag not in {"g", "line", "text"}]


def test_a_page_without_observations_has_no_pictures(snapshot: SnapshotFile) -> None:
    page = Page.parse(render_report(build(snapshot, ["none"]))).root

    assert [one.text for one in page.find_all("header")[0].find_all("p")] == [
        "There are no observations in this window."
    ]
    assert not page.find_all("figure", "script")


DAYS = 60
GAPS = 25
ZONE = find_zone("UTC")
NAME = "A name that is cut where it is still the same as "
NAMES = ("constant", "gappy")


@pytest.fixture(scope="module")
def gappy_report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Return a report of 28 days about two servers, one of which has 25 gaps of 5 to 29 hours."""
    counts = [("constant", AS_OF - ago * HOUR, 50) for ago in range(24 * DAYS)]
    ago = 0
    for gap in range(GAPS):
        counts += [("gappy", AS_OF - (ago + n) * HOUR, 20 + 3 * gap + n) for n in range(8)]
        ago += 7 + 5 + gap * 7 % GAPS
    counts += [("gappy", AS_OF - n * HOUR, 30 + n % 7) for n in range(ago, 24 * DAYS)]
    counts.append(("gappy", AS_OF - 24 * DAYS * HOUR, 5))
    # The total of this step is not its average times 47, cut to an integer.
    counts += [("constant", AS_OF - 200 * HOUR + 60_000 * n, int(n == 1)) for n in range(1, 47)]
    servers = [server(name, hostname=NAME + name) for name in NAMES]
    path = str(build_in(tmp_path_factory.mktemp("tables"), servers, counts))
    with closing(open_file(path)) as snapshot:
        query = WindowQuery(range="28d")
        question = Question(snapshot, [*snapshot.iter_servers()], choose_window(snapshot, query))
        return build_report(question, query, "Title")


@pytest.fixture(scope="module")
def gappy_page(gappy_report: Report) -> Node:
    return Page.parse(render_report(gappy_report)).root


def read_rows(page: Node, section: str, table: int = 0) -> list[list[str]]:
    rows = page.find(section).find_all("table")[table].find_all("tr")[1:]
    return [[cell.text for cell in row.find_all("th", "td")] for row in rows]


def test_the_data_of_the_chart_is_the_timeline(gappy_report: Report, gappy_page: Node) -> None:
    timeline = json.loads(gappy_page.find("timeline").text)
    for one in timeline["servers"]:
        totals = one.pop("totals")
        one["averages"] = [
            None if total is None else total / count
            for total, count in zip(totals, one["sampleCounts"], strict=True)
        ]

    assert timeline == json.loads(gappy_report.timeline.to_json())


def test_names_that_are_equal_once_they_are_cut_are_ids(gappy_page: Node) -> None:
    assert [one.text for one in gappy_page.find("hours").find_all("h3")] == [*NAMES]
    assert [one.text for one in gappy_page.find("players").find_all("bdi")] == [
        NAME + name for name in NAMES
    ]


DOWN = ChangePart(players=-2.13, percentage=-12.0)
FINDINGS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {}, "constant leads with 15.6 players on average, down 12.0% on the 28 days before;"),
    ({"change": None}, {}, "constant leads with 15.6 players on average; the 28 days before were"),
    (
        {"change": ChangePart(players=0.15, percentage=0.97)},
        {},
        "constant leads with 15.6 players on average, as in the 28 days before;",
    ),
    (
        {"average_players": 0.5, "change": ChangePart(players=0.4, percentage=400.0)},
        {"average_players": 0.25},
        "constant leads with 0.5 players on average, up 0.40 on the 28 days before;",
    ),
    ({}, {"average_players": 15.61}, "constant and gappy lead with 15.6 players on average;"),
    (
        {"coverage": 0.79},
        {},
        "No server leads: fewer than two were observed for 80% of the window; 79% to 98% observed.",
    ),
    (
        {},
        {"average_players": None, "coverage": 0.0},
        "constant has 15.6 players on average, down 12.0% on the 28 days before; 98% observed.",
    ),
]


@pytest.mark.parametrize(("first", "second", "expected"), FINDINGS)
def test_the_finding_says_who_leads_and_what_changed_where_enough_was_observed(
    gappy_report: Report, first: dict[str, Any], second: dict[str, Any], expected: str
) -> None:
    common: dict[str, Any] = {"coverage": 0.98, "previous_coverage": 0.5, "change": DOWN}
    servers = tuple(
        replace(server, **common | own)
        for server, own in zip(
            gappy_report.stats.servers,
            ({"average_players": 15.61} | first, {"average_players": 4.5} | second),
            strict=True,
        )
    )
    stats = gappy_report.stats.model_copy(update={"servers": servers})
    page = Page.parse(render_report(gappy_report.model_copy(update={"stats": stats}))).root

    assert page.find_all("header")[0].find_all("p")[0].text.startswith(expected)


def test_a_silent_server_and_suspect_results_are_in_the_finding(gappy_report: Report) -> None:
    stats = gappy_report.stats.model_copy(update={"as_of": AS_OF + 30 * 24 * HOUR})
    later = gappy_report.model_copy(update={"stats": stats})
    finding = Page.parse(render_report(later)).root.find_all("header")[0].find_all("p")[0]

    assert ". constant was last seen Mar 1. gappy was last seen Mar 1. " in finding.text
    assert [one.attributes["href"] for one in finding.find_all("a")] == ["#integrity"]


def test_the_table_of_gaps_has_the_longest_in_order(gappy_report: Report, gappy_page: Node) -> None:
    gaps = gappy_report.timeline.servers[1].gaps
    lengths = {gap: gap.to - gap.from_ for gap in gaps}
    shortest = sorted(lengths.values())[len(gaps) - 20]
    total = format_span_length(sum(lengths.values()))

    assert len(gaps) > 20
    assert [row[5:] for row in read_rows(gappy_page, "coverage")] == [
        ["0", "none"],
        [str(len(gaps)), total],
    ]
    *rows, rest = read_rows(gappy_page, "coverage", 1)
    assert rows == [
        [
            "gappy",
            format_local_time(gap.from_, ZONE),
            format_local_time(gap.to, ZONE),
            format_span_length(length),
        ]
        for gap, length in lengths.items()
        if length >= shortest
    ]
    assert rest[1] == f"and {len(gaps) - 20} shorter gaps; report --json lists all"


def test_integrity_has_each_result_with_its_evidence_or_reason(
    gappy_report: Report, gappy_page: Node
) -> None:
    servers = gappy_report.integrity.servers
    words = {"pass": "pass", "suspect": "suspect", "notEvaluated": "not evaluated"}
    results = [[words[rule.result] for rule in one.rules] for one in servers]
    section = gappy_page.find("integrity")
    suspects = [rule for one in servers for rule in one.rules if rule.result == "suspect"]

    assert {"pass", "suspect", "not evaluated"} <= {word for one in results for word in one}
    assert [row[1:] for row in read_rows(gappy_page, "integrity")] == [
        [*row] for row in zip(*results, strict=True)
    ]
    evidence = [one.text for one in section.find_all("dd")]
    assert len(evidence) == len(suspects)
    for rule, text in zip(suspects, evidence, strict=True):
        assert all(cause in text for cause in rule.innocent_causes)
    assert [row[1] for row in read_rows(gappy_page, "integrity", 1)] == [
        rule.reason for one in servers for rule in one.rules if rule.reason is not None
    ]


@pytest.mark.parametrize("section", ["players", "growth"])
def test_the_change_leads_with_a_color_and_first_and_last_have_none(
    gappy_report: Report, gappy_page: Node, section: str
) -> None:
    constant, gappy = gappy_report.stats.servers
    assert constant.change is not None
    assert gappy.coverage is not None
    rows = gappy_page.find(section).find_all("table")[0].find_all("tr")
    columns = zip(*(row.find_all("th", "td") for row in rows), strict=True)
    cells = {name.text: servers for name, *servers in columns}

    change, missing = cells["Change"]
    assert change.text == "-3.20 -6.4%"
    (colored,) = [one for one in change.find_all("span") if one.attributes.get("class")]
    assert colored.attributes["class"] == "fall"
    values = [float(one.attributes["value"]) for one in change.find_all("data")]
    assert values == [constant.change.players, constant.change.percentage]
    reason = f"the 28 days of the window were observed for {format_share(gappy.coverage)} only"
    assert missing.text == "–"  # noqa: RUF001 - the dash
    assert missing.find_all("span")[0].attributes["title"] == reason
    if section == "players":
        return
    notes = [one.text for one in gappy_page.find(section).find_all("p")]
    assert notes[0] == f"No change of gappy: {reason}."
    for cell, one in zip(cells["First → last"], gappy_report.stats.servers, strict=True):
        assert cell.text == format_first_last(one.first_players, one.growth.players)
        assert not cell.find_all("span")


def test_tables_of_steps_name_partial_ones_and_have_the_change_of_whole_ones(
    gappy_report: Report, gappy_page: Node
) -> None:
    table = gappy_page.find("growth").find_all("table")[-1]
    rows = [row.find_all("td") for row in table.find_all("tr")[1:]]
    for cells, growth in zip(zip(*rows, strict=True), gappy_report.growth.servers, strict=True):
        for cell, step in zip(cells, growth.steps, strict=True):
            average, *change = [float(one.attributes["value"]) for one in cell.find_all("data")]
            assert average == step.average_players
            assert change == ([] if step.change is None else [step.change.players])
            assert cell.text.startswith("part of a day") == step.is_partial
    steps = gappy_report.growth.servers[1].steps
    assert {True, False} == {step.is_partial for step in steps}


def test_the_peak_has_its_last_time_only_if_it_is_another(gappy_page: Node) -> None:
    rows = read_rows(gappy_page, "distribution")

    assert ["last" in row[-1] for row in rows] == [True, False]


def test_the_source_has_the_root_of_the_snapshot(gappy_report: Report, gappy_page: Node) -> None:
    codes = [one.text for one in gappy_page.find("origin").find_all("code")]

    assert codes == [gappy_report.root, gappy_report.command, "srvstat snapshot verify SNAPSHOT"]
