"""One connection: Expect: 100-continue, pipelined requests, half-closed sockets."""

import time
from collections.abc import Iterator

import pytest

from asgi.small_service import COMPARED, SERVER_A, serve_small
from support.http import (
    COMPARE,
    ERRORS,
    HEALTH,
    HOST,
    JSON,
    KEY,
    TWO,
    A,
    Answer,
    Client,
    compare,
    get,
    request,
)
from support.process import Service

INVALID = ERRORS["INVALID_REQUEST"]
EXPECTING = [HOST, JSON, b"Expect: 100-continue", b"Content-Length: %d" % len(TWO)]


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serve_small() as running:
        yield running


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with Client(service) as open_connection:
        yield open_connection


def get_status_and_body(answer: Answer) -> tuple[int, bytes]:
    return answer.status, answer.body


def test_a_body_that_expects_100_continue_is_requested(client: Client) -> None:
    client.send(request(COMPARE, KEY, *EXPECTING))
    client.wait_for_continue()
    client.send(TWO)

    assert get_status_and_body(client.read_answer()) == (200, COMPARED)


@pytest.mark.parametrize(
    ("line", "key", "status"),
    [
        (COMPARE, b"X-Gateway-Key:", 401),
        (b"POST /nowhere HTTP/1.1", KEY, 404),
        (b"PUT /gateway/v1/compare HTTP/1.1", KEY, 405),
        (b"POST /gateway/v1/compare?x HTTP/1.1", KEY, 400),
    ],
)
def test_no_body_is_requested_after_a_failed_check(
    line: bytes, key: bytes, status: int, client: Client
) -> None:
    client.send(request(line, key, *EXPECTING))

    assert client.read_answer().status == status

    # The connection stays usable for a client that sends it anyway.
    client.send(TWO + HEALTH)
    assert client.read_answer().status == 200


def test_a_body_announced_as_too_long_is_not_requested(client: Client) -> None:
    client.send(request(COMPARE, KEY, *EXPECTING[:-1], b"Content-Length: 16385"))

    assert get_status_and_body(client.read_answer()) == (400, INVALID)


@pytest.mark.parametrize("length", [b"16385", b"99999999999999", b"9" * 20])
def test_a_length_over_the_limit_is_refused_at_once(length: bytes, client: Client) -> None:
    client.send(request(COMPARE, HOST, KEY, JSON, b"Content-Length: " + length))

    assert get_status_and_body(client.read_answer()) == (400, INVALID)


def test_two_pipelined_requests_are_answered_in_order(client: Client) -> None:
    client.send(compare(TWO) + get(b"a"))

    assert [get_status_and_body(client.read_answer()) for _ in range(2)] == [
        (200, COMPARED),
        (200, SERVER_A),
    ]


def test_fifty_pipelined_requests_are_answered_in_order(client: Client) -> None:
    kinds = {
        get(b"a"): (200, SERVER_A),
        compare(TWO): (200, COMPARED),
        get(b"zz"): (404, ERRORS["SERVER_NOT_FOUND"]),
        get(b"_"): (400, INVALID),
        request(A, HOST): (401, ERRORS["GATEWAY_UNAUTHORIZED"]),
    }
    client.send(b"".join(list(kinds) * 10))

    assert [get_status_and_body(client.read_answer()) for _ in range(50)] == list(
        kinds.values()
    ) * 10


def test_a_malformed_request_closes_the_connection(client: Client) -> None:
    client.send(get(b"a") + b"GET / / HTTP/1.1\r\n\r\n" + get(b"a"))

    assert get_status_and_body(client.read_answer()) == (200, SERVER_A)
    assert get_status_and_body(client.read_answer()) == (400, INVALID)
    assert client.read_rest() == b""


def test_a_malformed_body_closes_the_connection(client: Client) -> None:
    chunked = request(COMPARE, HOST, KEY, JSON, b"Transfer-Encoding: chunked")
    client.send(get(b"a") + chunked + b"zz\r\n" + get(b"a"))

    assert get_status_and_body(client.read_answer()) == (200, SERVER_A)
    assert get_status_and_body(client.read_answer()) == (400, INVALID)
    assert client.read_rest() == b""


