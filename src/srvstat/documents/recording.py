"""One line of a recording of the service: a request, and its answer."""

from typing import Literal

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
