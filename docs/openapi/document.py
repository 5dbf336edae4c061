"""Build the OpenAPI document and encode it as JSON."""

import json

from openapi import texts
from openapi.answers import ERRORS, HEADERS, Json, build_shared_responses
from openapi.paths import build_paths
from openapi.schemas import build_component_schemas
from srvstat.contract import CONTRACT_VERSION
from srvstat.contract.http import KEY_HEADER


def encode_openapi_document() -> bytes:
    """Return the document as indented JSON in UTF-8, ending with a newline."""
    return (json.dumps(build_openapi_document(), indent=2, ensure_ascii=False) + "\n").encode(
        "utf-8"
    )


def build_openapi_document() -> Json:
    """Return the OpenAPI 3.1 document of the service."""
    schemas = build_component_schemas()
    key = {"type": "apiKey", "in": "header", "name": KEY_HEADER, "description": texts.KEY}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Server Analytics Service",
            "version": CONTRACT_VERSION,
            "description": texts.describe_service(_build_error_table()),
            "contact": {"name": "The maintainers of srvstat"},
            "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [  # generated clients call the first one
            {
                "url": "http://127.0.0.1:8000",
                "description": "`srvstat serve` with default options.",
            },
            {"url": "/", "description": "The host that this document was loaded from."},
        ],
        "security": [{"GatewayKey": []}],
        "tags": [
            {"name": "Servers", "description": "Public discovery and current state."},
            {"name": "Comparison", "description": "Comparison of two to five public servers."},
            {"name": "Health", "description": "Not part of the contract."},
        ],
        "paths": build_paths(schemas),
        "components": {
            "schemas": schemas,
            "responses": build_shared_responses(),
            "headers": HEADERS,
            "securitySchemes": {"GatewayKey": key},
        },
    }


def _build_error_table() -> str:
    rows = [
        f"| {kind.code} | {kind.http_status} | {kind.message} | {texts.CONDITIONS[kind.code]} |\n"
        for kind in ERRORS
    ]
    return "".join(["| code | status | message | when |\n|---|---|---|---|\n", *rows])
