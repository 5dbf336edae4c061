"""The rate limit of each caller, and the cost of counting."""

import time

import pytest

from srvstat.asgi.limits import RateLimiter, TooManyRequestsError


def test_a_request_over_the_limit_is_refused_with_the_time_to_wait() -> None:
    limiter = RateLimiter()
    for _ in range(3):
        limiter.count("a", 3)

    with pytest.raises(TooManyRequestsError, match="more than 3 requests a minute") as refused:
        limiter.count("a", 3)

    assert 50 <= refused.value.retry_after <= 60


def test_each_caller_has_its_own_limit() -> None:
    limiter = RateLimiter()
    limiter.count("a", 1)
    limiter.count("b", 1)

    for caller in ("a", "b"):
        with pytest.raises(TooManyRequestsError):
            limiter.count(caller, 1)


def test_earlier_requests_count_after_a_change_of_the_limit() -> None:
    now = 0.0
    limiter = RateLimiter(lambda: now)
    for now in (0.0, 10.0, 20.0):  # noqa: B007 - the clock
        limiter.count("a", 3)
    limiter.count("a", 4)

    for limit, seconds in ((4, 40), (3, 50), (2, 60), (1, 60)):
        with pytest.raises(TooManyRequestsError) as refused:
            limiter.count("a", limit)
        assert refused.value.retry_after == seconds


def test_a_request_is_allowed_exactly_after_the_time_to_wait() -> None:
    now = 0.0
    limiter = RateLimiter(lambda: now)
    for now in (0.0, 30.0):  # noqa: B007 - the clock
        limiter.count("a", 2)

    now = 59.9
    with pytest.raises(TooManyRequestsError) as refused:
        limiter.count("a", 2)
    assert refused.value.retry_after == 1

    now = 60.0
    limiter.count("a", 2)
    with pytest.raises(TooManyRequestsError) as refused:
        limiter.count("a", 2)
    assert refused.value.retry_after == 30


def test_idle_callers_are_forgotten() -> None:
    now = 0.0
    limiter = RateLimiter(lambda: now)
    for number in range(100):
        limiter.count(str(number), 9)
    limiter.count("active", 10_000)
    assert len(limiter) == 101

    for now in (59.0, 61.0, *(62.0 + number for number in range(200))):  # noqa: B007 - the clock
        limiter.count("active", 10_000)

    assert len(limiter) == 1


def test_counting_does_not_scan_all_callers() -> None:
    limiter = RateLimiter()
    for number in range(5_000):
        limiter.count(str(number), 60)

    began = time.process_time()
    for _ in range(300):
        limiter.count("0", 1_000_000)

    assert time.process_time() - began < 1, "all callers were scanned"
