"""Build the operations of each path: parameters, request bodies and responses."""

from collections.abc import Mapping
from typing import Any

from openapi import examples, texts
from openapi.answers import (
    Json,
    build_example,
    build_invalid_request_response,
    build_response,
    refer_to_check_errors,
    refer_to_errors,
    remove_bodies,
)
from openapi.schemas import refer_to_model
from srvstat.contract.http import (
    COMPARE_METHODS,
    COMPARE_PATH,
    HEALTH_PATH,
    JSON_TYPE,
    READY_PATH,
    SERVERS_PATH,
)
from srvstat.contract.requests import NAMESPACES, CompareRequest
from srvstat.contract.responses import (
    CompareResponse,
    HealthResponse,
    ServerResponse,
    UnavailableResponse,
)


def build_paths(schemas: Mapping[str, Any]) -> Json:
    """Return the paths of the service; `schemas` are the component schemas by name."""
    return {
        f"{SERVERS_PATH}{{identifier}}": {
            "parameters": _build_server_parameters(schemas["ServerReference"]["properties"]),
            "get": _build_get_server(),
            "head": _build_head(_build_get_server(), "headServer"),
        },
        COMPARE_PATH: {COMPARE_METHODS.lower(): _build_compare_servers()},
        HEALTH_PATH: {
            "get": _build_get_health(),
            "head": _build_head(_build_get_health(), "headHealth"),
        },
        READY_PATH: {
            "get": _build_get_readiness(),
            "head": _build_head(_build_get_readiness(), "headReadiness"),
        },
    }


def _build_server_parameters(properties: Mapping[str, Json]) -> list[Json]:
    identifier, by = dict(properties["identifier"]), dict(properties["by"])
    return [
        {
            "name": "identifier",
            "in": "path",
            "required": True,
            "description": identifier.pop("description"),
            "schema": identifier,
            "example": examples.SERVER_IDENTIFIER,
        },
        {
            "name": "by",
            "in": "query",
            "description": by.pop("description"),
            "schema": {**by, "default": NAMESPACES[0]},
        },
    ]


def _build_get_server() -> Json:
    invalid = {
        name: (summary, f"Request: `GET {target}`")
        for name, (summary, target) in examples.INVALID_SERVER_TARGETS.items()
    }
    found = {"demo": build_example("A server in the demo snapshot", examples.SERVER)}
    return {
        "tags": ["Servers"],
        "summary": "Get Server",
        "description": texts.GET_SERVER,
        "operationId": "getServer",
        "responses": {
            "200": build_response(
                "The details of the server.", refer_to_model(ServerResponse), found
            ),
            "400": build_invalid_request_response(invalid),
            **refer_to_errors(),
        },
    }


def _build_compare_servers() -> Json:
    comparisons = examples.COMPARISONS.items()
    requests = {name: build_example(shown.summary, shown.request) for name, shown in comparisons}
    answers = {name: build_example(shown.summary, shown.answer) for name, shown in comparisons}
    invalid = {
        name: (summary, f"Request body: `{body}`")
        for name, (summary, body) in examples.INVALID_COMPARISONS.items()
    }
    return {
        "tags": ["Comparison"],
        "summary": "Compare Servers",
        "description": texts.COMPARE_SERVERS,
        "operationId": "compareServers",
        "requestBody": {
            "required": True,
            "content": {
                JSON_TYPE: {"schema": refer_to_model(CompareRequest), "examples": requests}
            },
        },
        "responses": {
            "200": {
                **build_response(
                    "One result for each server.", refer_to_model(CompareResponse), answers
                ),
                # A link can't name every element of an array; two always exist.
                "links": {
                    "firstServer": _build_server_link(0),
                    "secondServer": _build_server_link(1),
                },
            },
            "400": build_invalid_request_response(invalid),
            **refer_to_errors(),
        },
    }


def _build_server_link(position: int) -> Json:
    """Return the link from one result of a comparison to Get Server."""
    return {
        "operationId": "getServer",
        "parameters": {"identifier": f"$response.body#/data/{position}/serverId", "by": "id"},
        "description": f"The details of the server in `data[{position}]`.",
    }


def _build_get_health() -> Json:
    shown = {"demo": build_example("The demo snapshot", examples.HEALTH)}
    return {
        "tags": ["Health"],
        "summary": "Health check",
        "description": texts.HEALTH,
        "operationId": "getHealth",
        "security": [],
        "responses": {
            "200": build_response(
                "The service is running.", refer_to_model(HealthResponse), shown, is_counted=False
            ),
            **refer_to_check_errors(),
        },
    }


def _build_get_readiness() -> Json:
    shown = {"demo": build_example("The demo snapshot", examples.HEALTH)}
    refused = {"unavailable": build_example("Not ready", examples.UNAVAILABLE)}
    return {
        "tags": ["Health"],
        "summary": "Readiness check",
        "description": texts.READINESS,
        "operationId": "getReadiness",
        "security": [],
        "responses": {
            "200": build_response(
                "The service can answer.", refer_to_model(HealthResponse), shown, is_counted=False
            ),
            **refer_to_check_errors(),
            "503": build_response(
                "The service is not ready.",
                refer_to_model(UnavailableResponse),
                refused,
                is_counted=False,
            ),
        },
    }


def _build_head(get: Json, operation_id: str) -> Json:
    """Return the HEAD operation of a GET operation."""
    return {
        **get,
        "summary": f"{get['summary']}, headers only",
        "description": "Returns the status and headers of the GET response, without a body.",
        "operationId": operation_id,
        "responses": remove_bodies(get["responses"]),
    }
