"""Read server records from the JSON that Cfx.re returns for a single server."""

import json
from pathlib import Path
from typing import Any

import pytest

from srvstat.contract.errors import SourceError
from srvstat.sources.servers import PartialRecord
from srvstat.sources.source import Source
from srvstat.sources.trackers import read_cfx_records

FULL: dict[str, Any] = {
    "EndPoint": "abc123",
    "Data": {
        "clients": 31,
        "svMaxclients": 64,
        "sv_maxclients": 128,
        "hostname": "^1Harbor ^5City^0 | 夜",
        "gametype": "roleplay",
        "resources": ["chat", "spawn"] * 200,
        "vars": {
            "sv_projectName": "^3Harbor",
            "sv_projectDesc": "A city\nby the sea",
            "tags": "roleplay, cars,,sea ",
            "locale": "de-DE",
            "gamename": "gta5",
        },
        "players": [{"id": 1, "name": "x", "identifiers": ["steam:1"], "ping": 20}],
        "private": False,
        "iconVersion": None,
        "upvotePower": 12.5,
    },
}
SMALL = {"EndPoint": "q9", "Data": {"clients": 0, "svMaxclients": 48, "vars": None}}
RECORDS = [
    PartialRecord(
        id="abc123",
        cfx_id="abc123",
        hostname="^1Harbor ^5City^0 | 夜",
        project_name="^3Harbor",
        project_description="A city\nby the sea",
        players_current=31,
        players_max=128,
        tags=("roleplay", "cars", "sea"),
    ),
    PartialRecord(id="q9", cfx_id="q9", players_current=0, players_max=48),
]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([FULL, SMALL]),
        f"{json.dumps(FULL)}\n{json.dumps(SMALL)}",
        f"{json.dumps(FULL, indent=2)}[{json.dumps(SMALL)}]",
    ],
)
def test_a_file_has_an_array_of_answers_or_one_after_the_other(text: str, tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    path.write_text(text, "utf-8")

    assert read_cfx_records(Source(str(path), "cfx")) == RECORDS


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("x", "not JSON"),
        ('{"EndPoint": "a"', "the JSON is empty or cut off"),
        ("5", "server 2: the answer: must be an object"),
        ('{"error": "404 Not Found"}', "server 2: an error of Cfx.re: 404 Not Found"),
        ('{"EndPoint": "a", "Data": []}', "server 2: Data: must be an object"),
        ('{"EndPoint": "a", "Data": {"vars": 1}}', "server 2: vars: must be an object"),
        ('{"EndPoint": "a_b", "Data": {}}', "server 2: EndPoint: must be 1 to 128 letters"),
        ('{"EndPoint": "a", "Data": {"clients": -1}}', "server 2: clients: must be a whole"),
        ('{"EndPoint": "a", "Data": {"hostname": {}}}', "server 2: hostname: must be a plain"),
        ('{"EndPoint": "a", "Data": {"hostname": 5}}', "server 2: hostname: must be a string"),
        ('{"EndPoint": "a", "EndPoint": "a", "Data": {}}', "server 2: EndPoint: repeated"),
        ('{"EndPoint": "a", "Data": {"hostname": "\\u0000"}}', "server 2: hostname: contains"),
    ],
)
def test_another_answer_is_refused_with_its_number(
    answer: str, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "servers.json"
    path.write_text(f"{json.dumps(SMALL)}\n{answer}", "utf-8")

    with pytest.raises(SourceError) as caught:
        read_cfx_records(Source(str(path), "cfx"))

    place, _, rest = caught.value.reason.removeprefix(str(path)).partition(" ")
    assert place in (",", ":")
    assert rest.startswith(reason)
