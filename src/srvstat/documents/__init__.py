"""Documents: the JSON output models of commands, one module per subject.

The JSON of a model is part of the interface. Dataclasses have no JSON; they hold the data of tables
and summaries.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from srvstat.documents.document import Document


def load_documents() -> "dict[str, type[Document]]":
    """Return the model of each document by name, ordered by name."""
    # Imported here, because most commands load at most one of these modules.
    from srvstat.documents import analysis, integrity, snapshot, support, today  # noqa: PLC0415
    from srvstat.documents.document import Document  # noqa: PLC0415

    models = {
        model.model_fields["document"].default: model
        for module in (analysis, integrity, snapshot, support, today)
        for model in vars(module).values()
        if isinstance(model, type) and issubclass(model, Document)
    }
    return {name: models[name] for name in sorted(name for name in models if isinstance(name, str))}
