"""The tables of a report and the data of its chart, against the document of the same report."""

import json
from contextlib import closing

import pytest

from conftest import AS_OF, build_in, server
from srvstat.analysis.report import ReportOrigin, build_report
from srvstat.analysis.window_query import WindowQuery, choose_window, find_zone
from srvstat.documents.analysis import Report
from srvstat.render.figures import format_first_last
from srvstat.render.local_time import format_local_time
from srvstat.render.report.page import render_report
from srvstat.render.text import format_share, format_span_length
from srvstat.snapshot.read.snapshot import open_file
from support.markdown import Node, Page

HOUR = 3_600_000
DAYS = 60
GAPS = 25
ZONE = find_zone("UTC")
NAME = "A name that is cut where it is still the same as "
NAMES = ("constant", "gappy")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
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
        window = choose_window(snapshot, WindowQuery(range="28d"))
        origin = ReportOrigin("Title", "srvstat 1", "srvstat report")
        return build_report(snapshot, [*snapshot.iter_servers()], window, ZONE, origin)


@pytest.fixture(scope="module")
def page(report: Report) -> Node:
    return Page.parse(render_report(report)).root


def read_rows(page: Node, section: str, table: int = 0) -> list[list[str]]:
    rows = page.find(section).find_all("table")[table].find_all("tr")[1:]
    return [[cell.text for cell in row.find_all("th", "td")] for row in rows]


def test_the_data_of_the_chart_is_the_timeline(report: Report, page: Node) -> None:
    timeline = json.loads(page.find("timeline").text)
    for one in timeline["servers"]:
        totals = one.pop("totals")
        one["averages"] = [
            None if total is None else total / count
            for total, count in zip(totals, one["sampleCounts"], strict=True)
        ]

    assert timeline == json.loads(report.timeline.to_json())


def test_names_that_are_equal_once_they_are_cut_are_ids(page: Node) -> None:
    assert page.find_all("header")[0].find_all("p")[0].text == "constant and gappy"


def test_a_title_that_names_the_servers_is_not_followed_by_their_names(report: Report) -> None:
    titled = report.model_copy(update={"title": "Players of constant and gappy"})
    header = Page.parse(render_report(titled)).root.find_all("header")[0]

    assert len(header.find_all("p")) == 1


def test_the_table_of_gaps_has_the_longest_in_order(report: Report, page: Node) -> None:
    gaps = report.timeline.servers[1].gaps
    lengths = {gap: gap.to - gap.from_ for gap in gaps}
    shortest = sorted(lengths.values())[len(gaps) - 20]
    total = format_span_length(sum(lengths.values()))

    assert len(gaps) > 20
    assert [row[3:] for row in read_rows(page, "coverage")] == [
        ["0", "none"],
        [str(len(gaps)), total],
    ]
    *rows, rest = read_rows(page, "coverage", 1)
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


def test_integrity_has_each_result_with_its_evidence_or_reason(report: Report, page: Node) -> None:
    servers = report.integrity.servers
    words = {"pass": "pass", "suspect": "suspect", "notEvaluated": "not evaluated"}
    results = [[words[rule.result] for rule in one.rules] for one in servers]
    section = page.find("integrity")
    suspects = [rule for one in servers for rule in one.rules if rule.result == "suspect"]

    assert {"pass", "suspect", "not evaluated"} <= {word for one in results for word in one}
    assert [row[1:] for row in read_rows(page, "integrity")] == [
        [*row] for row in zip(*results, strict=True)
    ]
    evidence = [one.text for one in section.find_all("dd")]
    assert len(evidence) == len(suspects)
    for rule, text in zip(suspects, evidence, strict=True):
        assert all(cause in text for cause in rule.innocent_causes)
    assert [row[1] for row in read_rows(page, "integrity", 1)] == [
        rule.reason for one in servers for rule in one.rules if rule.reason is not None
    ]


def test_the_change_leads_with_a_color_and_first_and_last_have_none(
    report: Report, page: Node
) -> None:
    constant, gappy = report.stats.servers
    assert constant.change is not None
    assert gappy.change is None
    assert gappy.coverage is not None
    for section in ("comparison", "growth"):
        rows = page.find(section).find_all("table")[0].find_all("tr")
        if section == "comparison":
            cells = {row.find_all("th")[0].text: row.find_all("td") for row in rows}
        else:
            names = [one.text for one in rows[0].find_all("th")[1:]]
            columns = zip(*(row.find_all("td") for row in rows[1:]), strict=True)
            cells = dict(zip(names, map(list, columns), strict=True))
        names = list(cells)
        assert names.index("Average") < names.index("Change") < names.index("First → last")
        change, reason = cells["Change"]
        assert change.text == "-3.20 -6.4%"
        (colored,) = [one for one in change.find_all("span") if one.attributes.get("class")]
        assert colored.attributes["class"] == "fall"
        values = [float(one.attributes["value"]) for one in change.find_all("data")]
        assert values == [constant.change.players, constant.change.percentage]
        assert reason.text == (
            f"– the 28 days of the window were observed for {format_share(gappy.coverage)} only"  # noqa: RUF001
        )
        for cell, one in zip(cells["First → last"], report.stats.servers, strict=True):
            assert cell.text == format_first_last(one.first_players, one.growth.players)
            assert not cell.find_all("span")


def test_tables_of_steps_name_partial_ones_and_have_the_change_of_whole_ones(
    report: Report, page: Node
) -> None:
    for section in ("players", "growth"):
        table = page.find(section).find_all("table")[-1]
        rows = [row.find_all("td") for row in table.find_all("tr")[1:]]
        for cells, growth in zip(zip(*rows, strict=True), report.growth.servers, strict=True):
            for cell, step in zip(cells, growth.steps, strict=True):
                average, *change = [float(one.attributes["value"]) for one in cell.find_all("data")]
                assert average == step.average_players
                shown = step.change if section == "growth" else None
                assert change == ([] if shown is None else [shown.players])
                assert cell.text.startswith("part of a day") == step.is_partial
    steps = report.growth.servers[1].steps
    assert {True, False} == {step.is_partial for step in steps}


def test_the_peak_has_its_last_time_only_if_it_is_another(page: Node) -> None:
    (peak,) = [row for row in read_rows(page, "comparison") if row[0] == "Peak"]

    assert ["last" in cell for cell in peak[1:]] == [True, False]


def test_the_source_has_the_root_of_the_snapshot(report: Report, page: Node) -> None:
    codes = [one.text for one in page.find("origin").find_all("code")]

    assert codes == [report.root, report.command, "srvstat snapshot verify SNAPSHOT"]
