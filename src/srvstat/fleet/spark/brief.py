"""Call a function that may wait for a server that is gone."""

from collections.abc import Callable
from contextlib import suppress
from threading import Thread

_SECONDS = 10


def call_briefly(function: Callable[[], object]) -> None:
    """Call a function that cleans up; ignore its failure, and leave it alone after some seconds."""

    def call() -> None:
        with suppress(Exception):
            function()

    thread = Thread(target=call, daemon=True)
    thread.start()
    thread.join(_SECONDS)
