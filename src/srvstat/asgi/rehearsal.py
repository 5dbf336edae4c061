"""Rehearse failures: delay answers, fail, or drop connections, as drawn from a seed."""

from typing import TYPE_CHECKING

from srvstat.asgi.settings import RehearsalSettings

if TYPE_CHECKING:
    from srvstat.asgi.progress import Progress


class DroppedError(Exception):
    """The connection is closed in place of an answer."""


class Rehearsal:
    """Decides what happens to each request to an operation of the contract."""

    def __init__(self, settings: RehearsalSettings) -> None:
        self._settings = settings

    async def rehearse(self, progress: "Progress") -> None:
        """Delay a request, or end it with an error; mark it in the log and for the recorder.

        Raises ApiError for a rehearsed error, DroppedError to close the connection.
        """
        raise NotImplementedError
