"""Build the JSON Schemas of the models, identical for all versions of pydantic."""

from collections.abc import Mapping
from typing import Any, get_args

from pydantic.json_schema import JsonSchemaMode, models_json_schema

from openapi.texts import MODELS
from srvstat.contract.models import ContractModel
from srvstat.contract.ranges import Range
from srvstat.contract.requests import NAMESPACES, CompareRequest
from srvstat.contract.responses import (
    CompareResponse,
    ErrorResponse,
    HealthResponse,
    ServerResponse,
    UnavailableResponse,
)

_SCHEMAS = "#/components/schemas/"

_BODIES: list[tuple[type[ContractModel], JsonSchemaMode]] = [
    (CompareRequest, "validation"),
    (CompareResponse, "serialization"),
    (ServerResponse, "serialization"),
    (HealthResponse, "serialization"),
    (UnavailableResponse, "serialization"),
    (ErrorResponse, "serialization"),
]

_CHOICES: Mapping[str, tuple[str, ...]] = {"Namespace": NAMESPACES, "Range": get_args(Range)}
"""Enumerations that get a named schema, so that a generated client has one type for each."""

_FORMATS = {"integer": "int64", "number": "double"}
"""The formats of number types. Without them, some generators use 32 bits."""

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
"""The keywords of a schema, in the order of the document."""


def refer_to_model(model: type[ContractModel]) -> dict[str, str]:
    """Return a reference to the schema of a model."""
    return _refer_to_schema(model.__name__)


def _refer_to_schema(name: str) -> dict[str, str]:
    return {"$ref": f"{_SCHEMAS}{name}"}


def build_component_schemas() -> dict[str, Any]:
    """Return the schemas of bodies and parameters, by name.

    All properties of a response are required, because answers always have all of them.
    """
    _, generated = models_json_schema(_BODIES, ref_template=f"{_SCHEMAS}{{model}}")
    schemas = {name: _describe_model(name, schema) for name, schema in generated["$defs"].items()}
    for name, choices in _CHOICES.items():
        description, _ = MODELS[name]
        schemas[name] = {"description": description, "type": "string", "enum": list(choices)}
    return dict(sorted(schemas.items()))


def _describe_model(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    model, texts = MODELS[name]
    properties = {
        key: _sort_keywords(
            {**_simplify(part), **({"description": texts[key]} if key in texts else {})}
        )
        for key, part in schema["properties"].items()
    }
    return _sort_keywords({**_simplify(schema), "description": model, "properties": properties})


def _simplify(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Remove titles and defaults from a schema of pydantic, and write nullable types as lists.

    Defaults are in the descriptions instead: openapi-typescript requires a property that has a
    default, even in a request.
    """
    for name, choices in _CHOICES.items():
        if schema.get("enum") == list(choices):
            return _refer_to_schema(name)
    plain = {key: value for key, value in schema.items() if key not in {"title", "default"}}
    if alternatives := plain.pop("anyOf", None):
        plain["type"] = [alternative["type"] for alternative in alternatives]
    if "items" in plain:
        plain["items"] = _simplify(plain["items"])
    types = plain["type"] if isinstance(plain.get("type"), list) else [plain.get("type")]
    for kind in _FORMATS.keys() & types:
        plain["format"] = _FORMATS[kind]
    return plain


def _sort_keywords(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: schema[key] for key in sorted(schema, key=_KEYWORDS.index)}
