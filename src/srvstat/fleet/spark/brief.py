"""Call a function that may wait for a server that is gone."""

from collections.abc import Callable
from contextlib import suppress
from threading import Thread

_SECONDS = 10


def call_briefly(function: Callable[[], object]) -> None:
    """Call a function that cleans up; ignore a failure, and wait for some seconds at most."""

    def call() -> None:
        with suppress(Exception):
            function()

    thread = Thread(target=call, daemon=True)
    thread.start()
    thread.join(_SECONDS)
