"""The OpenAPI document and its parts, as tests ask for them."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from srvstat.contract.openapi import read_openapi

DOCUMENT = json.loads(read_openapi())
SCHEMAS = DOCUMENT["components"]["schemas"]
METHODS = ("get", "head", "post")
OPERATIONS = {
    operation["operationId"]: operation
    for path in DOCUMENT["paths"].values()
    for method, operation in path.items()
    if method in METHODS
}


def resolved(part: Any) -> Any:
    """Return what a part of the document is, or refers to."""
    while "$ref" in part:
        place, *steps = part["$ref"].split("/")
        assert place == "#"
        part = DOCUMENT
        for step in steps:
            part = part[step]
    return part


def validator(schema: Any) -> jsonschema_rs.Draft202012Validator:
    """Return what judges values by a schema of the document."""
    whole = {"allOf": [schema], "components": DOCUMENT["components"]}
    return jsonschema_rs.Draft202012Validator(whole, validate_formats=True)


def parts(value: Any, path: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every object of a document, with its place."""
    if isinstance(value, dict):
        yield path, value
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(part, dict | list):
            yield from parts(part, f"{path}/{key}")