@pytest.mark.parametrize("line", [b"PRI * HTTP/2.0\r\n\r\nSM", b"HEAD / HTTP/3.0"])
def test_another_major_version_of_http_is_refused(line: bytes, client: Client) -> None:
    client.send(get(b"a") + line + b"\r\n\r\n" + get(b"a"))

    assert get_status_and_body(client.read_answer()) == (200, SERVER_A)
    assert get_status_and_body(client.read_answer()) == (400, INVALID)
    assert client.read_rest() == b""


def test_an_empty_line_before_each_request_is_skipped(client: Client) -> None:
    asked = [get(b"a"), compare(TWO), request(COMPARE, HOST, JSON, b"Content-Length: 2") + b"{}"]
    expected = [(200, SERVER_A), (200, COMPARED), (401, ERRORS["GATEWAY_UNAUTHORIZED"])]
    client.send(b"".join(b"\r\n" + one for one in asked * 2))

    assert [get_status_and_body(client.read_answer()) for _ in range(6)] == expected * 2

    for part in (b"\r", b"\n", get(b"a")):
        client.send(part)
        time.sleep(0.02)
    assert get_status_and_body(client.read_answer()) == (200, SERVER_A)


def test_two_empty_lines_close_the_connection(client: Client) -> None:
    client.send(b"\r\n")
    time.sleep(0.02)
    client.send(b"\r\n")

    assert get_status_and_body(client.read_answer()) == (400, INVALID)
    assert client.read_rest() == b""


def test_a_client_that_finished_sending_is_answered(client: Client) -> None:
    client.send(get(b"a") + compare(TWO) + get(b"b"))
    client.finish_sending()

    assert [client.read_answer().status for _ in range(3)] == [200, 200, 200]
    assert client.read_rest() == b""


@pytest.mark.parametrize("sent", [compare(TWO)[:-1], compare(TWO + b"\n")[:-1]])
def test_an_incomplete_body_is_refused(sent: bytes, client: Client) -> None:
    client.send(get(b"a") + sent)
    client.finish_sending()

    assert get_status_and_body(client.read_answer()) == (200, SERVER_A)
    assert get_status_and_body(client.read_answer()) == (400, INVALID)
    assert client.read_rest() == b""


@pytest.mark.parametrize("part", [b"", b"GET", get(b"a")[:-1], get(b"a") + b"GET /"])
def test_an_incomplete_head_gets_no_answer(part: bytes, client: Client) -> None:
    client.send(part)
    client.finish_sending()

    if get(b"a") in part:
        assert get_status_and_body(client.read_answer()) == (200, SERVER_A)
    assert client.read_rest() == b""


def test_a_request_may_arrive_byte_by_byte(client: Client) -> None:
    for byte in compare(TWO):
        client.send(bytes([byte]))
        time.sleep(0.001)

    assert get_status_and_body(client.read_answer()) == (200, COMPARED)


@pytest.mark.parametrize("at", [1, 20, 60, 137, 160])
def test_a_request_may_arrive_in_two_parts(at: int, client: Client) -> None:
    sent = compare(TWO)
    client.send(sent[:at])
    time.sleep(0.02)
    client.send(sent[at:] + get(b"a"))

    assert get_status_and_body(client.read_answer()) == (200, COMPARED)
    assert get_status_and_body(client.read_answer()) == (200, SERVER_A)


def test_a_connection_serves_a_thousand_requests(client: Client) -> None:
    for _ in range(500):
        client.send(get(b"a"))
        assert get_status_and_body(client.read_answer()) == (200, SERVER_A)
        client.send(compare(TWO))
        assert get_status_and_body(client.read_answer()) == (200, COMPARED)


def test_a_client_that_leaves_early_affects_no_other(service: Service, client: Client) -> None:
    for part in (get(b"a"), compare(TWO), compare(TWO)[:-5], get(b"a")[:9], get(b"a") * 50):
        with Client(service) as impatient:
            impatient.send(part)

    client.send(get(b"a"))
    assert get_status_and_body(client.read_answer()) == (200, SERVER_A)
