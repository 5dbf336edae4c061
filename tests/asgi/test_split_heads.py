"""Long heads that arrive in pieces."""

import pytest

from asgi.small_service import serve_small
from support.http import Client, get

pytestmark = pytest.mark.slow

LONG = b"X-Filler: " + b"x" * 12_000


def test_a_connection_stays_open_after_many_split_heads() -> None:
    head = get(b"a", LONG)
    with serve_small() as service, Client(service) as client:
        for _ in range(100):
            client.send(head[:100])
            client.send(head[100:])
            assert client.read_answer().status == 200
