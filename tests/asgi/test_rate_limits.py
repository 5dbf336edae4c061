"""How often a caller may ask, and what counting it costs."""

import time

import pytest

from srvstat.asgi.auth import RateLimiter, TooManyRequestsError


def test_one_request_too_many_is_refused_with_the_time_to_wait() -> None:
    limiter = RateLimiter()
    for _ in range(3):
        limiter.count("a", 3)

    with pytest.raises(TooManyRequestsError, match="more than 3 requests a minute") as refused:
        limiter.count("a", 3)

    assert 50 <= refused.value.retry_after <= 60


def test_callers_do_not_take_from_each_other() -> None:
    limiter = RateLimiter()
    limiter.count("a", 1)
    limiter.count("b", 1)

    for caller in ("a", "b"):
        with pytest.raises(TooManyRequestsError):
            limiter.count(caller, 1)


def test_a_raised_limit_keeps_what_was_counted_and_so_does_a_lowered_one() -> None:
    now = 0.0
    limiter = RateLimiter(lambda: now)
    for now in (0.0, 10.0, 20.0):  # noqa: B007 - the clock
        limiter.count("a", 3)
    limiter.count("a", 4)

    for most, seconds in ((4, 40), (3, 50), (2, 60), (1, 60)):
        with pytest.raises(TooManyRequestsError) as refused:
            limiter.count("a", most)
        assert refused.value.retry_after == seconds


def test_room_is_there_when_it_was_said_to_be_and_not_before() -> None:
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


def test_callers_who_ask_no_more_are_forgotten_and_not_the_one_who_goes_on() -> None:
    now = 0.0
    limiter = RateLimiter(lambda: now)
    for number in range(100):
        limiter.count(str(number), 9)
    limiter.count("lasting", 10_000)
    assert len(limiter) == 101

    for now in (59.0, 61.0, *(62.0 + number for number in range(200))):  # noqa: B007 - the clock
        limiter.count("lasting", 10_000)

    assert len(limiter) == 1


def test_a_request_costs_the_same_however_many_have_asked() -> None:
    limiter = RateLimiter()
    for number in range(5_000):
        limiter.count(str(number), 60)

    began = time.process_time()
    for _ in range(300):
        limiter.count("0", 1_000_000)

    assert time.process_time() - began < 1, "all of them were looked through"
