"""Documents: what commands show besides the API's answers, one file for each subject.

The JSON of a model is part of the interface. A dataclass has no JSON; it holds what a table or a
summary shows.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from srvstat.documents.document import Document


def load_documents() -> "dict[str, type[Document]]":
    """Return the model of each document by its name, in the order of the names."""
    # Most commands load one of these modules, or none.
    from srvstat.documents import analysis, integrity, snapshot, support, today  # noqa: PLC0415
    from srvstat.documents.document import Document  # noqa: PLC0415

    models = {
        model.model_fields["document"].default: model
        for module in (analysis, integrity, snapshot, support, today)
        for model in vars(module).values()
        if isinstance(model, type) and issubclass(model, Document)
    }
    return {name: models[name] for name in sorted(name for name in models if isinstance(name, str))}
