"""Documents of the analyzer without a snapshot, for tests of what is drawn from them."""

from collections.abc import Sequence
from itertools import combinations, groupby
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from hypothesis import strategies as st

from srvstat.contract.windows import DAY_MS
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
    ServerTimeline,
    StepCell,
    Timeline,
    build_runs,
)
from srvstat.documents.document import GapPart, GrowthPart, WindowPart
from srvstat.render.svg import BOLD, FONT_SIZE, Size, measure_text

HOUR = DAY_MS // 24
FIRST = 20_000 * DAY_MS

_NONE = GrowthPart(players=None, percentage=None)
_NAMES = {"server_id": "a", "cfx_id": "x-a", "hostname": "A"}
_GROWTH = {
    "average_players": 7.5,
    "change": None,
    "coverage": 1.0,
    "previous_coverage": None,
    "first_players": 5,
    "last_players": 10,
    "growth": _NONE,
    "previous_growth": None,
    "players_per_week": 17.5,
}


def build_growth(*columns: Sequence[StepCell], **fields: Any) -> GrowthDocument:
    """Return the growth of a server for each column of days; all have the same figures."""
    end = FIRST + len(columns[0]) * DAY_MS
    return GrowthDocument(
        as_of=end,
        root="0",
        step="day",
        time_zone="UTC",
        window=WindowPart(from_=FIRST, to=end),
        previous_window=None,
        servers=tuple(
            ServerGrowth(
                sample_count=sum(cell.observations for cell in cells),
                steps=tuple(
                    GrowthStepPart(
                        FIRST + at * DAY_MS,
                        FIRST + (at + 1) * DAY_MS,
                        cell.is_partial,
                        cell.observed_share,
                        cell.observations,
                        cell.players,
                        None,
                        _NONE,
                    )
                    for at, cell in enumerate(cells)
                ),
                **(_NAMES | _GROWTH | fields),
            )
            for cells in columns
        ),
    )


