"""List the documents by name, and describe them as JSON Schema."""

from collections.abc import Mapping
from typing import Any

from srvstat.contract import wire
from srvstat.documents import analysis, integrity, servers, snapshot, support
from srvstat.documents.document import Document

_MODELS = {
    model.model_fields["document"].default: model
    for module in (analysis, integrity, servers, snapshot, support)
    for model in vars(module).values()
    if isinstance(model, type) and issubclass(model, Document)
}
DOCUMENTS: Mapping[str, type[Document]] = {
    name: _MODELS[name] for name in sorted(name for name in _MODELS if isinstance(name, str))
}
"""The model of each document, by its name."""


def encode_schema(name: str) -> bytes:
    """Return the JSON Schema (2020-12) of a document, as JSON without a newline."""
    schema: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return wire.encode(schema | DOCUMENTS[name].model_json_schema(mode="serialization"))
