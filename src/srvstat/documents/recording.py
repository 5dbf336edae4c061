"""One line of a recording of the service: a request, and its answer."""

from typing import Literal

from pydantic import Field

from srvstat.documents.document import Instant, Part, SnapshotDocument


class StoredRequest(Part):
    """A request; `…` replaces each key in it.

    `path` is as sent and includes the query. `headers` are those that an answer depends on, with
    names in lower case. A body that is not UTF-8 is in `body_base64` instead of `body`. Both are
    None if the body is empty, or was not read because the request was refused before that.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: str | None
    body_base64: str | None


class StoredResponse(Part):
    """The answer. `body` is None for HEAD."""

    status: int
    body: str | None


class Recording(SnapshotDocument):
    """An exchange. `plan` is None if authentication failed, or without an access file.

    `as_of` and `root` are those of the snapshot that answered. `requested_at` is when the head of
    the request was received.
    """

    document: Literal["recording"] = "recording"
    version: Literal[1] = 1
    requested_at: Instant
    plan: str | None
    request: StoredRequest
    response: StoredResponse


class PlainRequest(Part):
    """A request that a person wrote."""

    method: str
    path: str
    headers: dict[str, str] = Field(default_factory=dict)
    body: str | None = None
    body_base64: str | None = None


class PlainResponse(Part):
    """A response that a person wrote; without `body`, only the status is known."""

    status: int
    body: str | None = None


class PlainExchange(Part):
    """An exchange that a person wrote: a line with less than the service records."""

    request: PlainRequest
    response: PlainResponse | None = None
    as_of: int | None = None
    requested_at: int | None = None
