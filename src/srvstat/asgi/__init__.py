"""Serve the API over HTTP: the settings of the service.

Starlette and uvicorn are optional. Only the other modules of this package import them, so that the
command line works without them.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

LogFormat = Literal["json", "text", "color"]
"""The format of the log. `color` is `text` with colored status codes."""

EVERY_ORIGIN = "*"
"""Wildcard: pages of any origin may call the API."""


class SimulationSettings(NamedTuple):
    """The failures to simulate, and the simulated time. All are off by default."""

    delay: tuple[float, float] | None = None
    """The shortest and the longest delay, in seconds, at most MAX_DELAY_SECONDS."""
    fail: float = 0
    """The share of requests that get a 500, from 0 to 1."""
    drop: float = 0
    """The share of requests whose connection is closed, from 0 to 1."""
    seed: int = 1
    allows_prefer: bool = False
    """Whether a request may choose its response with `Prefer: code=429`."""
    rules: str | None = None
    """The path of a rules file."""
    control: bool = False
    """Whether clients on this machine can read the requests and replace the rules."""
    at: tuple[int, float] | None = None
    """The simulated time in Unix milliseconds, and its speed relative to real time; 0 means fixed.
    None means the end of the snapshot.
    """


@dataclass(frozen=True, slots=True)
class Settings:
    """The files that a service serves, and its options."""

    snapshot: str
    """The path of the snapshot."""
    access: str | None = None
    """The path of the access file. None accepts every key."""
    record: str | None = None
    """The path of the recording."""
    explore: bool = False
    """Whether to serve the explore page."""
    cors: tuple[str, ...] = ()
    """The origins whose pages may call the API, as browsers send them, or EVERY_ORIGIN."""
    simulation: SimulationSettings = field(default_factory=SimulationSettings)
    explains_errors: bool = False
    """Whether responses include the reason of an error."""
    log_format: LogFormat = "json"
    """The format of the log."""
    hosts: tuple[str, ...] | None = ()
    """Host names to accept besides localhost and loopback addresses. Checked only without an access
    file. None accepts any name.
    """
