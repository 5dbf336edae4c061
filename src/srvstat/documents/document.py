"""The base model of all JSON documents, and parts that several documents share."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel

from srvstat.contract import wire
from srvstat.contract.time import LATEST, InstantError, format_instant, parse_instant
from srvstat.contract.windows import DAY_MS

WHOLE_SHARE = 0.9
"""The coverage below which a step is partial.

Players follow a daily cycle, so the average of a few hours does not represent a day.
"""

LEAST_COVERAGE = 0.8
"""The coverage below which windows are not compared, and have no trend."""

Instant = Annotated[int, PlainSerializer(format_instant, return_type=str)]
"""A time in Unix milliseconds. In JSON it is a UTC time, as in the API."""


def _parse_given(value: Any) -> Any:
    try:
        return parse_instant(str(value)) if type(value) in (int, str) else value
    except InstantError as error:
        raise ValueError(f": {error}") from None


GivenInstant = Annotated[Instant, BeforeValidator(_parse_given)]
"""A time in an input document, in any form that `parse_instant` accepts."""

_PARTS_PER_PIECE = 20
_COLOR_CODE = re.compile(r"\^[0-9]")


def name_member(name: str) -> str:
    """Return a field's name in JSON: in camel case, and `from` for `from_`."""
    return to_camel(name.rstrip("_"))


class Part(BaseModel):
    """A strict, frozen model. Its JSON has the fields in order, in camel case.

    Parts that a document contains by thousands are dataclasses instead, because creating a model
    takes ten times as long. They are not validated; their JSON and schema are the same as a
    model's.
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

    def __repr__(self) -> str:
        return f"<{_describe_window(self)}>"

    __str__ = __repr__


Members = Annotated[tuple[str, ...] | None, Field(exclude_if=lambda ids: ids is None)]
"""The ids of a total's servers. A single server omits it."""


class ServerPart(Part):
    """A server, by its identifiers and its name; or the total of `servers`, which has no id."""

    server_id: str | None
    cfx_id: str
    hostname: str
    servers: Members = None


class ServerName(NamedTuple):
    """The names of a server, or of the total of `servers`."""

    server_id: str | None
    cfx_id: str
    hostname: str
    servers: tuple[str, ...] | None = None


class GapPart(Part):
    """An interval without observations, between two observations or edges of the window."""

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
    """An average minus an earlier average, in players and in percent of the earlier average.

    `percentage` is None if the earlier average is 0.
    """

    players: float
    percentage: float | None


class Document(Part):
    """A part that commands print on its own.

    - `document`: the document's name.
    - `version`: the version of its fields. New fields do not change it.
    - `long_field`: the name of the field with most of the JSON, or None.
    """

    long_field: ClassVar[str | None] = None

    document: str
    version: Literal[1] = 1

    def __repr__(self) -> str:
        return f"<{describe(self)}>"

    __str__ = __repr__

    @classmethod
    def encode_schema(cls) -> bytes:
        """Return the JSON Schema (2020-12) of the document, as JSON without a newline."""
        schema: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
        return wire.encode(schema | cls.model_json_schema(mode="serialization"))

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
    """A document about a snapshot: its as-of time, and the snapshot's root."""

    as_of: Instant
    root: str


class CountsDocument(SnapshotDocument):
    """A document with statistics of counts. With `hold`, each count lasts until the next one.

    Averages, medians and quantiles are then weighted by time, and include a count held from before
    the window. `hold` is omitted if false.
    """

    hold: bool = Field(default=False, exclude_if=lambda held: not held)


def describe(document: Any) -> str:
    """Describe a document in one line: `Stats 7 days to 2026-03-01 12:00 UTC, 2 servers`."""
    window, as_of = (getattr(document, name, None) for name in ("window", "as_of"))
    name = type(document).__name__.removesuffix("Document")
    words = [f"{name} {_describe_window(window)}" if window else name]
    if as_of is not None and not window:
        words = [f"{name} of {_format_moment(as_of)}"]
    for field in ("servers", "events", "pairs"):
        if isinstance(parts := getattr(document, field, None), tuple):
            words.append(f"{len(parts):,} {field if len(parts) != 1 else field[:-1]}")
    return ", ".join(words)


def _describe_window(window: WindowPart) -> str:
    end = _format_moment(window.to)
    if window.from_ is None:
        return f"all observations to {end}"
    days, rest = divmod(window.to - window.from_, DAY_MS)
    if rest:
        return f"{_format_moment(window.from_)} to {end}"
    return f"{days:,} {'day' if days == 1 else 'days'} to {end}"


def _format_moment(at: int) -> str:
    # The inclusive end of whole days is their last millisecond.
    return f"{format_instant(min(at + 1, LATEST))[:16].replace('T', ' ')} UTC"


def is_silent(last_observed_at: int | None, as_of: int, *, hold: bool = False) -> bool:
    """Return whether a server has no observation in the last 24 hours of a snapshot.

    With `hold`, a server with any observation is not silent, because its last count remains valid.
    Callers do not show the current count of a silent server, because it is outdated.
    """
    return last_observed_at is None or (as_of - last_observed_at > DAY_MS and not hold)


def remove_color_codes(text: str) -> str:
    """Remove the color codes of Cfx.re, `^0` to `^9`, unless the text contains nothing else.

    Documents and responses contain the texts unchanged. web/timeline.js has the same function.
    """
    shown = _COLOR_CODE.sub("", text)
    return shown if shown.strip() else text
