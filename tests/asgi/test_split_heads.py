"""Heads that come in pieces, on a connection that goes on."""

from asgi.small_service import serving_small
from support.http import Client, get

LONG = b"X-Filler: " + b"x" * 12_000


def test_a_connection_with_many_long_heads_in_two_pieces_each_stays_open() -> None:
    head = get(b"a", LONG)
    with serving_small() as service, Client(service) as client:
        for _ in range(100):
            client.send(head[:100])
            client.send(head[100:])
            assert client.read_answer().status == 200
