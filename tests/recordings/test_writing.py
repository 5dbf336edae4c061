"""Hide keys in what the service records, even if they are unusual."""

from srvstat.asgi.log import hide_keys, store_request
from srvstat.contract.http import Head
from srvstat.operations.redaction import KeyFilter


def test_a_key_that_begins_inside_a_character_of_the_answer_is_hidden() -> None:
    answer = '{"hostname": "Night Shift «夜勤»"}'.encode()
    key = "«夜勤»".encode()[1:-1]
    key_filter = KeyFilter([key.decode("latin-1")], lambda _: False)
    head = Head("GET", b"/gateway/v1/servers/" + key, b"", ((b"x-gateway-key", key),))

    assert store_request(head, b"", key_filter).path == "/gateway/v1/servers/…"
    assert hide_keys(answer, key_filter) == '{"hostname": "Night Shift \ufffd…\ufffd"}'
