"""The model that all JSON documents extend, and their type of instants."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel

from srvstat.contract import wire
from srvstat.contract.instants import format_instant

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


class WindowPart(Part):
    """The interval `(from, to]`. `from` is None if all observations up to `to` count."""

    from_: Annotated[Instant | None, Field(serialization_alias="from")]
    to: Instant


class GrowthPart(Part):
    """The last observation minus the first, in players and in percent of the first, as in the API.

    Both are None for fewer than two observations; `percentage` also if the first count is 0.
    """

    players: int | None
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


class SnapshotDocument(Document):
    """A document about a snapshot: the instant that it speaks for, and the snapshot's root."""

    as_of: Instant
    root: str
