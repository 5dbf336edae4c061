"""The documents that list servers, which are kept compressed."""

import json
from collections.abc import Sequence

import pytest

from srvstat.documents.server_list import ListedServer, ServerList
from srvstat.documents.servers import Servers
from srvstat.documents.snapshot_info import SnapshotInfo


def list_servers(count: int) -> list[ListedServer]:
    return [
        ListedServer(
            id=f"s-{number}",
            cfx_id=f"x-{number}",
            hostname="Höst",
            game="game_a",
            region="EU",
            offline=number % 2 == 0,
            current_players=number,
            sample_count=number,
            first_observed_at=0 if number else None,
            last_observed_at=number or None,
            usual_interval_seconds=number / 2000 if number else None,
            coverage=1 / number if number else None,
            source_id=f"S_{number}" if number % 3 else None,
            completed=["cfxId", "game"][: number % 3],
        )
        for number in range(count)
    ]


def build_info(servers: Sequence[ListedServer]) -> SnapshotInfo:
    return SnapshotInfo(
        as_of=1,
        first_observed_at=None,
        last_observed_at=None,
        servers=len(servers),
        observations=0,
        root="0" * 64,
        parent_root=None,
        covered_from=None,
        games={"game_a": len(servers)},
        fallbacks=0,
        completed={"game": len(servers)},
        sources=("week.csv",),
        repeated=0,
        conflicting=0,
        rejected=0,
        shards=None,
        matched=len(servers),
        identifiers=ServerList(servers),
    )


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 200, 250])
def test_the_pieces_are_one_json_text_with_all_servers(count: int) -> None:
    listed = list_servers(count)
    servers = ServerList(listed)
    found = Servers(as_of=1, root="0" * 64, matched=count, servers=servers)

    for document, name in ((build_info(listed), "identifiers"), (found, "servers")):
        text = b"".join(document.iter_json())
        body = json.loads(text)
        assert document.to_json() == text
        assert text.decode() == json.dumps(body, separators=(",", ":"), ensure_ascii=False)
        assert list(body)[:4] == ["document", "version", "asOf", "root"]
        assert list(body)[-1] == name
        assert body["asOf"] == "1970-01-01T00:00:00.001Z"
        assert [one["cfxId"] for one in body[name]] == [f"x-{at}" for at in range(count)]
        assert [one["usualIntervalSeconds"] for one in body[name]] == [
            one.usual_interval_seconds for one in listed
        ]
    assert list(servers) == listed
    assert len(servers) == count
