"""Only whole steps reach the figures, scales and trends of tables and charts."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import AS_OF, DAY, few_examples
from srvstat.contract.responses import CompareResponse, GrowthFields, ServerResult
from srvstat.contract.time import Window
from srvstat.documents.analysis import (
    ComparedServer,
    Comparison,
    GrowthDocument,
    GrowthStepPart,
    HistoryQuery,
    ServerGrowth,
    ServerName,
    StepCell,
    StepLine,
    StepTable,
)
from srvstat.documents.document import GrowthPart, WindowPart
from srvstat.render.charts import render_chart
from srvstat.render.screen import Screen
from srvstat.render.tables import render_table

MIDNIGHT = AS_OF - AS_OF % DAY


# A law: whatever partial steps have, nothing changes but their own marks.

shares = st.one_of(st.floats(0.9, 1), st.floats(0, 0.899))
steps = st.lists(
    st.tuples(st.one_of(st.none(), st.floats(0, 99)), shares, st.floats(0, 9e6)),
    min_size=1,
    max_size=60,
)
Steps = Sequence[tuple[float | None, float, float]]


def build_cells(drawn: Steps, *, is_changed: bool) -> tuple[StepCell, ...]:
    """Return the cells of steps; if `is_changed`, partial ones have their other value."""
    return tuple(
        StepCell(
            int(value is not None),
            1,
            other if is_changed and value is not None and share < 0.9 else value,
            share,
        )
        for value, share, other in drawn
    )


def render_step_chart(cells: Sequence[StepCell], screen: Screen) -> str:
    start = MIDNIGHT - len(cells) * DAY
    lines = tuple(
        StepLine(start + at * DAY, start + (at + 1) * DAY, (cell,)) for at, cell in enumerate(cells)
    )
    query = HistoryQuery(Window(start, MIDNIGHT), "UTC", step="day")
    return render_chart(
        StepTable(query, (ServerName("a", "a", "a"),), lines, (), len(lines)), screen
    )


def build_growth(cells: Sequence[StepCell]) -> GrowthDocument:
    start, none = MIDNIGHT - len(cells) * DAY, GrowthPart(players=None, percentage=None)
    parts = tuple(
        GrowthStepPart(
            start + at * DAY,
            start + (at + 1) * DAY,
            cell.is_partial,
            cell.observed_share,
            cell.observations,
            cell.players,
            None,
            none,
        )
        for at, cell in enumerate(cells)
    )
    one = ServerGrowth(
        server_id="a",
        cfx_id="a",
        hostname="a",
        sample_count=sum(cell.observations for cell in cells),
        average_players=9.0,
        change=None,
        coverage=1.0,
        previous_coverage=0.5,
        first_players=1,
        last_players=2,
        growth=none,
        previous_growth=None,
        players_per_week=1.5,
        steps=parts,
    )
    return GrowthDocument(
        as_of=MIDNIGHT,
        root="",
        step="day",
        time_zone="UTC",
        window=WindowPart(from_=start, to=MIDNIGHT),
        previous_window=None,
        servers=(one, one.model_copy(update={"server_id": "b"})),
    )


def render_comparison(cells: tuple[StepCell, ...], screen: Screen) -> str:
    result = ServerResult(
        serverId="a",
        cfxId="a",
        range="30d",
        currentPlayers=0,
        averagePlayers=1.0,
        medianPlayers=1.0,
        peakPlayers=1,
        lowestPlayers=1,
        growth=GrowthFields(players=1, percentage=50.0),
        sampleCount=3,
    )
    one = ComparedServer(result, "a", cells, 1, 2, MIDNIGHT)
    response = CompareResponse(range="30d", data=(result, result))
    window = Window(MIDNIGHT - 30 * DAY, MIDNIGHT)
    return render_table(
        Comparison(response, (one, replace(one, hostname="b")), window, MIDNIGHT, "day", DAY),
        screen,
    )


def keep_words(text: str) -> list[str]:
    """Return the lines of a chart without what is drawn: titles, labels of axes and captions."""
    return [re.split("[┤│└]", line)[0] for line in text.split("\n")]


SURFACES: dict[str, Callable[[tuple[StepCell, ...], Screen], list[str]]] = {
    "chart of steps": lambda cells, screen: keep_words(render_step_chart(cells, screen)),
    "chart of growth": lambda cells, screen: [
        line.replace("░", " ").rstrip()
        for line in render_chart(build_growth(cells), screen).split("\n")
    ],
    "table of a comparison": lambda cells, screen: [render_comparison(cells, screen)],
    "table of growth": lambda cells, screen: [render_table(build_growth(cells), screen)],
}


@pytest.mark.parametrize("surface", SURFACES)
@settings(max_examples=few_examples())
@given(steps, st.sampled_from([40, 80, 120]))
def test_the_values_of_partial_steps_change_no_figure_and_no_scale(
    surface: str, drawn: Steps, width: int
) -> None:
    before, after = (build_cells(drawn, is_changed=changed) for changed in (False, True))
    if not any(cell.players is not None and not cell.is_partial for cell in before):
        return
    show = SURFACES[surface]

    assert show(after, Screen(width)) == show(before, Screen(width))
