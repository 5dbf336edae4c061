"""Check that the OpenAPI document is valid, complete and matches models, answers and errors."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from random import Random
from typing import Any

import jsonschema_rs
import pytest
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from campaigns.requests import draw_body
from srvstat.contract import CONTRACT_VERSION, wire
from srvstat.contract.errors import ApiError, InvalidRequestError
from srvstat.contract.http import (
    COMPARE_PATH,
    HEALTH_PATH,
    KEY_HEADER,
    READY_PATH,
    SERVERS_PATH,
    read_openapi,
)
from srvstat.contract.models import ContractModel
from srvstat.contract.requests import (
    MAX_BODY_BYTES,
    CompareRequest,
    build_server_reference,
    parse_compare_request,
)
from srvstat.contract.responses import (
    CompareResponse,
    ErrorResponse,
    HealthResponse,
    ServerResponse,
    UnavailableResponse,
)
from srvstat.contract.time import format_instant
from srvstat.operations.answers import compare, get_server
from srvstat.snapshot.read.file import open_file

DOCUMENT = json.loads(read_openapi())
SCHEMAS = DOCUMENT["components"]["schemas"]
METHODS = ("get", "head", "post")
OPERATIONS = {
    operation["operationId"]: operation
    for path in DOCUMENT["paths"].values()
    for method, operation in path.items()
    if method in METHODS
}
CONTRACT_OPERATIONS = ("getServer", "headServer", "compareServers")
MODELS: list[tuple[type[ContractModel], JsonSchemaMode]] = [
    (CompareRequest, "validation"),
    *(
        (model, "serialization")
        for model in (
            CompareResponse,
            ServerResponse,
            HealthResponse,
            UnavailableResponse,
            ErrorResponse,
        )
    ),
]
FORMATS = {"integer": "int64", "number": "double"}
"""The formats of number types. Without them, some generators use 32 bits."""


def resolve(part: Any) -> Any:
    """Return a part of the document, after following references."""
    while "$ref" in part:
        root, *steps = part["$ref"].split("/")
        assert root == "#"
        part = DOCUMENT
        for step in steps:
            part = part[step]
    return part


def build_validator(schema: Any) -> jsonschema_rs.Draft202012Validator:
    """Return a validator for a schema of the document."""
    whole = {"allOf": [schema], "components": DOCUMENT["components"]}
    return jsonschema_rs.Draft202012Validator(whole, validate_formats=True)


def walk(value: Any, path: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the path and the value of every object in a document."""
    if isinstance(value, dict):
        yield path, value
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(part, dict | list):
            yield from walk(part, f"{path}/{key}")


def test_the_schemas_are_those_of_the_models() -> None:
    _, generated = models_json_schema(MODELS, ref_template="#/components/schemas/{model}")
    models = {name: simplify(schema) for name, schema in generated["$defs"].items()}

    # Enumerations have schemas of their own, so that a generated client has one type for each.
    named = {str(part["enum"]): name for name, part in SCHEMAS.items() if "properties" not in part}
    for model in models.values():
        for key, part in model["properties"].items():
            if name := named.get(str(part.get("enum"))):
                model["properties"][key] = {"$ref": f"#/components/schemas/{name}"}
    assert models == {
        name: drop_texts(part) for name, part in SCHEMAS.items() if name not in named.values()
    }
    assert list(models["ServerResult"]["properties"]) == list(SCHEMAS["ServerResult"]["properties"])


def simplify(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema of pydantic without titles and defaults, with nullable types as lists.

    openapi-typescript requires a property that has a default, even in a request.
    """
    plain = {key: part for key, part in drop_texts(schema).items() if key != "default"}
    if alternatives := plain.pop("anyOf", None):
        plain["type"] = [alternative["type"] for alternative in alternatives]
    types = plain["type"] if isinstance(plain.get("type"), list) else [plain.get("type")]
    for kind in FORMATS.keys() & types:
        plain["format"] = FORMATS[kind]
    for key in {"items"} & plain.keys():
        plain[key] = simplify(plain[key])
    for key in {"properties"} & plain.keys():
        plain[key] = {name: simplify(part) for name, part in plain[key].items()}
    return plain


def drop_texts(schema: Mapping[str, Any]) -> dict[str, Any]:
    plain = {key: part for key, part in schema.items() if key not in {"title", "description"}}
    for key in {"properties"} & plain.keys():
        plain[key] = {name: drop_texts(part) for name, part in plain[key].items()}
    return plain


def test_the_paths_the_version_and_the_key_are_those_of_the_contract() -> None:
    paths = [f"{SERVERS_PATH}{{identifier}}", COMPARE_PATH, HEALTH_PATH, READY_PATH]

    assert list(DOCUMENT["paths"]) == paths
    assert DOCUMENT["info"]["version"] == CONTRACT_VERSION
    assert DOCUMENT["components"]["securitySchemes"]["GatewayKey"]["name"] == KEY_HEADER
    assert DOCUMENT["servers"][0]["url"] == "http://127.0.0.1:8000"  # generated clients call it


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


def get_examples(operation: str, status: str = "200") -> dict[str, Any]:
    content = OPERATIONS[operation]["responses"][status]["content"]["application/json"]
    return {name: example["value"] for name, example in content["examples"].items()}


def test_the_examples_are_the_answers_of_the_demo_snapshot(demo_snapshot: str) -> None:
    bodies = OPERATIONS["compareServers"]["requestBody"]["content"]["application/json"]
    with closing(open_file(demo_snapshot)) as snapshot:
        server = get_server(snapshot, build_server_reference("harbor-city"))
        health = HealthResponse(as_of=format_instant(snapshot.as_of), root=snapshot.root)
        compared = {
            name: compare(snapshot, parse_compare_request(wire.encode(example["value"])))
            for name, example in bodies["examples"].items()
        }
    assert server.to_json() == wire.encode(get_examples("getServer")["demo"])
    assert health.to_json() == wire.encode(get_examples("getHealth")["demo"])
    assert {name: answer.to_json() for name, answer in compared.items()} == {
        name: wire.encode(value) for name, value in get_examples("compareServers").items()
    }


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
    [("getServer", "headServer"), ("getHealth", "headHealth"), ("getReadiness", "headReadiness")],
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


def test_the_parameters_of_get_server_have_the_schemas_of_a_reference() -> None:
    identifier, by = DOCUMENT["paths"]["/gateway/v1/servers/{identifier}"]["parameters"]
    reference = {key: drop_texts(part) for key, part in get_properties("ServerReference").items()}

    assert (identifier["name"], identifier["in"], identifier["required"]) == (
        *("identifier", "path", True),
    )
    assert identifier["schema"] == reference["identifier"]
    assert (by["name"], by["in"], by.get("required")) == ("by", "query", None)
    assert by["schema"] == {**reference["by"], "default": "id"}


def get_properties(name: str) -> dict[str, Any]:
    return dict(SCHEMAS[name]["properties"])


def test_every_body_has_a_named_schema() -> None:
    for place, part in walk(DOCUMENT):
        if place.endswith("/content"):
            assert list(part["application/json"]["schema"]) == ["$ref"]


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
