"""What a recording holds: requests, and the responses that a client received."""

from dataclasses import dataclass, field

from srvstat.contract.http import Head

STATUSES = range(100, 600)
NOT_A_STATUS = "must be from 100 to 599"


@dataclass(frozen=True, slots=True)
class RecordedResponse:
    """A response. `body` is None if it was not recorded."""

    status: int
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and, if it was recorded, its response. Instants are Unix milliseconds.

    `head` and `body` are as sent, so the head may hold a key: never print or store it. `host` is
    that of the URL, or "" if only a path was recorded.
    `is_from_service` means that srvstat's service recorded the exchange; then `plan` is that of the
    caller, or None without one, and the head has no key.
    """

    place: str
    head: Head = field(repr=False)
    body: bytes = field(repr=False)
    host: str = ""
    requested_at: int | None = None
    response: RecordedResponse | None = None
    is_from_service: bool = False
    plan: str | None = None
    as_of: int | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A part of a recording that can't be read."""

    place: str
    reason: str
