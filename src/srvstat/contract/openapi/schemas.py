"""JSON Schemas of the models, the same with every pydantic."""

from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import JsonSchemaMode, models_json_schema

from srvstat.contract.models import ContractModel
from srvstat.contract.openapi.texts import MODELS
from srvstat.contract.requests import CompareRequest
from srvstat.contract.responses import (
    CompareResponse,
    ErrorResponse,
    HealthResponse,
    ServerResponse,
)

_PLACE = "#/components/schemas/"

_WHOLE: list[tuple[type[ContractModel], JsonSchemaMode]] = [
    (CompareRequest, "validation"),
    (CompareResponse, "serialization"),
    (ServerResponse, "serialization"),
    (HealthResponse, "serialization"),
    (ErrorResponse, "serialization"),
]

_KEYWORDS = (
    "$ref",
    "description",
    "type",
    "enum",
    "const",
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "items",
    "minItems",
    "maxItems",
    "uniqueItems",
    "additionalProperties",
    "required",
    "properties",
    "default",
)
"""The keywords of a schema, in the order in which they are written."""


def reference(model: type[ContractModel]) -> dict[str, str]:
    """Return the schema that stands for a model's own."""
    return {"$ref": f"{_PLACE}{model.__name__}"}


def component_schemas() -> dict[str, Any]:
    """Return the schemas of all models that a body is made of, by name.

    All properties of a response are required: none is ever left out.
    """
    _, written = models_json_schema(_WHOLE, ref_template=f"{_PLACE}{{model}}")
    return {name: _described(name, schema) for name, schema in sorted(written["$defs"].items())}


def _described(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    model, texts = MODELS[name]
    properties = {
        key: _ordered({**_plain(part), **({"description": texts[key]} if key in texts else {})})
        for key, part in schema["properties"].items()
    }
    return _ordered({**_plain(schema), "description": model, "properties": properties})


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without what only pydantic says, and with its nullable types in one word."""
    plain = {key: value for key, value in schema.items() if key != "title"}
    if plain.get("type") == "null":
        plain.pop("default", None)
    if choices := plain.pop("anyOf", None):
        plain["type"] = [choice["type"] for choice in choices]
    if "items" in plain:
        plain["items"] = _plain(plain["items"])
    if "const" in plain:
        plain.pop("default", None)
    return plain


def _ordered(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: schema[key] for key in sorted(schema, key=_KEYWORDS.index)}
