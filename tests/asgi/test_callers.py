"""How often a caller may ask: exactly as often as the plan says, within any minute."""

import random
import time

from srvstat.asgi.callers import LastMinute

SECOND = 1_000_000_000
MINUTE = 60 * SECOND


def test_there_is_room_again_exactly_a_minute_later() -> None:
    window = LastMinute()
    assert [window.let_in("a", 2, now) for now in (7, 8)] == [None, None]

    assert window.let_in("a", 2, 9) == 60
    assert window.let_in("a", 2, 6 + MINUTE) == 1
    assert window.let_in("a", 2, 7 + MINUTE) is None
    assert window.let_in("a", 2, 7 + MINUTE) == 1
    assert window.let_in("a", 2, 8 + MINUTE) is None


def test_what_was_refused_takes_no_room() -> None:
    window = LastMinute()
    assert window.let_in("a", 1, 0) is None

    assert [window.let_in("a", 1, now * SECOND) for now in range(1, 60)] == [*range(59, 0, -1)]
    assert window.let_in("a", 1, MINUTE) is None


def test_a_plan_that_becomes_smaller_holds_for_what_was_asked_before() -> None:
    window = LastMinute()
    for second in range(5):
        assert window.let_in("a", 5, second * SECOND) is None

    assert window.let_in("a", 2, 10 * SECOND) == 53
    assert window.let_in("a", 2, 53 * SECOND + 10 * SECOND) is None


def test_whoever_asks_however_often_is_let_in_as_a_plain_count_says() -> None:
    """Hundreds of callers come, go and come back, each compared with all the instants it had."""
    draw = random.Random(20)  # noqa: S311 - the same requests each time, and no secret
    window = LastMinute()
    let_in: dict[str, list[int]] = {}
    now = 0
    for _ in range(20_000):
        now += draw.randrange(SECOND) * draw.choice([0, 0, 0, 1, 5])
        name, most = str(int(draw.expovariate(0.1))), draw.randint(1, 4)
        recent = [instant for instant in let_in.get(name, []) if instant > now - MINUTE]
        is_let_in = window.let_in(name, most, now) is None
        assert is_let_in == (len(recent) < most)
        let_in[name] = [*recent, *([now] if is_let_in else [])]


def test_callers_who_ask_no_more_are_forgotten_and_not_the_one_who_goes_on() -> None:
    window = LastMinute()
    window.let_in("lasting", 10_000, 0)
    for number in range(1_000):
        window.let_in(str(number), 9, number)
    assert len(window) == 1_001

    for number in range(1_001):
        window.let_in("lasting", 10_000, MINUTE - 1 + number * SECOND // 20)

    assert len(window) == 1


def test_a_request_costs_the_same_however_many_have_asked() -> None:
    window = LastMinute()
    for number in range(100_000):
        window.let_in(str(number), 60, number)

    began = time.perf_counter()
    for number in range(1_000):
        window.let_in("0", 2**53 - 1, 100_000 + number)

    assert time.perf_counter() - began < 0.1


def test_a_million_requests_a_minute_are_counted_at_once() -> None:
    window = LastMinute()

    began = time.perf_counter()
    for number in range(200_000):
        window.let_in("a", 1_000_000, number)
    assert window.let_in("a", 200_000, 200_000) == 60

    assert time.perf_counter() - began < 2
