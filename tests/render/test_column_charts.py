"""Charts of columns: distributions, growth and the hours of the week."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from conftest import AS_OF, DAY, Build, Cli, few_examples, server
from srvstat.documents.analysis import (
    Distribution,
    GrowthDocument,
    GrowthStepPart,
    HourCellPart,
    HourPart,
    PeakHours,
    ServerDistribution,
    ServerGrowth,
    ServerPeakHours,
    StepCell,
)
from srvstat.documents.document import GrowthPart, WindowPart
from srvstat.render.charts import (
    Columns,
    choose_frame,
    choose_layout,
    choose_scale,
    draw_columns,
    render_chart,
)
from srvstat.render.figures import join_cells
from srvstat.render.screen import Screen

WINDOW = WindowPart(from_=AS_OF - 200 * DAY, to=AS_OF)
HOSTILE = "\x1b[2J\u202e夜勤\n" + "z" * 90

averages = st.one_of(st.none(), st.just(0.0), st.floats(0.001, 30), st.floats(0.001, 2.0**53))


@given(st.lists(averages, min_size=1, max_size=30), st.integers(1, 5), st.booleans())
def test_columns_are_as_high_as_their_values(
    values: list[float | None], panels: int, ascii_only: bool
) -> None:
    scale = choose_scale(max(value or 0 for value in values), panels)
    rows = draw_columns(values, scale, ascii_only=ascii_only)
    marks = " .:#" if ascii_only else " ▁▂▃▄▅▆▇█"
    heights = [sum(map(marks.index, column)) for column in zip(*rows, strict=True)]

    assert len(rows) == scale.height
    assert [height == 0 for height in heights] == [value is None for value in values]
    known = sorted((value, at) for at, value in enumerate(values) if value is not None)
    ordered = [heights[at] for _, at in known]
    assert ordered == sorted(ordered)
    zeros = {heights[at] for value, at in known if not value}
    assert not zeros & {heights[at] for value, at in known if value}
    exact = {at: (value / scale.top * scale.height * (len(marks) - 1)) for value, at in known}
    assert all(abs(heights[at] - parts) <= 0.5 or heights[at] <= 2 for at, parts in exact.items())


@given(st.integers(1, 999), averages, st.integers(20, 200), st.booleans())
def test_columns_and_axis_fit_the_screen(
    count: int, high: float | None, width: int, has_gaps: bool
) -> None:
    def merge(length: int) -> list[Columns]:
        return [Columns([high] * -(-count // length))]

    frame = choose_frame(merge, Screen(width), has_gaps=has_gaps)
    smaller = choose_layout(count, frame.width, has_gaps=has_gaps)

    assert frame.label_width + len(" │") + frame.width <= width
    assert frame.column_count * frame.layout.merged >= count
    assert smaller == frame.layout


@settings(max_examples=few_examples())
@given(st.data(), st.integers(20, 200), st.booleans())
def test_no_chart_is_wider_than_its_screen(
    data: st.DataObject, width: int, ascii_only: bool
) -> None:
    document = data.draw(st.one_of(distributions(), growths(), weeks()))
    shown = render_chart(document, Screen(width, ascii_only=ascii_only))
    lines = shown.split("\n")

    assert max(map(cell_len, lines)) <= width
    # A line that does not fit would be wrapped, and go on without an axis.
    assert all({*line} & {*"│┤"} for line in lines if {*line} & {*"▂▃▄▅▆▇█"})
    assert not {"\x1b", "\u202e"} & set(shown)


def test_a_column_of_several_steps_is_the_average_of_their_observations() -> None:
    steps = [(1, 10.0, 1.0), (3, 40.0, 0.5), (0, None, 0.0), (1, 0.0, 1.0), (1, 5.0, 1.0)]
    cells = [StepCell(count, 1, value, share) for count, value, share in steps]
    shown = render_chart(build_growth([[40.0, None] * 40]), Screen(30))

    joined = [
        (cell.observations, cell.players, cell.observed_share) for cell in join_cells(cells, 2)
    ]
    assert joined == [(4, 32.5, 0.75), (1, 0.0, 0.5), (1, 5.0, 1.0)]
    assert "each column 4 days" in shown.replace("\n", " ")
    assert max(sum(map(row.count, "█░")) for row in shown.split("\n")) == 20


def test_a_chart_is_above_the_table(build: Build, cli: Cli) -> None:
    names = [f"s{number}" for number in range(6)]
    rows = [(name, AS_OF - at * DAY // 96, at % 7) for name in names for at in range(20)]
    path = build([server(name) for name in names], rows)
    for command in (["stats"], ["growth", "--step=day"], ["peak-hours"]):
        options = [*command, "-s", path]
        table = cli(*options, "s1", "s2", "--table").stdout
        shown = cli(*options, "s1", "s2", "--chart")
        chart, _, below = shown.stdout.partition(b"\n\n")

        assert shown.exit_code == 0
        assert below == table
        assert "┬".encode() in chart
        assert cli(*options, "s1", "--chart", "--json").exit_code == 2
        assert cli(*options, "s1", "--chart", "--format=csv").exit_code == 2
        assert "at most 5" in cli(*options, *names, "--chart").stderr
    assert "6 given, at most 5" in cli("stats", "--all", "--chart", "-s", path).stderr
    assert cli("stats", "--all", "--text=s3", "--chart", "-s", path).exit_code == 0
    assert cli("stats", "--all", "--text=nothing", "--chart", "-s", path).exit_code == 0


def build_growth(averages: list[list[float | None]], hostname: str = "a") -> GrowthDocument:
    """Build a growth by day, whose steps have an observation each, or none."""
    count = len(averages[0])
    starts = range(AS_OF - count * DAY, AS_OF, DAY)
    none = GrowthPart(players=None, percentage=None)
    return GrowthDocument(
        as_of=AS_OF,
        root="",
        step="day",
        time_zone="UTC",
        window=WINDOW,
        previous_window=None,
        servers=tuple(
            ServerGrowth(
                server_id="a" * 60,
                cfx_id="b",
                hostname=hostname,
                sample_count=sum(value is not None for value in values),
                average_players=1.0,
                change=None,
                coverage=1.0,
                previous_coverage=None,
                first_players=None,
                last_players=None,
                growth=none,
                previous_growth=None,
                players_per_week=None if len({*values} - {None}) < 2 else 0.5,
                steps=tuple(
                    build_step(start, value, is_partial=not at)
                    for at, (start, value) in enumerate(zip(starts, values, strict=True))
                ),
            )
            for values in averages
        ),
    )


def build_step(start: int, value: float | None, *, is_partial: bool) -> GrowthStepPart:
    share = 0.5 if is_partial else float(value is not None)
    count = int(value is not None)
    none = GrowthPart(players=None, percentage=None)
    return GrowthStepPart(start, start + DAY, share < 0.9, share, count, value, None, none)


@st.composite
def growths(draw: st.DrawFn) -> GrowthDocument:
    """Draw the growth of servers with equally many steps."""
    count = draw(st.integers(0, 200))
    values = draw(st.lists(averages, min_size=1, max_size=20))
    columns = [(values * (count + at))[at : count + at] for at in range(draw(st.integers(1, 5)))]
    return build_growth(columns, HOSTILE)


@st.composite
def weeks(draw: st.DrawFn) -> PeakHours:
    """Draw the hours of the week of a server."""
    values = draw(st.lists(averages, min_size=1, max_size=20)) * 168
    cells = tuple(
        HourCellPart(at // 24 + 1, at % 24, 4 if value is not None else 0, value, value)
        for at, value in enumerate(values[:168])
    )
    server = ServerPeakHours(
        server_id="a",
        cfx_id="b",
        hostname=HOSTILE,
        sample_count=0,
        busiest=draw(st.one_of(st.none(), st.just(HourPart(weekday=7, hour=23)))),
        quietest=None,
        cells=cells,
    )
    return PeakHours(as_of=AS_OF, root="", time_zone="UTC", window=WINDOW, servers=(server,))


@st.composite
def distributions(draw: st.DrawFn) -> Distribution:
    """Draw the distributions of servers, with their figures at any places of the bins."""
    first, width = draw(st.integers(0, 100)), draw(st.sampled_from([1, 20, 5 * 10**14]))
    bins = draw(st.integers(1, 40))

    def draw_server() -> ServerDistribution:
        counts = draw(st.lists(st.integers(0, 1000), min_size=bins, max_size=bins))
        places = st.integers(first * width, (first + bins) * width - 1)
        lowest, *middle, peak = sorted(draw(st.lists(places, min_size=5, max_size=5)))
        values = (lowest, *map(float, middle), peak) if any(counts) else [None] * 5
        figures: dict[str, Any] = dict(zip(FIGURES, values, strict=True))
        return ServerDistribution(
            server_id="a",
            cfx_id="b",
            hostname=HOSTILE,
            sample_count=sum(counts),
            counts=tuple(counts),
            **figures,
        )

    return Distribution(
        as_of=AS_OF,
        root="",
        window=WINDOW,
        first_players=first * width,
        bin_players=width,
        servers=tuple(draw_server() for _ in range(draw(st.integers(1, 5)))),
    )


FIGURES = (
    "lowest_players",
    "lower_quartile",
    "median_players",
    "upper_quartile",
    "peak_players",
)
