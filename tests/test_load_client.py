"""Check the load client with correct, wrong and incomplete answers."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support import load_client
from support.http import request_target
from support.load import Exchange, Load, Outcome, deal, rotate

EXCHANGE = Exchange(request_target("/"), 200, (b"yes", b"no"))
CORRECT = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes"


@contextmanager
def serve_answers(*answers: bytes) -> Iterator[int]:
    """Answer requests, one connection at a time; after an incomplete answer, close it."""
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


def find_outcome(*answers: bytes, asked: Exchange = EXCHANGE) -> Outcome:
    with serve_answers(*answers) as port:
        return load_client.run_load(Load(port, [[asked] * len(answers)], 10, is_repeated=False))


def test_right_answers_are_counted() -> None:
    found = find_outcome(CORRECT, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno", CORRECT)

    assert (found.answers, found.list_failures(), found.reopened) == (3, [], 0)
    assert found.statuses == {200: 3}


def test_the_chunks_of_an_answer_are_joined() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    assert find_outcome(head + b"1\r\ny\r\n2\r\nes\r\n0\r\n\r\n").list_failures() == []


def test_an_answer_to_head_has_no_body() -> None:
    asked = Exchange(request_target("/", method="HEAD"), 200, (b"",))

    found = find_outcome(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", asked=asked)

    assert (found.answers, found.list_failures()) == (1, [])


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyet", "other bytes: b'yet'"),
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 3\r\n\r\nyes", "status 500, not 200: b'yes'"),
        (CORRECT + b"yes", "more than an answer"),
        (b"HTTP/1.1 200 OK\r\n\r\nyes", "an answer without a length"),
        (CORRECT[:-1], f"closed after {len(CORRECT) - 1} bytes of an answer"),
        (b"", "closed after 0 bytes of an answer"),
    ],
)
def test_a_wrong_answer_is_a_failure(answer: bytes, problem: str) -> None:
    (failure,) = find_outcome(answer).list_failures()

    assert failure.startswith("b'GET / HTTP/1.1")
    assert problem in failure


def test_a_connection_closed_between_requests_is_reopened() -> None:
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nyes"

    assert find_outcome(closing, CORRECT).list_failures() == []


def test_a_refused_connection_is_a_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

    assert load_client.run_load(Load(port, [[EXCHANGE]], 1)).list_failures() == [
        "1 connections were refused"
    ]


def test_a_pause_spreads_the_requests() -> None:
    started = time.monotonic()
    with serve_answers(*[CORRECT] * 4) as port:
        found = load_client.run_load(Load(port, [[EXCHANGE] * 4], 10, is_repeated=False, pause=0.1))

    assert (found.answers, found.list_failures()) == (4, [])
    assert time.monotonic() - started >= 0.3


def test_the_first_exchange_is_not_counted() -> None:
    first = Exchange(request_target("/"), 200, (b"no",))
    with serve_answers(CORRECT.replace(b"3", b"2").replace(b"yes", b"no"), CORRECT) as port:
        found = load_client.run_load(Load(port, [[EXCHANGE]], 10, is_repeated=False, first=first))

    assert (found.answers, found.list_failures()) == (1, [])


def test_the_client_may_run_in_its_own_process() -> None:
    with load_client.start_client() as client, serve_answers(CORRECT) as port:
        found = client(Load(port, [[EXCHANGE]], 10, is_repeated=False)).result()

    assert (found.answers, found.list_failures()) == (1, [])


def test_exchanges_are_dealt_or_rotated() -> None:
    cards = [Exchange(bytes([number])) for number in range(5)]

    assert sorted(card for hand in deal(cards, 3) for card in hand) == cards
    assert [sorted(hand) for hand in rotate(cards, 3)] == [cards] * 3
    assert [hand[0] for hand in rotate(cards, 3)] == cards[:3]
