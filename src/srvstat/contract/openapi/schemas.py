"""JSON Schemas of the models, the same with every pydantic."""

from collections.abc import Mapping
from typing import Any, get_args

from pydantic.json_schema import JsonSchemaMode, models_json_schema

from srvstat.contract.models import ContractModel
from srvstat.contract.openapi.texts import MODELS
from srvstat.contract.ranges import Range
from srvstat.contract.requests import NAMESPACES, CompareRequest
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

_CHOICES: Mapping[str, tuple[str, ...]] = {"Namespace": NAMESPACES, "Range": get_args(Range)}
"""Schemas of their own, so that a generated client has one type for all properties of a kind."""

_FORMATS = {"integer": "int64", "number": "double"}
"""What generated clients read numbers as; without it some take 32 bits."""

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
)
"""The keywords of a schema, in the order in which they are written."""


def reference(model: type[ContractModel]) -> dict[str, str]:
    """Return the schema that stands for a model's own."""
    return _named(model.__name__)


def _named(name: str) -> dict[str, str]:
    return {"$ref": f"{_PLACE}{name}"}


def component_schemas() -> dict[str, Any]:
    """Return the schemas that bodies and parameters are made of, by name.

    All properties of a response are required: none is ever left out.
    """
    _, written = models_json_schema(_WHOLE, ref_template=f"{_PLACE}{{model}}")
    schemas = {name: _described(name, schema) for name, schema in written["$defs"].items()}
    for name, choices in _CHOICES.items():
        description, _ = MODELS[name]
        schemas[name] = {"description": description, "type": "string", "enum": list(choices)}
    return dict(sorted(schemas.items()))


def _described(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    model, texts = MODELS[name]
    properties = {
        key: _ordered({**_plain(part), **({"description": texts[key]} if key in texts else {})})
        for key, part in schema["properties"].items()
    }
    return _ordered({**_plain(schema), "description": model, "properties": properties})


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without what only pydantic says, nullable types as one list of types.

    Defaults stay out: openapi-typescript makes a property with a default required, also in a
    request. The texts say them.
    """
    for name, choices in _CHOICES.items():
        if schema.get("enum") == list(choices):
            return _named(name)
    plain = {key: value for key, value in schema.items() if key not in {"title", "default"}}
    if alternatives := plain.pop("anyOf", None):
        plain["type"] = [alternative["type"] for alternative in alternatives]
    if "items" in plain:
        plain["items"] = _plain(plain["items"])
    types = plain["type"] if isinstance(plain.get("type"), list) else [plain.get("type")]
    for kind in _FORMATS.keys() & types:
        plain["format"] = _FORMATS[kind]
    return plain


def _ordered(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: schema[key] for key in sorted(schema, key=_KEYWORDS.index)}
