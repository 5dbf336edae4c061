"""The operations, each with what it takes and what it answers."""

from collections.abc import Mapping
from typing import Any

from srvstat.contract.openapi import examples, texts
from srvstat.contract.openapi.answers import (
    JSON,
    Json,
    answer,
    example,
    health_refusals,
    invalid,
    refusals,
    without_bodies,
)
from srvstat.contract.openapi.schemas import reference
from srvstat.contract.requests import NAMESPACES, CompareRequest
from srvstat.contract.responses import CompareResponse, HealthResponse, ServerResponse


def paths(schemas: Mapping[str, Any]) -> Json:
    """Return the paths of the service; the parameters are made of the schemas of the models."""
    return {
        "/gateway/v1/servers/{identifier}": {
            "parameters": _server_parameters(schemas["ServerReference"]["properties"]),
            "get": _get_server(),
            "head": _head(_get_server(), "headServer"),
        },
        "/gateway/v1/compare": {"post": _compare_servers()},
        "/healthz": {"get": _get_health(), "head": _head(_get_health(), "headHealth")},
    }


def _server_parameters(properties: Mapping[str, Json]) -> list[Json]:
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


def _get_server() -> Json:
    asked = {
        name: (summary, f"Asked: `GET {target}`")
        for name, (summary, target) in examples.INVALID_SERVER_TARGETS.items()
    }
    found = {"demo": example("A server of the demo", examples.SERVER)}
    return {
        "tags": ["Servers"],
        "summary": "Get Server",
        "description": texts.GET_SERVER,
        "operationId": "getServer",
        "responses": {
            "200": answer("The server's detail.", reference(ServerResponse), found),
            "400": invalid(asked),
            **refusals(),
        },
    }


def _compare_servers() -> Json:
    comparisons = examples.COMPARISONS.items()
    requests = {name: example(shown.summary, shown.request) for name, shown in comparisons}
    answers = {name: example(shown.summary, shown.answer) for name, shown in comparisons}
    sent = {
        name: (summary, f"Sent: `{body}`")
        for name, (summary, body) in examples.INVALID_COMPARISONS.items()
    }
    return {
        "tags": ["Comparison"],
        "summary": "Compare Servers",
        "description": texts.COMPARE_SERVERS,
        "operationId": "compareServers",
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": reference(CompareRequest), "examples": requests}},
        },
        "responses": {
            "200": {
                **answer("One result for each server.", reference(CompareResponse), answers),
                # Every comparison has two results; a link can't stand for each of some.
                "links": {"firstServer": _link_to_server(0), "secondServer": _link_to_server(1)},
            },
            "400": invalid(sent),
            **refusals(),
        },
    }


def _link_to_server(position: int) -> Json:
    """Return the link from a result of a comparison to its server's detail."""
    return {
        "operationId": "getServer",
        "parameters": {"identifier": f"$response.body#/data/{position}/serverId", "by": "id"},
        "description": f"The detail of the server of `data[{position}]`.",
    }


def _get_health() -> Json:
    shown = {"demo": example("The demo's snapshot", examples.HEALTH)}
    return {
        "tags": ["Health"],
        "summary": "Health",
        "description": texts.HEALTH,
        "operationId": "getHealth",
        "security": [],
        "responses": {
            "200": answer("The service answers.", reference(HealthResponse), shown),
            **health_refusals(),
        },
    }


def _head(get: Json, operation_id: str) -> Json:
    """Return the HEAD of what is got: the same, but that no answer has a body."""
    return {
        **get,
        "summary": f"{get['summary']}, without a body",
        "description": "The status and the headers that GET has.",
        "operationId": operation_id,
        "responses": without_bodies(get["responses"]),
    }
