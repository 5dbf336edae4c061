"""Write lines in a separate thread, so that a slow file or reader never delays an answer."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

_SECONDS_BETWEEN_WRITES = 0.05
"""Lines added within this time are written with one call."""

_MAX_BYTES_UNWRITTEN = 16 << 20
"""Further lines are dropped and counted."""


class LineWriter:
    """Collect lines in the event loop, and pass them to `write` in a thread of their own.

    `write` gets the lines, and the number of lines that were dropped. `on_written` is called in the
    event loop after each write, except the last one.
    """

    def __init__(
        self,
        name: str,
        write: Callable[[list[bytes], int], None],
        on_written: Callable[[], None] | None = None,
    ) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._write = write
        self._on_written = on_written
        self._lines: list[bytes] = []
        self._bytes_waiting = 0
        self._bytes_in_thread = 0
        self._dropped = 0
        self._timer: asyncio.TimerHandle | None = None
        self._writing: Future[None] | None = None

    def add(self, line: bytes) -> None:
        """Add a line, which ends with a newline."""
        if self._bytes_waiting + self._bytes_in_thread < _MAX_BYTES_UNWRITTEN:
            self._lines.append(line)
            self._bytes_waiting += len(line)
        else:
            self._dropped += 1
        if self._timer is None:
            self._start_timer()

    def close(self, seconds: float) -> None:
        """Write the remaining lines; give up after some seconds."""
        if self._timer is not None:
            self._timer.cancel()
        with suppress(TimeoutError):
            self._submit().result(timeout=seconds)

    def _start_timer(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(_SECONDS_BETWEEN_WRITES, self._start_writing)

    def _start_writing(self) -> None:
        self._timer = None
        if self._writing is not None and not self._writing.done():
            self._start_timer()
            return
        self._writing = self._submit()
        if self._on_written is not None:
            self._writing.add_done_callback(self._call_when_written(self._on_written))

    def _call_when_written(self, function: Callable[[], None]) -> Callable[[Future[None]], None]:
        """Return a function that the thread calls, and that calls another in the event loop."""
        loop = asyncio.get_running_loop()

        def call(_: Future[None]) -> None:
            with suppress(RuntimeError):  # the event loop has ended
                loop.call_soon_threadsafe(function)

        return call

    def _submit(self) -> Future[None]:
        lines, self._lines = self._lines, []
        dropped, self._dropped = self._dropped, 0
        self._bytes_in_thread, self._bytes_waiting = self._bytes_waiting, 0
        return self._thread.submit(self._write, lines, dropped)
