"""Check that the OpenAPI document is valid, complete and matches the models and the demo."""

import json
import re
from contextlib import closing
from random import Random
from typing import Any

import jsonschema_rs
import pytest

from campaigns.request_bodies import draw_body
from contract.openapi_parts import DOCUMENT, OPERATIONS, SCHEMAS, build_validator, resolve, walk
from openapi.examples import COMPARISONS, HEALTH, SERVER, SERVER_IDENTIFIER
from openapi.texts import MODELS
from srvstat.contract import wire
from srvstat.contract.errors import ApiError, InvalidRequestError
from srvstat.contract.instants import format_instant
from srvstat.contract.requests import (
    MAX_BODY_BYTES,
    build_server_reference,
    parse_compare_request,
)
from srvstat.contract.responses import ErrorResponse, HealthResponse
from srvstat.operations import compare, get_server
from srvstat.snapshot.read.reader import open_file

CONTRACT_OPERATIONS = ("getServer", "headServer", "compareServers")

NUMBER = ["number", "null"]
RANGES = ["24h", "7d", "30d", "90d", "1y"]
IDENTIFIER = {
    "type": "string",
    "pattern": "^[A-Za-z0-9-]+$",
    "minLength": 1,
    "maxLength": 128,
}


def test_the_document_is_openapi_3_1() -> None:
    # Imported here because it is slow and the other tests don't need it. `schemathesis.openapi`
    # makes the same check, but takes three times as long to import.
    from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR  # noqa: PLC0415

    OPENAPI_31_VALIDATOR.validate(DOCUMENT)


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_schema_is_valid_json_schema_2020_12(name: str) -> None:
    jsonschema_rs.meta.validate(
        {"$schema": "https://json-schema.org/draft/2020-12/schema", **SCHEMAS[name]}
    )


def test_references_resolve_and_every_component_is_used() -> None:
    used = {part["$ref"] for _, part in walk(DOCUMENT) if "$ref" in part}
    shared = {
        f"#/components/{kind}/{name}"
        for kind in ("schemas", "responses", "headers")
        for name in DOCUMENT["components"][kind]
    }

    assert used == shared


def list_examples() -> list[Any]:
    found = []
    for place, part in walk(DOCUMENT):
        if "schema" in part:
            shown = {name: shown["value"] for name, shown in part.get("examples", {}).items()}
            if "example" in part:
                assert not shown, f"{place} has both forms"
                shown = {"example": part["example"]}
            found += [
                pytest.param(part["schema"], value, id=f"{place}/{name}")
                for name, value in shown.items()
            ]
    return found


@pytest.mark.parametrize(("schema", "value"), list_examples())
def test_every_example_matches_its_schema(schema: Any, value: Any) -> None:
    build_validator(schema).validate(value)


def test_the_examples_are_the_answers_of_the_demo_snapshot(demo_snapshot: str) -> None:
    with closing(open_file(demo_snapshot)) as snapshot:
        response = get_server(snapshot, build_server_reference(SERVER_IDENTIFIER))
        health = HealthResponse(asOf=format_instant(snapshot.as_of), root=snapshot.root)
        assert response.to_json() == SERVER.encode()
        assert health.to_json() == HEALTH.encode()
        for exchange in COMPARISONS.values():
            request = parse_compare_request(exchange.request.encode())
            assert compare(snapshot, request).to_json() == exchange.answer.encode()


def test_the_example_values_encode_to_the_bytes_of_the_answers() -> None:
    text = json.dumps(OPERATIONS["compareServers"])
    content = json.loads(text)["responses"]["200"]["content"]["application/json"]

    for name, shown in content["examples"].items():
        assert wire.encode(shown["value"]) == COMPARISONS[name].answer.encode()


@pytest.mark.parametrize("operation_id", CONTRACT_OPERATIONS)
def test_an_operation_of_the_contract_has_these_statuses_and_needs_a_key(operation_id: str) -> None:
    operation = OPERATIONS[operation_id]

    assert list(operation["responses"]) == [
        *("200", "400", "401", "403", "404", "405", "429", "500")
    ]
    assert "security" not in operation
    assert DOCUMENT["security"] == [{"GatewayKey": []}]


