"""Find the epochs of servers."""

from hypothesis import given
from hypothesis import strategies as st

from snapshot.described import describe_epoch
from srvstat.snapshot.format.bands import find_epoch


@given(server_id=st.text(max_size=9), observations=st.integers(0, 10**7))
def test_an_epoch_has_four_fifths_of_the_observations_or_more(
    server_id: str, observations: int
) -> None:
    epoch = find_epoch(server_id, observations)

    assert epoch == describe_epoch(server_id, observations)
    assert epoch <= observations <= 1.25 * (epoch + 1)


def test_the_epochs_of_a_fleet_begin_on_different_days() -> None:
    begun = [
        find_epoch(f"srv-{at}", 100_000) < find_epoch(f"srv-{at}", 100_288) for at in range(1000)
    ]

    assert 3 <= sum(begun) <= 30
