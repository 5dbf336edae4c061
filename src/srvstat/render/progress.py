"""Progress bars on standard error, for work that a person waits for."""

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, cast

from rich.console import Console
from rich.filesize import decimal
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

_GONE = (OSError, ValueError)
"""What writing raises once the terminal or, with ValueError, the stream itself is gone."""


class _LenientStderr(io.TextIOBase):
    """Standard error whose failures are ignored: a terminal may go away during a build."""

    def __init__(self) -> None:
        self._stream = sys.stderr

    @property
    def encoding(self) -> str:  # type: ignore[override] # typeshed has a variable, never set here
        return self._stream.encoding

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def write(self, text: str) -> int:
        with suppress(*_GONE):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(*_GONE):
            self._stream.flush()


class _Done(ProgressColumn):
    """How much is done: bytes of files read, or rows stored."""

    def render(self, task: Task) -> Text:
        if task.fields["unit"] == "rows":
            return Text(f"{task.completed:,.0f} rows")
        return Text(decimal(int(task.completed)))


class _RowRate(ProgressColumn):
    """Rows a second since the start."""

    def render(self, task: Task) -> Text:
        rate = task.fields["rows"] / task.elapsed if task.elapsed else 0
        return Text(f"{rate:,.0f} rows/s")


@contextmanager
def _bars() -> Iterator[Progress]:
    """Show bars while the block runs; an interruption may come even before the first frame."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        _Done(),
        _RowRate(),
        TimeRemainingColumn(),
    )
    console = Console(file=cast("IO[str]", _LenientStderr()))
    progress = Progress(*columns, console=console, transient=True)
    try:
        progress.start()
        yield progress
    finally:
        progress.console.show_cursor()
        # rich takes back even what it had not yet done when it was interrupted.
        with suppress(IndexError):
            progress.stop()


@contextmanager
def checking_bar() -> Iterator[Callable[[int, int], None]]:
    """Show a bar while the block runs, and hand out what moves it.

    That is told how many rows were just checked, and of how many.
    """
    with _bars() as progress:
        checking = progress.add_task("checking", total=None, rows=0, unit="rows")

        def advance(rows: int, total: int) -> None:
            done = progress.tasks[checking].fields["rows"] + rows
            progress.update(checking, total=total, advance=rows, rows=done)

        yield advance


@contextmanager
def progress_bar(total_bytes: int | None) -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar while the block runs, and hand out what moves it.

    That is told the step under way, reading or storing, and the bytes and rows just done. Without a
    total the bar of reading says that work goes on, and how much is done. All is gone at the end.
    """
    with _bars() as progress:
        reading = progress.add_task("reading", total=total_bytes, rows=0, unit="bytes")
        storing = progress.add_task("storing", visible=False, total=None, rows=0, unit="rows")

        def advance(step: str, count: int, rows: int) -> None:
            if step == "reading":
                done = progress.tasks[reading].fields["rows"] + rows
                progress.update(reading, advance=count, rows=done)
                return
            if progress.tasks[storing].total is None:
                progress.stop_task(reading)
                progress.reset(storing, visible=True, total=progress.tasks[reading].fields["rows"])
            done = progress.tasks[storing].fields["rows"] + rows
            progress.update(storing, advance=rows, rows=done)

        yield advance
