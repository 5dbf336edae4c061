"""The whole document."""

import json

from srvstat.contract import CONTRACT_VERSION
from srvstat.contract.openapi import texts
from srvstat.contract.openapi.answers import ERRORS, HEADERS, Json, shared_responses
from srvstat.contract.openapi.paths import paths
from srvstat.contract.openapi.schemas import component_schemas

KEY_HEADER = "X-Gateway-Key"


def openapi_json() -> bytes:
    """Return the document as indented JSON in UTF-8, with a newline at its end."""
    return (json.dumps(openapi_document(), indent=2, ensure_ascii=False) + "\n").encode("utf-8")


def openapi_document() -> Json:
    """Return the OpenAPI 3.1 document of the service."""
    schemas = component_schemas()
    key = {"type": "apiKey", "in": "header", "name": KEY_HEADER, "description": texts.KEY}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Server Analytics Service",
            "version": CONTRACT_VERSION,
            "description": texts.service(_error_table()),
            "contact": {"name": "The maintainers of srvstat"},
            "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [  # generated clients call the first
            {"url": "http://127.0.0.1:8000", "description": "`srvstat serve` with its defaults."},
            {"url": "/", "description": "The service that this document was read from."},
        ],
        "security": [{"GatewayKey": []}],
        "tags": [
            {"name": "Servers", "description": "Public discovery and current state."},
            {"name": "Comparison", "description": "Two to five public servers side by side."},
            {"name": "Health", "description": "Outside the contract."},
        ],
        "paths": paths(schemas),
        "components": {
            "schemas": schemas,
            "responses": shared_responses(),
            "headers": HEADERS,
            "securitySchemes": {"GatewayKey": key},
        },
    }


def _error_table() -> str:
    rows = [
        f"| {kind.code} | {kind.http_status} | {kind.message} | {texts.CONDITIONS[kind.code]} |\n"
        for kind in ERRORS
    ]
    return "".join(["| code | status | message | when |\n|---|---|---|---|\n", *rows])
