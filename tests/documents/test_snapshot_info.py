"""The document of `snapshot info`, whose list of servers is kept compressed."""

import json

import pytest
from pydantic import ValidationError

from srvstat.documents.snapshot_info import ListedServer, ServerList, SnapshotInfo


def list_servers(count: int) -> list[ListedServer]:
    return [
        ListedServer(
            id=f"s-{number}",
            cfx_id=f"x-{number}",
            game="game_a",
            hostname="Höst",
            observations=number,
            first_observed_at=0 if number else None,
            last_observed_at=number or None,
        )
        for number in range(count)
    ]


def build_info(servers: ServerList, count: int) -> SnapshotInfo:
    return SnapshotInfo(
        as_of=1,
        first_observed_at=None,
        last_observed_at=None,
        servers=count,
        observations=0,
        root="0" * 64,
        parent_root=None,
        covered_from=None,
        games={"game_a": count},
        fallbacks=0,
        sources=("week.csv",),
        repeated=0,
        conflicting=0,
        rejected=0,
        identifiers=servers,
    )


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 200, 250])
def test_the_pieces_are_one_json_text_with_all_servers(count: int) -> None:
    servers = ServerList(keep_json=True)
    for server in list_servers(count):
        servers.append(server)

    text = b"".join(build_info(servers, count).iter_json())

    body = json.loads(text)
    assert text.decode() == json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    assert list(body)[:4] == ["document", "version", "asOf", "root"]
    assert list(body)[-1] == "identifiers"
    assert body["asOf"] == "1970-01-01T00:00:00.001Z"
    assert [one["cfxId"] for one in body["identifiers"]] == [f"x-{at}" for at in range(count)]
    assert len(servers.first) == min(count, 50)


def test_a_listed_server_coerces_nothing() -> None:
    fields = list_servers(1)[0].model_dump(by_alias=False)

    with pytest.raises(ValidationError):
        ListedServer(**{**fields, "observations": "1"})
    with pytest.raises(ValidationError):
        ListedServer(**{**fields, "more": 1})