def build_peak_hours(averages: Sequence[float | None], **fields: Any) -> PeakHours:
    """Return the hours of the week of a server; the busiest one has the greatest average."""
    cells = tuple(
        HourCellPart(at // 24 + 1, at % 24, 0 if average is None else 9, average, average)
        for at, average in enumerate(averages)
    )
    known = [cell for cell in cells if cell.average_players is not None]
    busiest = max(known, key=lambda cell: cell.average_players or 0, default=None)
    hour = busiest and HourPart(weekday=busiest.weekday, hour=busiest.hour)
    count = sum(cell.sample_count for cell in cells)
    server = ServerPeakHours(
        sample_count=count,
        busiest=hour,
        quietest=hour,
        restart_player_hours=None,
        cells=cells,
        **(_NAMES | fields),
    )
    window = WindowPart(from_=FIRST, to=FIRST + DAY_MS)
    return PeakHours(
        as_of=FIRST + DAY_MS,
        root="0",
        by="week-hour",
        time_zone="UTC",
        window=window,
        servers=(server,),
    )


def build_distribution(
    columns: Sequence[Sequence[int]], figures: Sequence[Any], first: int, width: int, **fields: Any
) -> Distribution:
    """Return the distribution of a server for each column of counts.

    `figures` are the lowest count, the quartiles and the peak of all of them.
    """
    lowest, lower, median, upper, peak = figures
    return Distribution(
        as_of=FIRST + DAY_MS,
        root="0",
        window=WindowPart(from_=FIRST, to=FIRST + DAY_MS),
        first_players=first,
        bin_players=width,
        servers=tuple(
            ServerDistribution(
                sample_count=sum(counts),
                lowest_players=lowest,
                lower_quartile=lower,
                median_players=median,
                upper_quartile=upper,
                peak_players=peak,
                counts=tuple(counts),
                **(_NAMES | fields),
            )
            for counts in columns
        ),
    )


class Case(NamedTuple):
    """A timeline, and the players observed in each step of each server."""

    timeline: Timeline
    players: list[list[list[int]]]


_players = st.lists(st.integers(0, 3_000), max_size=4)
_shares = st.sampled_from([1.0, 0.95, 0.9, 0.85, 0.25])
_hostnames = st.text(
    st.one_of(st.characters(), st.characters(categories=["Cs", "Cc", "Cf", "Cn"]), st.just("<")),
    max_size=40,
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a timeline of one to five servers, with steps of hours and gaps of three or more."""
    servers, steps = draw(st.integers(1, 5)), draw(st.integers(1, 60))
    hours = draw(st.sampled_from([1, 6, 24]))
    players = draw(
        st.lists(
            st.lists(st.one_of(_players, st.just([])), min_size=steps, max_size=steps),
            min_size=servers,
            max_size=servers,
        )
    )
    hostnames = draw(st.lists(_hostnames, min_size=servers, max_size=servers))
    shares = draw(st.lists(_shares, min_size=steps, max_size=steps))
    cut = draw(st.integers(0, hours * HOUR - 1))
    return build_case(players, hostnames, hours=hours, cut=cut, shares=shares)


def build_case(
    players: list[list[list[int]]],
    hostnames: list[str],
    *,
    hours: int = 1,
    cut: int = 0,
    shares: Sequence[float] = (),
) -> Case:
    """Return the timeline of observations; the window cuts `cut` milliseconds of the first step.

    `shares` are the observed shares of the steps that are in no gap, 1 without them.
    """
    length = hours * HOUR
    end = FIRST + len(players[0]) * length
    observed = [*(shares or [1.0] * len(players[0]))]
    observed[0] = min(observed[0], 1 - cut / length)
    timeline = Timeline(
        as_of=end,
        root="0" * 64,
        window=WindowPart(from_=FIRST + cut, to=end),
        time_zone="UTC",
        step="day" if hours == 24 else f"{hours}h",
        steps=build_runs([*range(FIRST, end + 1, length)]),
        servers=tuple(
            _describe(f"s{number}", hostname, cells, observed, length)
            for number, (hostname, cells) in enumerate(zip(hostnames, players, strict=True))
        ),
    )
    return Case(timeline, players)


def _describe(
    name: str, hostname: str, cells: list[list[int]], shares: list[float], length: int
) -> ServerTimeline:
    gaps = []
    shares = [*shares]
    for is_empty, run in groupby(range(len(cells)), key=lambda at: not cells[at]):
        steps = list(run)
        if is_empty and len(steps) > 2:
            gaps.append(
                GapPart(from_=FIRST + steps[0] * length, to=FIRST + (steps[-1] + 1) * length)
            )
            shares[steps[0] : steps[-1] + 1] = [0.0] * len(steps)
    return ServerTimeline(
        server_id=name,
        cfx_id=f"x-{name}",
        hostname=hostname,
        sample_counts=tuple(map(len, cells)),
        averages=tuple(sum(cell) / len(cell) if cell else None for cell in cells),
        lowest=tuple(min(cell) if cell else None for cell in cells),
        peak=tuple(max(cell) if cell else None for cell in cells),
        observed_shares=tuple(shares),
        gaps=tuple(gaps),
    )


def find_all(picture: Element, css: str) -> list[Element]:
    """Return the elements that have a CSS class, in order."""
    return [one for one in picture.iter() if css in one.get("class", "").split()]


class Line(NamedTuple):
    """The place of a line of text in a picture; `y` is its base line."""

    left: float
    right: float
    y: float


def find_lines(picture: Element) -> list[Line]:
    """Return the places of all texts, as wide as `measure_text` says."""
    lines = []
    for one in picture.iter("text"):
        bold = BOLD if one.get("class") == "heading" else 1
        width = measure_text("".join(one.itertext())) * bold
        share = {"start": 0, "middle": 0.5, "end": 1}[one.get("text-anchor", "start")]
        left = float(one.get("x", "")) - share * width
        lines.append(Line(left, left + width, float(one.get("y", ""))))
    return lines


def check_lines(picture: Element, size: Size) -> None:
    """Check that all texts are inside of a picture and that none covers another."""
    lines = find_lines(picture)
    for line in lines:
        assert line.left >= -1
        assert line.right <= size.width + 1
        assert 0 < line.y <= size.height
    for one, other in combinations(lines, 2):
        is_beside = one.right <= other.left + 1 or other.right <= one.left + 1
        assert is_beside or abs(one.y - other.y) >= FONT_SIZE, (one, other)
