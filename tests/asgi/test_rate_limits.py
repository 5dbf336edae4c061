"""The rate limit of each caller, and the cost of counting."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from srvstat.asgi.auth import Quota, RateLimiter, format_quota

SECOND = 1_000_000_000
MINUTE = 60 * SECOND
WAIT = st.integers(0, MINUTE) | st.sampled_from([0, 1, SECOND, MINUTE])


class Clock:
    """A clock that a test sets, in nanoseconds."""

    now = 0

    def __call__(self) -> int:
        """Return the time."""
        return self.now


def count_accepted(limiter: RateLimiter, limit: int) -> int:
    """Send requests until one is refused, and return how many were accepted."""
    accepted = 0
    while limiter.count("a", limit).is_accepted:
        accepted += 1
    return accepted


@given(steps=st.lists(st.tuples(WAIT, st.integers(1, 5)), min_size=1, max_size=12))
@example(steps=[(0, 3), (0, 3), (0, 1)])
def test_the_remaining_requests_are_accepted_and_one_more_after_the_seconds(
    steps: list[tuple[int, int]],
) -> None:
    """Each step waits and sends a request under a limit, which can change."""

    def take_steps() -> tuple[Clock, RateLimiter, Quota]:
        clock = Clock()
        limiter = RateLimiter(clock)
        for wait, limit in steps:
            clock.now += wait
            quota = limiter.count("a", limit)
        return clock, limiter, quota

    _, limit = steps[-1]
    clock, limiter, quota = take_steps()
    assert 1 <= quota.seconds <= 60
    assert count_accepted(limiter, limit) == quota.remaining

    clock, limiter, _ = take_steps()
    clock.now += (quota.seconds - 1) * SECOND
    assert count_accepted(limiter, limit) == quota.remaining

    clock, limiter, _ = take_steps()
    clock.now += quota.seconds * SECOND
    assert count_accepted(limiter, limit) > quota.remaining


@given(waits=st.lists(WAIT, max_size=30), limit=st.integers(1, 4))
def test_a_client_that_follows_the_headers_is_never_refused(waits: list[int], limit: int) -> None:
    clock = Clock()
    limiter = RateLimiter(clock)
    for wait in waits:
        quota = limiter.count("a", limit)
        assert quota.is_accepted
        clock.now += wait if quota.remaining else quota.seconds * SECOND


def test_idle_callers_are_forgotten() -> None:
    clock = Clock()
    limiter = RateLimiter(clock)
    for number in range(100):
        limiter.count(str(number), 9)
    limiter.count("active", 10_000)
    assert len(limiter) == 101

    for second in (59, 61, *range(62, 262)):
        clock.now = second * SECOND
        limiter.count("active", 10_000)

    assert len(limiter) == 1


@pytest.mark.parametrize(
    ("limit", "written"), [(60, "60"), (10**15 - 1, "9" * 15), (2**53 - 1, "9" * 15)]
)
def test_a_header_has_no_integer_that_structured_fields_forbid(limit: int, written: str) -> None:
    headers = format_quota("starter-2", limit, Quota(True, limit - 1, 42))

    assert headers["ratelimit-policy"] == f'"starter-2";q={written};w=60'
    assert headers["ratelimit"] == f'"starter-2";r={min(limit - 1, 10**15 - 1)};t=42'
