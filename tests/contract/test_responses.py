"""Check the fields, types and bytes of responses (specification, section 2)."""

import json
import math
from typing import Any

import pytest
from pydantic import ValidationError

from srvstat.contract.models import ContractModel
from srvstat.contract.responses import (
    CompareResponse,
    ErrorFields,
    ErrorResponse,
    GrowthFields,
    Players,
    ServerDetail,
    ServerResponse,
    ServerResult,
)

RESULT: dict[str, Any] = {
    "serverId": "srv-1",
    "cfxId": "abc123",
    "range": "7d",
    "currentPlayers": 12,
    "averagePlayers": 100 / 3,
    "medianPlayers": 33.5,
    "peakPlayers": 64,
    "lowestPlayers": 0,
    "growth": GrowthFields(players=-4, percentage=-12.5),
    "sampleCount": 3,
}
DETAIL: dict[str, Any] = {
    "id": "srv-1",
    "game": "game_a",
    "cfxId": "abc123",
    "hostname": 'Harbor "City" é 🚀',
    "projectName": "Harbor",
    "projectDescription": "",
    "region": "SE",
    "players": Players(current=12, max=64),
    "tags": ("roleplay", "swedish"),
    "flags": (),
    "chatUrl": "https://chat.example/harbor",
    "iconUrl": None,
    "offline": False,
    "firstSeenAt": "2025-01-01T00:00:00.000Z",
    "updatedAt": "2026-03-01T12:00:00.000Z",
}


@pytest.mark.parametrize("uptime", [0, 1, 99.9, "", "null", False, [], {}])
def test_uptime_accepts_only_null(uptime: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        ServerResult(**RESULT, uptime=uptime)

    assert [error["loc"] for error in caught.value.errors()] == [("uptime",)]


@pytest.mark.parametrize("field", [name for name in ServerResult.model_fields if name != "uptime"])
def test_a_result_needs_every_field(field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ServerResult(**{name: value for name, value in RESULT.items() if name != field})

    assert [(error["loc"], error["type"]) for error in caught.value.errors()] == [
        ((field,), "missing")
    ]


@pytest.mark.parametrize("field", list(ServerDetail.model_fields))
def test_a_server_needs_every_field(field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ServerDetail(**{name: value for name, value in DETAIL.items() if name != field})

    assert [(error["loc"], error["type"]) for error in caught.value.errors()] == [
        ((field,), "missing")
    ]


TEXT = ["serverId", "cfxId"]
WHOLE = ["currentPlayers", "sampleCount"]
WHOLE_OR_NULL = ["peakPlayers", "lowestPlayers"]
NUMBER_OR_NULL = ["averagePlayers", "medianPlayers"]

INVALID_IN_RESULT = [
    *[(field, value) for field in TEXT for value in (None, 1, b"srv-1", True, ["a"])],
    *[(field, value) for field in WHOLE for value in (None, 1.0, 1.5, "1", True, [1])],
    *[(field, value) for field in WHOLE_OR_NULL for value in (1.0, 1.5, "1", True, [1])],
    *[(field, value) for field in NUMBER_OR_NULL for value in ("1.5", True, [1.5])],
    *[("range", value) for value in (None, "8d", "7D", 7, b"7d")],
    *[("growth", value) for value in (None, 1, "growth", [1, 2])],
    ("sampleCount", -1),
]
INVALID_IN_SERVER = [
    *[
        (field, value)
        for field in ("id", "cfxId", "hostname", "projectName", "region", "chatUrl", "updatedAt")
        for value in (None, 1, b"a", ["a"])
    ],
    *[("game", value) for value in (None, "game_c", "GAME_A", 1)],
    *[(field, value) for field in ("tags", "flags") for value in (None, "ab", {"a": 1}, 1)],
    *[("iconUrl", value) for value in (1, b"a", False)],
    *[("offline", value) for value in (None, 0, 1, "false")],
    *[("players", value) for value in (None, 12, [12, 64])],
]


@pytest.mark.parametrize(("field", "value"), INVALID_IN_RESULT)
def test_values_of_a_result_are_not_coerced(field: str, value: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        ServerResult(**RESULT | {field: value})

    assert {error["loc"][0] for error in caught.value.errors()} == {field}


@pytest.mark.parametrize(("field", "value"), INVALID_IN_SERVER)
def test_values_of_a_server_are_not_coerced(field: str, value: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        ServerDetail(**DETAIL | {field: value})

    assert {error["loc"][0] for error in caught.value.errors()} == {field}


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (GrowthFields, {"players": 1.0, "percentage": None}),
        (GrowthFields, {"players": "1", "percentage": None}),
        (GrowthFields, {"players": True, "percentage": None}),
        (GrowthFields, {"players": 1, "percentage": "1"}),
        (GrowthFields, {"players": 1, "percentage": True}),
        (GrowthFields, {"players": 1}),
        (GrowthFields, {"percentage": None}),
        (Players, {"current": 1.0, "max": 64}),
        (Players, {"current": 1, "max": None}),
        (Players, {"current": True, "max": 64}),
        (ErrorFields, {"code": "INVALID_REQUEST"}),
        (ErrorFields, {"code": "INVALID_REQUEST", "message": None}),
    ],
)
def test_nested_models_are_as_strict(model: type[ContractModel], fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        model(**fields)


COMPLETE: list[tuple[type[ContractModel], dict[str, Any]]] = [
    (ServerResult, RESULT),
    (ServerDetail, DETAIL),
    (GrowthFields, {"players": 1, "percentage": 1.5}),
    (Players, {"current": 1, "max": 64}),
    (ErrorFields, {"code": "INVALID_REQUEST", "message": "Invalid request"}),
    (CompareResponse, {"range": "7d", "data": (ServerResult(**RESULT),) * 2}),
    (ServerResponse, {"data": ServerDetail(**DETAIL)}),
    (ErrorResponse, {"error": ErrorFields(code="INVALID_REQUEST", message="Invalid request")}),
]


@pytest.mark.parametrize(("model", "fields"), COMPLETE)
def test_a_response_is_immutable_and_has_no_extra_property(
    model: type[ContractModel], fields: dict[str, Any]
) -> None:
    response = model(**fields)
    first = next(iter(fields))

    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        model(**fields | {"more": 1})
    with pytest.raises(ValidationError, match="Instance is frozen"):
        setattr(response, first, fields[first])


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_never_encoded(number: float) -> None:
    result = ServerResult(**RESULT | {"averagePlayers": number})

    with pytest.raises(ValueError, match="not a JSON number: NaN or infinite"):
        CompareResponse(range="7d", data=(result, result)).to_json()


def test_pythons_json_reads_a_response_as_its_value() -> None:
    response = CompareResponse(range="7d", data=(ServerResult(**RESULT),) * 5)

    assert json.loads(response.to_json()) == response.model_dump(mode="json")
