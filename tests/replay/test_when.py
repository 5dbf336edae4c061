"""`srvstat when`: the times at which figures were true."""

import tempfile
from collections.abc import Mapping
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import AS_OF, DAY, Build, Cli, build_in, few_examples, server
from srvstat.contract.requests import build_compare_request
from srvstat.contract.time import format_instant
from srvstat.contract.windows import DAYS, Range
from srvstat.documents.support import Figure
from srvstat.operations import answers
from srvstat.snapshot.read.file import SnapshotFile, open_file
from srvstat.support.search import find_when

HOUR = DAY // 24
FIELDS = {
    "samples": "sample_count",
    "average": "average_players",
    "median": "median_players",
    "peak": "peak_players",
    "lowest": "lowest_players",
}
Rows = Mapping[int, int]
"""Player counts by their instants."""
Wanted = list[tuple[str, int, Fraction]]

ROWS = st.dictionaries(
    st.integers(-80, 0).map(lambda hours: AS_OF + hours * HOUR), st.integers(0, 9), min_size=1
)
WANTED = st.lists(
    st.tuples(
        st.sampled_from([*FIELDS, "growth"]),
        st.integers(0, 9),
        st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(2)]),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda one: one[0],
)


def read_figures(snapshot: SnapshotFile, range: Range, at: int) -> dict[str, Any]:
    """Return the figures that the API gives."""
    request = build_compare_request(["a", "b"], range=range)
    (result, _) = answers.compare(snapshot, request, at=at).data
    return {
        **{name: getattr(result, field) for name, field in FIELDS.items()},
        "growth": result.growth.players,
    }


def is_near(figures: Mapping[str, Any], wanted: Wanted) -> bool:
    return all(
        figures[name] is not None and abs(Fraction(figures[name]) - value) <= tolerance
        for name, value, tolerance in wanted
    )


@settings(max_examples=few_examples())
@given(rows=ROWS, wanted=WANTED, range=st.sampled_from(["24h", "7d"]))
def test_figures_were_true_when_the_api_gave_them(rows: Rows, wanted: Wanted, range: Range) -> None:
    changes = {at + shift for at in rows for shift in (0, DAYS[range] * DAY)}
    first = min(rows)
    starts = sorted(at for at in changes | {first} if first <= at <= AS_OF)
    figures = [
        Figure(figure=name, value=value, tolerance=float(tolerance))
        for name, value, tolerance in wanted
    ]
    with tempfile.TemporaryDirectory() as directory:
        records = [server("a"), server("b")]
        path = build_in(Path(directory), records, [("a", at, n) for at, n in rows.items()])
        with closing(open_file(str(path))) as snapshot:
            (row, _) = snapshot.iter_servers()
            found = find_when(snapshot, [row], range, [figures])
            as_of = snapshot.as_of
            given = {at: read_figures(snapshot, range, at) for at in starts if at <= as_of}
    true = {at for at, figures in given.items() if is_near(figures, wanted)}

    (dated,) = found.servers
    assert found.true_during == dated.true_during
    assert {at for at in given for one in found.true_during if one.from_ <= at <= one.to} == true
    edges = {one.from_ for one in found.true_during} | {one.to + 1 for one in found.true_during}
    assert edges <= {*given, as_of + 1}
    if dated.nearest is not None:
        assert not true
        at = dated.nearest.from_
        shown = {one.figure: one.value for one in dated.nearest.figures}
        assert shown == {name: given[at][name] for name, *_ in wanted}
    assert (dated.nearest is None) == bool(true)


@pytest.fixture
def snapshot(build: Build, monkeypatch: pytest.MonkeyPatch) -> str:
    rows = [("a", AS_OF - day * DAY, day + 3) for day in range(9)]
    path = build([server("a"), server("b")], [*rows, ("b", AS_OF - DAY, 5)])
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", path)
    return path


@pytest.mark.usefixtures("snapshot")
def test_figures_of_several_servers_are_dated_at_once(cli: Cli) -> None:
    ran = cli("when", "a", "average=3.5", "--range", "7d", "cfxId:x-b", "peakPlayers=5")
    never = cli("when", "a", "peak=40", "b", "peak=5")
    table = cli("when", "a", "peak=40", "b", "peak=5", "--table").stdout.decode()

    assert (ran.exit_code, never.exit_code) == (5, 5)
    (first, second) = ran.json["servers"]
    assert (first["trueDuring"], second["nearest"]) == ([], None)
    assert second["trueDuring"] == [
        {"from": format_instant(AS_OF - DAY), "to": format_instant(AS_OF)}
    ]
    assert "no match for 30d between 2026-" in table
    assert "a: closest match," in table
    near = cli("when", "a", "peak=40", "lowest=3", "--table").stdout.decode()
    assert [line.split()[:3] for line in near.splitlines()[-2:]] == [
        ["✗", "peak", "40"],
        ["✓", "lowest", "3"],
    ]
    assert "b: 1 match; last: " in table
    found = cli("when", "a", "lowest=3", "peak=9", "--range", "7d", "--table")
    assert (found.exit_code, "1 match for 7d between " in found.stdout.decode()) == (0, True)


@pytest.mark.parametrize(
    ("word", "figure", "value", "tolerance"),
    [
        ("average=15.62", "average", 15.62, 0.005),
        ("averagePlayers=15", "average", 15, 0.5),
        ("median=113", "median", 113, 0.5),
        ("peak=9", "peak", 9, 0),
        ("growth=-3", "growth", -3, 0),
        ("growth=-28.2", "percentage", -28.2, 0.05),
        ("growth=-28.2 %", "percentage", -28.2, 0.05),
        ("growth.percentage=-28.2", "percentage", -28.2, 0.05),
        ("growth.players=-3", "growth", -3, 0),
        ("percentage=+12.5%", "percentage", 12.5, 0.05),
        ("average=15.6±0.1", "average", 15.6, 0.1),
        ("count=9+-2", "samples", 9, 2),
    ],
)
@pytest.mark.usefixtures("snapshot")
def test_a_rounded_figure_has_half_a_unit_of_its_last_digit(
    word: str, figure: str, value: float, tolerance: float, cli: Cli
) -> None:
    (shown,) = cli("when", "a", word).json["servers"][0]["figures"]
    assert (shown["figure"], shown["value"]) == (figure, value)
    assert shown["tolerance"] == pytest.approx(tolerance)


@pytest.mark.parametrize(
    ("words", "exit_code", "reason"),
    [
        (
            ["median=3"],
            2,
            "median=3: no server before it; write, for example, harbor-city median=3",
        ),
        (["a"], 2, "a: no number given; add one, such as median=113"),
        (
            ["a", "uptime=3"],
            2,
            'uptime=3: no statistic "uptime"; use one of samples, average, median',
        ),
        (
            ["a", "median=x"],
            2,
            "median=x: not a number; write digits with a decimal point, such as median=1000.5",
        ),
        (["a", "median=1,000"], 2, "median=1,000: not a number"),
        (["unknown", "median=3"], 44, "no server with id unknown"),
        (["a", "median=3", "--range", "8d"], 40, "range"),
    ],
)
@pytest.mark.usefixtures("snapshot")
def test_what_cannot_be_dated_is_refused(
    words: list[str], exit_code: int, reason: str, cli: Cli
) -> None:
    ran = cli("when", *words)

    assert ran.exit_code == exit_code
    assert reason in ran.stderr
