"""Draw the observations of a server."""

from hypothesis import strategies as st

from conftest import AS_OF, DAY

HOUR = DAY // 24

Rows = dict[int, int]


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    """Draw polled observations with gaps, and some at any instant; often few values repeat."""
    interval = draw(st.sampled_from([1, 60_000, HOUR, HOUR + 1, DAY]))
    steps = draw(st.lists(st.integers(0, 60), max_size=30))
    instants = [AS_OF - interval * step for step in steps]
    instants += draw(st.lists(st.integers(AS_OF - 3 * DAY, AS_OF), max_size=4))
    values = draw(st.sampled_from([st.integers(0, 3), st.integers(0, 2**53 - 1)]))
    return {at: draw(values) for at in instants}