@pytest.mark.parametrize("operation_id", ["getServer", "compareServers"])
@pytest.mark.parametrize("kind", ApiError.__subclasses__(), ids=lambda kind: kind.code)
def test_every_error_has_its_status_body_and_table_row(
    operation_id: str, kind: type[ApiError]
) -> None:
    response = resolve(OPERATIONS[operation_id]["responses"][str(kind.http_status)])
    content = response["content"]["application/json"]
    body = ErrorResponse.from_error(kind).to_json()
    shown = [content["example"]] if "example" in content else content["examples"].values()

    assert all(wire.encode(value.get("value", value)) == body for value in shown)
    assert content["schema"] == {"$ref": "#/components/schemas/ErrorResponse"}
    assert response["description"].startswith(f"{kind.code}: ")
    row = f"\n| {kind.code} | {kind.http_status} | {kind.message} | "
    assert row in DOCUMENT["info"]["description"]


def test_there_are_exactly_six_codes() -> None:
    codes = [kind.code for kind in ApiError.__subclasses__()]

    assert SCHEMAS["ErrorFields"]["properties"]["code"] == {"type": "string", "enum": codes}
    assert len(codes) == 6


@pytest.mark.parametrize("operation_id", OPERATIONS)
def test_every_response_has_its_headers(operation_id: str) -> None:
    more = {"401": "WWW-Authenticate", "405": "Allow", "429": "Retry-After"}
    limit = {"RateLimit-Policy", "RateLimit"}
    of_contract = operation_id in CONTRACT_OPERATIONS

    for status, response in OPERATIONS[operation_id]["responses"].items():
        expected = {"X-Request-Id", "Cache-Control", *filter(None, [more.get(status)])}
        headers = resolve(response)["headers"]
        if status != "401" and (of_contract or limit <= set(headers)):
            expected |= limit
        assert set(headers) == expected
        assert {name for name in headers if not resolve(headers[name]).get("required")} <= limit


@pytest.mark.parametrize(
    ("get", "head"),
    [
        ("getServer", "headServer"),
        ("getHealth", "headHealth"),
        ("getReadiness", "headReadiness"),
    ],
)
def test_head_responses_are_those_of_get_without_a_body(get: str, head: str) -> None:
    got, headed = OPERATIONS[get]["responses"], OPERATIONS[head]["responses"]

    assert list(headed) == list(got)
    for status, response in got.items():
        whole = resolve(response)
        assert headed[status] == {key: whole[key] for key in ("description", "headers")}


def test_the_health_and_readiness_checks_need_no_key() -> None:
    for name in ("getHealth", "headHealth", "getReadiness", "headReadiness"):
        assert OPERATIONS[name]["security"] == []
    assert list(DOCUMENT["paths"])[-2:] == ["/healthz", "/readyz"]


def test_the_parameters_of_get_server_are_those_of_the_contract() -> None:
    identifier, by = DOCUMENT["paths"]["/gateway/v1/servers/{identifier}"]["parameters"]

    assert (identifier["name"], identifier["in"], identifier["required"]) == (
        *("identifier", "path", True),
    )
    assert identifier["schema"] == IDENTIFIER
    assert (by["name"], by["in"], by.get("required")) == ("by", "query", None)
    assert by["schema"] == {"$ref": "#/components/schemas/Namespace", "default": "id"}
    assert SCHEMAS["Namespace"]["enum"] == ["id", "cfxId"]


def list_types(name: str) -> dict[str, Any]:
    """Return the type or the schema name of each property of a schema."""
    return {
        key: part["$ref"].rpartition("/")[2] if "$ref" in part else part["type"]
        for key, part in SCHEMAS[name]["properties"].items()
    }


