"""The OpenAPI document and its parts."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from srvstat.contract.http import read_openapi

DOCUMENT = json.loads(read_openapi())
SCHEMAS = DOCUMENT["components"]["schemas"]
METHODS = ("get", "head", "post")
OPERATIONS = {
    operation["operationId"]: operation
    for path in DOCUMENT["paths"].values()
    for method, operation in path.items()
    if method in METHODS
}


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
