"""Comparisons as a table and as cards."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from conftest import AS_OF, DAY
from srvstat.contract.responses import CompareResponse, GrowthFields, ServerResult
from srvstat.contract.time import Window
from srvstat.documents.analysis import ComparedServer, Comparison, StepCell
from srvstat.render.screen import Screen
from srvstat.render.tables.servers import render_comparison

BAR = "│"
NONE = "–"  # noqa: RUF001 - the dash of a table


identifiers = st.text("abcXYZ019-", min_size=1, max_size=24)
hostnames = st.text("aZ «夜勤»é\u0301|\x1b\u202e", max_size=60).map(lambda text: f"h{text}")
counts = st.one_of(st.integers(0, 9), st.integers(0, 9_999_999), st.integers(0, 2**53 - 1))


@st.composite
def servers(draw: st.DrawFn) -> ComparedServer:
    """Draw a server with statistics of any size, or without observations."""
    name = draw(identifiers)
    first, last, top = draw(counts), draw(counts), draw(counts)
    seen = draw(st.booleans())
    result = ServerResult(
        serverId=name,
        cfxId=draw(st.one_of(st.just(name), identifiers)),
        range="30d",
        currentPlayers=draw(counts),
        averagePlayers=top / 3 if seen else None,
        medianPlayers=top / 2 if seen else None,
        peakPlayers=top if seen else None,
        lowestPlayers=first if seen else None,
        growth=GrowthFields(
            players=last - first if seen else None,
            percentage=100 * (last - first) / first if seen and first else None,
        ),
        sampleCount=draw(st.integers(1, 99_999)) if seen else 0,
    )
    return ComparedServer(
        result,
        draw(st.one_of(st.just(name), hostnames)),
        tuple(
            StepCell(1, 1, draw(st.floats(0, top)), draw(st.floats(0, 1)))
            if seen
            else StepCell(0, 1, None, 0.0)
            for _ in range(30)
        ),
        draw(st.integers(1, 30)) if seen else 0,
        first if seen else None,
        AS_OF - draw(st.sampled_from([0, 3 * DAY])) if seen else None,
    )


def build_comparison(*shown: ComparedServer) -> Comparison:
    """Return a comparison of servers over 30 days."""
    response = CompareResponse(range="30d", data=tuple(one.result for one in shown))
    return Comparison(response, shown, Window(AS_OF - 30 * DAY, AS_OF), AS_OF, "day", DAY)


def expand_wide_characters(line: str) -> str:
    """Repeat each character by its number of cells on the screen."""
    return "".join(character * cell_len(character) for character in line)


def format_expected(shown: ComparedServer) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each figure except the first and the last count."""
    result = shown.result
    silent = "not seen" if shown.last_observed_at is None else "last seen Feb 26"
    yield "current", f"{result.currentPlayers:,}" if shown.last_observed_at == AS_OF else silent
    average, median = result.averagePlayers, result.medianPlayers
    yield "average", NONE if average is None else f"{average:,.2f}"
    yield "median", NONE if median is None else f"{median:,.1f}".removesuffix(".0")
    for name, count in (("peak", result.peakPlayers), ("lowest", result.lowestPlayers)):
        yield name, NONE if count is None else f"{count:,}"


@given(st.lists(servers(), min_size=2, max_size=5), st.one_of(st.none(), st.integers(60, 220)))
def test_figures_end_below_their_names(shown: list[ComparedServer], width: int | None) -> None:
    text = render_comparison(build_comparison(*shown), Screen(width))
    header, *lines = map(expand_wide_characters, text.split("\n\n", maxsplit=1)[0].split("\n"))

    assert max(map(cell_len, text.split("\n"))) <= (width or 1_000)
    for name in {name for one in shown for name in (one.result.serverId, one.result.cfxId)}:
        assert name in text
    if not header.startswith("server "):
        return
    places = [at for at, line in enumerate(lines) if not line.startswith("  ")]
    for one, at in zip(shown, places, strict=True):
        # An id that is too wide has a line of its own.
        row = lines[at + 1] if lines[at] == one.result.serverId else lines[at]
        for name, value in format_expected(one):
            assert row[: header.index(name) + len(name)].endswith(f" {value}")
    assert width is None or width >= 80
    assert len({line.index(BAR) for line in lines if BAR in line}) == 1
