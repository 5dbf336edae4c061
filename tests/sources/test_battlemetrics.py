"""Read player count histories of BattleMetrics."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from conftest import AS_OF
from sources.readings import read_rows
from srvstat.contract.errors import SourceError
from srvstat.sources.source import Source, read_batches

TIME = "2026-03-01T12:00:00.000Z"


def build_answer(*points: dict[str, Any]) -> bytes:
    data = [{"type": "dataPoint", "attributes": point} for point in points]
    return json.dumps({"data": data}).encode()


@pytest.mark.parametrize("name", ["1234567.json", "1234567.JSON.gz", "1234567"])
def test_the_file_names_the_server_and_holds_any_number_of_answers(
    name: str, tmp_path: Path
) -> None:
    content = b"\xef\xbb\xbf" + b"\n".join(
        [
            build_answer({"timestamp": TIME, "value": 5, "min": 1, "max": 9}),
            build_answer(),
            build_answer({"timestamp": "2026-03-01T13:00:00+01:00", "value": 7}),
        ]
    )
    path = tmp_path / name
    path.write_bytes(gzip.compress(content, mtime=0) if name.endswith("gz") else content)

    found = read_rows(path, "battlemetrics")

    assert found.kept == {1: ("1234567", AS_OF, 5), 2: ("1234567", AS_OF, 7)}


def test_a_point_without_a_count_is_skipped_and_a_malformed_one_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    points: list[dict[str, Any]] = [
        {"timestamp": TIME, "value": None},
        {"timestamp": TIME, "value": 2.5},
        {"timestamp": TIME},
        {"timestamp": "soon", "value": 5},
        {"timestamp": "2026-03-01T12:00:00", "value": 5},
        {"timestamp": TIME, "value": [5]},
        {"timestamp": TIME, "value": ""},
    ]
    path.write_bytes(build_answer(*points))

    found = read_rows(path, "battlemetrics")

    assert (found.kept, found.skipped) == ({}, {"without a player count": 2})
    assert [(at, reason.partition(":")[0]) for at, reason in found.rejects.items()] == [
        (2, "players"),
        (3, "must have the attributes timestamp and value"),
        (4, "observedAt"),
        (5, "observedAt"),
        (6, "timestamp and value must be plain values"),
    ]


def test_a_point_that_is_no_object_with_attributes_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    points: list[Any] = [
        None,
        5,
        "x",
        [{}],
        {},
        {"attributes": None},
        {"attributes": 5},
        *[{}] * 10_000,
    ]
    path.write_text(json.dumps({"data": points}))

    found = read_rows(path, "battlemetrics")

    reason = "must have the attributes timestamp and value"
    assert found.rejects == dict.fromkeys(range(1, 10_008), reason)


NOT_AN_ANSWER = "must be an answer of BattleMetrics to player-count-history, "
ERROR = {"errors": [{"code": "x", "title": "Unauthorized", "detail": "No token"}]}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the JSON is empty or cut off"),
        (b"x", "not JSON"),
        (b"[]", NOT_AN_ANSWER),
        (b'{"data": {}}', NOT_AN_ANSWER),
        (b"{}", NOT_AN_ANSWER),
        (build_answer({"timestamp": TIME, "value": 5})[:-9], "the JSON is empty or cut off"),
        (json.dumps(ERROR).encode(), "an error of BattleMetrics: Unauthorized: No token"),
        *(
            (b'{"errors": %b}' % errors, "an error of BattleMetrics: unknown")
            for errors in (b"5", b"[]", b"[5]", b"[null]", b"[[{}]]")
        ),
        (gzip.compress(build_answer(), mtime=0)[:-9], "the gzip data is cut off"),
    ],
)
def test_another_file_is_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)

    with pytest.raises(SourceError) as caught:
        read_rows(path, "battlemetrics")

    assert caught.value.reason.startswith(f"{path}: {reason}")


def test_standard_input_is_refused_because_it_names_no_server() -> None:
    with pytest.raises(SourceError, match="name a file like the server's identifier"):
        list(read_batches(Source("-", "battlemetrics")))
