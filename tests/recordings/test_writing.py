"""Encode exchanges of the service whose keys are unusual."""

import json

from srvstat.asgi.log import ServedExchange, encode_line
from srvstat.contract.http import Head
from srvstat.operations.redaction import KeyFilter


def test_a_key_that_begins_inside_a_character_of_the_answer_is_hidden() -> None:
    answer = '{"hostname": "Night Shift «夜勤»"}'.encode()
    key = "«夜勤»".encode()[1:-1]
    head = Head("GET", b"/gateway/v1/servers/" + key, b"", ((b"x-gateway-key", key),))
    exchange = ServedExchange(head, b"", 200, answer, 0, None, 0, "0" * 64)

    line = encode_line(exchange, KeyFilter([key.decode("latin-1")], lambda _: False))

    record = json.loads(line)
    assert record["request"]["path"] == "/gateway/v1/servers/…"
    assert record["response"]["body"] == '{"hostname": "Night Shift \ufffd…\ufffd"}'
