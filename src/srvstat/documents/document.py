"""The model that all JSON documents extend, and the parts that several have."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, PlainSerializer
from pydantic.alias_generators import to_camel

from srvstat.contract import wire
from srvstat.contract.instants import format_instant

WHOLE_SHARE = 0.9
"""A step of which observations cover a lesser share is partial: its average may mislead."""

LEAST_COVERAGE = 0.8
"""Windows of which observations cover a lesser share are not compared, and have no trend."""

Instant = Annotated[int, PlainSerializer(format_instant, return_type=str)]
"""An instant in Unix milliseconds. In JSON it is a UTC time, as in the API."""

_PARTS_PER_PIECE = 20
_COLOR_CODE = re.compile(r"\^[0-9]")


def name_member(name: str) -> str:
    """Return the name that a field has in JSON: in camel case, `from` for `from_`."""
    return to_camel(name.rstrip("_"))


class Part(BaseModel):
    """A strict, frozen model. Its JSON has the fields in their order, in camel case.

    A part of which a document has thousands is a dataclass instead, because a model takes ten times
    as long to create. It is not validated; its JSON and its schema are those of a model.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        defer_build=True,
        alias_generator=name_member,
        validate_by_name=True,
        validate_by_alias=False,
        serialize_by_alias=True,
    )


class WindowPart(Part):
    """The interval `(from, to]`. `from` is None if all observations up to `to` count."""

    from_: Instant | None
    to: Instant


class ServerPart(Part):
    """A server, by its identifiers and its name."""

    server_id: str
    cfx_id: str
    hostname: str


class GapPart(Part):
    """An interval without observations: from one observation or edge of the window to the next.

    In a timeline, it consists of the whole steps between them, up to `as_of`.
    """

    from_: Instant
    to: Instant


@dataclass(frozen=True, slots=True)
class GrowthPart:
    """The last observation minus the first, in players and in percent of the first, as in the API.

    Both are None for fewer than two observations; `percentage` also if the first count is 0.
    """

    players: int | None
    percentage: float | None


@dataclass(frozen=True, slots=True)
class ChangePart:
    """An average minus an earlier one, in players and in percent of the earlier one.

    `percentage` is None if the earlier average is 0.
    """

    players: float
    percentage: float | None


class Document(Part):
    """A part that is printed on its own.

    `document` is its name, which each document defines, and `version` the version of its fields. A
    field can be added without a new version. `long_field` names the field that has most of the
    JSON, if one has.
    """

    long_field: ClassVar[str | None] = None

    document: str
    version: Literal[1] = 1

    def to_json(self) -> bytes:
        """Return the document as JSON, without a newline."""
        return b"".join(self.iter_json())

    def iter_json(self) -> Iterator[bytes]:
        """Yield the document as JSON in pieces, without a newline."""
        name = self.long_field
        if name is None:
            yield wire.encode(self.model_dump())
            return
        others = self.model_copy(update={name: ()}).model_dump()
        array = f'"{name}":['.encode()
        head, _, tail = wire.encode(others).partition(array + b"]")
        yield head + array
        parts = getattr(self, name)
        for at in range(0, len(parts), _PARTS_PER_PIECE):
            piece = self.model_copy(update={name: parts[at : at + _PARTS_PER_PIECE]})
            yield (b"," if at else b"") + wire.encode(piece.model_dump(include={name})[name])[1:-1]
        yield b"]" + tail


class SnapshotDocument(Document):
    """A document about a snapshot: the instant that it speaks for, and the snapshot's root."""

    as_of: Instant
    root: str


def remove_color_codes(text: str) -> str:
    """Return a text without the color codes of Cfx.re, `^0` to `^9`, unless nothing else is in it.

    Documents and answers have the texts unchanged. web/timeline.js has the same function.
    """
    if "^" not in text:
        return text
    shown = _COLOR_CODE.sub("", text)
    return shown if shown.strip() else text
