"""The model that all JSON documents extend, and their type of instants."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Protocol

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PlainSerializer,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, core_schema

from srvstat.contract import wire
from srvstat.contract.instants import format_instant

WHOLE_SHARE = 0.9
"""A step of which observations cover a lesser share is partial: its average may mislead."""

LEAST_COVERAGE = 0.8
"""Windows of which observations cover a lesser share are not compared, and have no trend."""

Instant = Annotated[int, PlainSerializer(format_instant, return_type=str)]
"""An instant in Unix milliseconds. In JSON it is a UTC time, as in the API."""


class Part(BaseModel):
    """A strict, frozen model. Its JSON has the fields in their order, in camel case."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        defer_build=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=False,
        serialize_by_alias=True,
    )


class SmallPart(Protocol):
    """A named tuple in place of a part, of which a document has thousands."""

    def to_members(self) -> dict[str, Any]:
        """Return the members of its JSON."""


class SmallParts:
    """Annotates a field of small parts, which take less time and memory than models.

    They are not validated. Their JSON Schema is that of a sequence of `part`.
    """

    def __init__(self, part: type[Part]) -> None:
        self._part = part

    def __get_pydantic_core_schema__(
        self, _source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(
            lambda parts, _validate: parts,
            core_schema.list_schema(handler.generate_schema(self._part)),
            serialization=core_schema.plain_serializer_function_ser_schema(_list_members),
        )


def _list_members(parts: Iterable[SmallPart]) -> list[dict[str, Any]]:
    return [part.to_members() for part in parts]


class WindowPart(Part):
    """The interval `(from, to]`. `from` is None if all observations up to `to` count."""

    from_: Annotated[Instant | None, Field(serialization_alias="from")]
    to: Instant


class GapPart(Part):
    """An interval without observations: from one observation or edge of the window to the next.

    In a timeline, it consists of the whole steps between them, up to `as_of`.
    """

    from_: Annotated[Instant, Field(serialization_alias="from")]
    to: Instant


class GrowthPart(Part):
    """The last observation minus the first, in players and in percent of the first, as in the API.

    Both are None for fewer than two observations; `percentage` also if the first count is 0.
    """

    players: int | None
    percentage: float | None


class ChangePart(Part):
    """An average minus an earlier one, in players and in percent of the earlier one.

    `percentage` is None if the earlier average is 0.
    """

    players: float
    percentage: float | None


class Document(Part):
    """A part that is printed on its own.

    `document` is its name, and `version` the version of its fields: both have a default in each
    document. A field can be added without a new version.
    """

    document: str
    version: int

    def to_json(self) -> bytes:
        """Return the document as JSON, without a newline."""
        return wire.encode(self.model_dump())

    def _iter_json_with(self, name: str) -> Iterator[bytes]:
        """Yield the document as JSON in pieces, one for each part in its last field, `name`."""
        yield wire.encode(self.model_dump(exclude={name})).removesuffix(b"}")
        start = f',"{name}":['.encode()
        for part in getattr(self, name):
            yield start + wire.encode(part.model_dump())
            start = b","
        yield b"]}" if start == b"," else start + b"]}"


class SnapshotDocument(Document):
    """A document about a snapshot: the instant that it speaks for, and the snapshot's root."""

    as_of: Instant
    root: str
