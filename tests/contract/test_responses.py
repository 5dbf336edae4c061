"""Check the fields, types and bytes of responses (specification, section 2)."""

import json
import math
from typing import Any

import pytest
from pydantic import ValidationError

from srvstat.contract.responses import (
    CompareResponse,
    GrowthFields,
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


@pytest.mark.parametrize("uptime", [0, 1, 99.9, "", "null", False, [], {}])
def test_uptime_accepts_only_null(uptime: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        ServerResult(**RESULT, uptime=uptime)

    assert [error["loc"] for error in caught.value.errors()] == [("uptime",)]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_never_encoded(number: float) -> None:
    result = ServerResult(**RESULT | {"averagePlayers": number})

    with pytest.raises(ValueError, match="not a JSON number: NaN or infinite"):
        CompareResponse(range="7d", data=(result, result)).to_json()


def test_pythons_json_reads_a_response_as_its_value() -> None:
    response = CompareResponse(range="7d", data=(ServerResult(**RESULT),) * 5)

    assert json.loads(response.to_json()) == response.model_dump(mode="json")
