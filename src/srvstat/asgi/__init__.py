"""Serve the API over HTTP: the settings of the service.

Starlette and uvicorn are optional. Only the other files of this package import them, so that a
command line without them works.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

LogFormat = Literal["json", "text", "color"]
"""`color` is text with a color for each class of status."""

EVERY_ORIGIN = "*"
"""In place of an origin: pages of every origin may call the API."""


class SimulationSettings(NamedTuple):
    """Which failures are simulated, and the time; all are off by default."""

    delay: tuple[float, float] | None = None
    """The shortest and the longest delay, in seconds, at most MAX_DELAY_SECONDS."""
    fail: float = 0
    """The share of requests that get a 500, from 0 to 1."""
    drop: float = 0
    """The share of requests whose connection is closed, from 0 to 1."""
    seed: int = 1
    allows_prefer: bool = False
    """Whether a request may select its answer by `Prefer: code=429`."""
    rules: str | None = None
    """Path of a file of rules."""
    control: bool = False
    """Whether a client on this machine can read the requests and replace the rules."""
    at: tuple[int, float] | None = None
    """The instant that answers speak for, in Unix milliseconds, instead of the end of the snapshot,
    and how much faster than real time it moves on; at 0 it stays."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a service serves, and with which options."""

    snapshot: str
    """Path of the snapshot."""
    access: str | None = None
    """Path of the access file; None accepts every key."""
    record: str | None = None
    """Path of the recording."""
    explore: bool = False
    """Whether there is an explore page."""
    cors: tuple[str, ...] = ()
    """Origins whose pages may call the API, as browsers send them, or EVERY_ORIGIN."""
    simulation: SimulationSettings = field(default_factory=SimulationSettings)
    explains_errors: bool = False
    """Whether answers have the reason of an error."""
    log_format: LogFormat = "json"
    """How a request is logged: as JSON, or as a short line for a person."""
    hosts: tuple[str, ...] | None = ()
    """Names that a request may call this machine, besides localhost and its addresses, where every
    key is valid; None for any."""