TYPES: dict[str, dict[str, Any]] = {
    "CompareResponse": {"range": "Range", "data": "array"},
    "ServerResult": {
        "serverId": "string",
        "cfxId": "string",
        "range": "Range",
        "currentPlayers": "integer",
        "averagePlayers": NUMBER,
        "medianPlayers": NUMBER,
        "peakPlayers": NUMBER,
        "lowestPlayers": NUMBER,
        "growth": "GrowthFields",
        "uptime": NUMBER,  # with `"const": null`
        "sampleCount": "integer",
    },
    "GrowthFields": {"players": NUMBER, "percentage": NUMBER},
    "ServerResponse": {"data": "ServerDetail"},
    "ServerDetail": {
        "id": "string",
        "game": "string",
        "cfxId": "string",
        "hostname": "string",
        "projectName": "string",
        "projectDescription": "string",
        "region": "string",
        "players": "Players",
        "tags": "array",
        "flags": "array",
        "chatUrl": "string",
        "iconUrl": ["string", "null"],
        "offline": "boolean",
        "firstSeenAt": "string",
        "updatedAt": "string",
    },
    "Players": {"current": "integer", "max": "integer"},
    "HealthResponse": {"status": "string", "asOf": "string", "root": "string"},
    "UnavailableResponse": {"status": "string"},
    "ErrorResponse": {"error": "ErrorFields"},
    "ErrorFields": {"code": "string", "message": "string"},
}


@pytest.mark.parametrize("name", TYPES)
def test_responses_have_exactly_the_fields_of_the_specification(name: str) -> None:
    assert list(list_types(name).items()) == list(TYPES[name].items())
    assert SCHEMAS[name]["required"] == list(TYPES[name])
    assert SCHEMAS[name]["additionalProperties"] is False


def test_the_schemas_of_compare_servers_match_the_specification() -> None:
    servers, range_name = (
        {key: part[key] for key in part if key != "description"}
        for part in SCHEMAS["CompareRequest"]["properties"].values()
    )
    reference = SCHEMAS["ServerReference"]
    results = SCHEMAS["CompareResponse"]["properties"]["data"]

    assert servers == {
        "type": "array",
        "items": {"$ref": "#/components/schemas/ServerReference"},
        "minItems": 2,
        "maxItems": 5,
        "uniqueItems": True,
    }
    assert range_name == {"$ref": "#/components/schemas/Range"}
    assert (
        SCHEMAS["CompareRequest"]["properties"]["range"]["description"] == "The default is `30d`."
    )
    assert SCHEMAS["CompareRequest"]["required"] == ["servers"]
    assert SCHEMAS["CompareRequest"]["additionalProperties"] is False
    assert reference["required"] == ["identifier", "by"]
    assert reference["additionalProperties"] is False
    assert IDENTIFIER.items() <= reference["properties"]["identifier"].items()
    assert (results["minItems"], results["maxItems"]) == (2, 5)
    assert SCHEMAS["ServerResult"]["properties"]["sampleCount"]["minimum"] == 0
    assert (SCHEMAS["Range"]["type"], SCHEMAS["Range"]["enum"]) == ("string", RANGES)


def test_descriptions_are_of_existing_properties() -> None:
    assert set(MODELS) == set(SCHEMAS)
    for name, (_, texts) in MODELS.items():
        assert set(texts) <= set(SCHEMAS[name].get("properties", ()))


def test_the_schema_of_requests_agrees_with_the_parser() -> None:
    random = Random(5)  # noqa: S311 - reproducible cases, not secrets
    schema = build_validator({"$ref": "#/components/schemas/CompareRequest"})
    counts = {True: 0, False: 0}
    while sum(counts.values()) < 2_000:
        body = draw_body(random)
        try:
            value = wire.decode(body)
            json.dumps(value, ensure_ascii=False).encode()
        except (wire.JsonError, RecursionError, UnicodeEncodeError):
            continue  # a schema validates only JSON values
        if len(body) <= MAX_BODY_BYTES:
            is_valid = schema.is_valid(value)
            counts[is_valid] += 1
            assert is_valid == is_accepted(body), body
    assert min(counts.values()) > 500


def is_accepted(body: bytes) -> bool:
    try:
        parse_compare_request(body)
    except InvalidRequestError:
        return False
    return True


def test_the_invalid_examples_are_invalid() -> None:
    shown = OPERATIONS["compareServers"]["responses"]["400"]["content"]["application/json"]
    schema = build_validator({"$ref": "#/components/schemas/CompareRequest"})

    bodies = [
        re.fullmatch("Request body: `(.*)`", part["description"])
        for part in shown["examples"].values()
    ]

    assert len(bodies) > 4
    for body in bodies:
        assert body
        assert not is_accepted(body[1].encode())
        assert not schema.is_valid(json.loads(body[1]))
