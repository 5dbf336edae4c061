"""`schema`: the JSON Schema of a document."""

from typing import Annotated

import typer

from srvstat.cli.output import Outcome
from srvstat.contract import wire
from srvstat.contract.errors import UsageError
from srvstat.documents.schemas import DOCUMENTS, encode_schema


def _complete_name(incomplete: str) -> list[str]:
    return [name for name in DOCUMENTS if name.startswith(incomplete)]


NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help=f"A document: {', '.join(DOCUMENTS)}.",
        autocompletion=_complete_name,
    ),
]


def schema(name: NameArgument) -> Outcome:
    """Print the JSON Schema of a document.

    Documents are the JSON that commands print besides the API's answers.

    Example: srvstat schema replay
    """
    if name not in DOCUMENTS:
        raise UsageError(f"no document {wire.quote_value(name)}; choose {', '.join(DOCUMENTS)}")
    return Outcome([encode_schema(name) + b"\n"])
