"""Show progress bars on standard error."""

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rich import progress
from rich.console import Console
from rich.filesize import decimal
from rich.text import Text

from srvstat.render.text import escape_text

_MAX_DETAIL = 40


class _LenientStderr(io.FileIO):
    """Standard error that ignores write failures, because a terminal may close during a build."""

    def write(self, data: Any) -> int:
        with suppress(OSError):
            super().write(data)
        return len(data)


class _Completed(progress.ProgressColumn):
    """The bytes read or the rows stored."""

    def render(self, task: progress.Task) -> Text:
        if task.fields["unit"] == "rows":
            return Text(f"{task.completed:,.0f} rows")
        return Text(decimal(int(task.completed)))


class _RowRate(progress.ProgressColumn):
    """Rows per second since the start."""

    def render(self, task: progress.Task) -> Text:
        rate = task.fields["rows"] / task.elapsed if task.elapsed else 0
        return Text(f"{rate:,.0f} rows/s")


@contextmanager
def _show_bars(*columns: progress.ProgressColumn) -> Iterator[progress.Progress]:
    """Show bars with the given columns during the block, and always restore the cursor."""
    stderr = _LenientStderr(2, "w", closefd=False)
    file = io.TextIOWrapper(stderr, sys.stderr.encoding, "backslashreplace", write_through=True)
    console = Console(file=file)
    name = progress.TextColumn("{task.description}", markup=False)
    bars = progress.Progress(name, progress.BarColumn(), *columns, console=console, transient=True)
    try:
        bars.start()
        yield bars
    finally:
        bars.console.show_cursor()
        # If starting was interrupted, Rich fails to undo steps that it has not taken.
        with suppress(IndexError):
            bars.stop()


def _advance(bars: progress.Progress, task: progress.TaskID, count: int, rows: int) -> None:
    """Advance a bar by `count` of its unit, and its rate by `rows`."""
    bars.update(task, advance=count, rows=bars.tasks[task].fields["rows"] + rows)


@contextmanager
def show_rows_progress() -> Iterator[Callable[[int, int], None]]:
    """Show a bar for verification during the block.

    Yields a callback that takes the number of rows just done and the total number of rows.
    """
    with _show_bars(_Completed(), _RowRate(), progress.TimeRemainingColumn()) as bars:
        task = bars.add_task("verifying", total=None, rows=0, unit="rows")

        def advance(rows: int, total: int) -> None:
            bars.update(task, total=total)
            _advance(bars, task, rows, rows)

        yield advance


@contextmanager
def show_build_progress(total_bytes: int | None) -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar for reading, then one for storing, during the block.

    Yields a callback that takes the step, `reading` or `storing`, and the numbers of bytes and rows
    just done. Without `total_bytes`, the first bar has no end. The bars disappear afterwards.
    """
    with _show_bars(_Completed(), _RowRate(), progress.TimeRemainingColumn()) as bars:
        reading = bars.add_task("reading", total=total_bytes, rows=0, unit="bytes")
        storing = bars.add_task("storing", visible=False, total=None, rows=0, unit="rows")

        def advance(step: str, count: int, rows: int) -> None:
            if step == "reading":
                _advance(bars, reading, count, rows)
                return
            if bars.tasks[storing].total is None:
                bars.stop_task(reading)
                bars.reset(storing, visible=True, total=bars.tasks[reading].fields["rows"])
            _advance(bars, storing, rows, rows)

        yield advance


@contextmanager
def show_step_progress() -> Iterator[Callable[[str, float, str], None]]:
    """Show a bar for each step of a job during the block.

    Yields a callback that takes the name of a step, the share done, and a detail. It is
    thread-safe. The bars disappear afterwards.
    """
    with _show_bars(
        progress.TaskProgressColumn(),
        progress.TextColumn("{task.fields[detail]}", markup=False),
        progress.TimeElapsedColumn(),
    ) as bars:
        steps: dict[str, progress.TaskID] = {}

        def advance(step: str, share: float, detail: str) -> None:
            detail = escape_text(detail, max_length=_MAX_DETAIL)
            if step not in steps:
                for earlier in steps.values():
                    bars.update(earlier, total=1, completed=1)
                    bars.stop_task(earlier)
                steps[step] = bars.add_task(step, total=None, detail=detail)
            # A bar without a total is animated, which shows that a step without a known share is
            # running.
            total = 1 if share > 0 else None
            bars.update(steps[step], total=total, completed=share, detail=detail)

        yield advance
