"""What the load client makes of right answers, wrong ones, and answers that end too soon."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support import load_client
from support.http import request_target
from support.load import Exchange, Load, Outcome, deal, rotate

ASKED = Exchange(request_target("/"), 200, (b"yes", b"no"))
RIGHT = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes"


@contextmanager
def answering(*answers: bytes) -> Iterator[int]:
    """Accept one connection after another; a piece of an answer, or nothing, closes it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            left = list(answers)
            while left:
                connection, _ = listening.accept()
                with connection:
                    while left and connection.recv(1 << 16):
                        connection.sendall(answer := left.pop(0))
                        if not answer.endswith((b"yes", b"no", b"0\r\n\r\n")):
                            break

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        yield listening.getsockname()[1]
        server.join(timeout=10)


def outcome_of(*answers: bytes, asked: Exchange = ASKED) -> Outcome:
    with answering(*answers) as port:
        return load_client.run_load(Load(port, [[asked] * len(answers)], 10, is_repeated=False))


def test_right_answers_are_counted() -> None:
    found = outcome_of(RIGHT, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno", RIGHT)

    assert (found.answers, found.failures(), found.reopened) == (3, [], 0)
    assert found.statuses == {200: 3}


def test_an_answer_in_chunks_is_put_together() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    assert outcome_of(head + b"1\r\ny\r\n2\r\nes\r\n0\r\n\r\n").failures() == []


def test_a_head_has_no_body_whatever_its_length() -> None:
    asked = Exchange(request_target("/", method="HEAD"), 200, (b"",))

    found = outcome_of(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", asked=asked)

    assert (found.answers, found.failures()) == (1, [])


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyet", "other bytes: b'yet'"),
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 3\r\n\r\nyes", "status 500, not 200: b'yes'"),
        (RIGHT + b"yes", "more than an answer"),
        (b"HTTP/1.1 200 OK\r\n\r\nyes", "an answer without a length"),
        (RIGHT[:-1], f"closed after {len(RIGHT) - 1} bytes of an answer"),
        (b"", "closed after 0 bytes of an answer"),
    ],
)
def test_what_is_wrong_is_told(answer: bytes, told: str) -> None:
    (failure,) = outcome_of(answer).failures()

    assert failure.startswith("b'GET / HTTP/1.1")
    assert told in failure


def test_a_connection_closed_between_requests_is_opened_again() -> None:
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nyes"

    assert outcome_of(closing, RIGHT).failures() == []


def test_nobody_there_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

    assert load_client.run_load(Load(port, [[ASKED]], 1)).failures() == [
        "1 connections were refused"
    ]


def test_a_pause_spreads_requests_and_counts_from_when_they_were_due() -> None:
    started = time.monotonic()
    with answering(*[RIGHT] * 4) as port:
        found = load_client.run_load(Load(port, [[ASKED] * 4], 10, is_repeated=False, pause=0.1))

    assert (found.answers, found.failures()) == (4, [])
    assert time.monotonic() - started >= 0.3


def test_what_is_asked_first_is_no_part_of_the_outcome() -> None:
    first = Exchange(request_target("/"), 200, (b"no",))
    with answering(RIGHT.replace(b"3", b"2").replace(b"yes", b"no"), RIGHT) as port:
        found = load_client.run_load(Load(port, [[ASKED]], 10, is_repeated=False, first=first))

    assert (found.answers, found.failures()) == (1, [])


def test_a_process_of_its_own_asks() -> None:
    with load_client.start_client() as client, answering(RIGHT) as port:
        found = client(Load(port, [[ASKED]], 10, is_repeated=False)).result()

    assert (found.answers, found.failures()) == (1, [])


def test_exchanges_are_dealt_once_or_given_to_all() -> None:
    cards = [Exchange(bytes([number])) for number in range(5)]

    assert sorted(card for hand in deal(cards, 3) for card in hand) == cards
    assert [sorted(hand) for hand in rotate(cards, 3)] == [cards] * 3
    assert [hand[0] for hand in rotate(cards, 3)] == cards[:3]
