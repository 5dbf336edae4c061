"""Recorded exchanges, each compared with the answer that the snapshot gives."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from srvstat.contract import wire
from srvstat.documents.document import Instant, Part, SnapshotDocument
from srvstat.documents.explanation import Explanation

ExchangeClass = Literal[
    "match", "differs", "unrecorded", "foreign", "notReproducible", "unreadable"
]
DifferenceClass = Literal["value", "text", "current"]


class Difference(Part):
    """A difference between the recorded and the recomputed answer.

    `pointer` is a JSON Pointer (RFC 6901) into the body; `/status` names the status. `class` is
    `text` if both are the same JSON value in different text, and `current` for a current player
    count, which depends on the time of the capture. `absent_in` names the side without the value,
    which is None then.
    """

    pointer: str
    recorded: Any
    recomputed: Any
    class_: Annotated[DifferenceClass, Field(serialization_alias="class")]
    absent_in: Literal["recorded", "recomputed"] | None = None


class Answer(Part):
    """An answer of the API; a HEAD request has no body."""

    status: int
    body: Any


class ReferencedServers(Part):
    """The servers that a valid request names, such as `cfxId:abc123`, and the range it gets."""

    servers: tuple[str, ...]
    range: str | None


class Interval(Part):
    """Instants from `from` to `to`, both inclusive."""

    from_: Annotated[Instant, Field(serialization_alias="from")]
    to: Instant


class ServerIntervals(Part):
    """When the recorded result of one server was true."""

    server_id: str
    true_during: tuple[Interval, ...]


class ReplayedExchange(Part):
    """A recorded exchange and its result.

    `place` is its file and its line or entry. `path` is as sent, with its query; of a foreign
    request it is only the path, after the host if that was recorded. `request` is None for an
    invalid request, and for one that was not answered, as are `as_of` and `answer`. `reason` says
    why an exchange can't be read, reproduced or compared, or why the answer is an error.
    `searched`, `true_during` and `servers` are None unless a search was made; they list the
    instants tried, and when the whole answer and the result of each server were true. `explanation`
    is None unless asked for.
    """

    place: str
    method: str | None = None
    path: str | None = None
    requested_at: Instant | None = None
    as_of: Instant | None = None
    class_: Annotated[ExchangeClass, Field(serialization_alias="class")]
    reason: str | None = None
    request: ReferencedServers | None = None
    answer: Answer | None = None
    differences: tuple[Difference, ...] = ()
    searched: Interval | None = None
    true_during: tuple[Interval, ...] | None = None
    servers: tuple[ServerIntervals, ...] | None = None
    explanation: Explanation | None = None


class ReplayCounts(Part):
    """The number of exchanges of each class."""

    match: int = 0
    differs: int = 0
    unrecorded: int = 0
    foreign: int = 0
    not_reproducible: int = 0
    unreadable: int = 0


class Replay(SnapshotDocument):
    """All exchanges of the recordings, in their order. `as_of` is the snapshot's own."""

    document: Literal["replay"] = "replay"
    version: Literal[1] = 1
    exchanges: tuple[ReplayedExchange, ...]
    counts: ReplayCounts

    def iter_json(self) -> Iterator[bytes]:
        """Yield the document as JSON in pieces, without a newline."""
        members = self.model_dump(exclude={"exchanges"})
        counts = members.pop("counts")
        yield wire.encode(members).removesuffix(b"}") + b',"exchanges":['
        for number, exchange in enumerate(self.exchanges):
            yield (b"," if number else b"") + wire.encode(exchange.model_dump())
        yield b'],"counts":' + wire.encode(counts) + b"}"
