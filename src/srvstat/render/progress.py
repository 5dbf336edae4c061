"""A progress bar on standard error, for builds that a person waits for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class _RowRate(ProgressColumn):
    """Rows a second since the start."""

    def render(self, task: Task) -> Text:
        rate = task.fields["rows"] / task.elapsed if task.elapsed else 0
        return Text(f"{rate:,.0f} rows/s")


@contextmanager
def progress_bar(total_bytes: int | None) -> Iterator[Callable[[int, int], None]]:
    """Show a bar while the block runs, and hand out what moves it by bytes and rows read.

    Without a total the bar says that work goes on, and how much is done. It is gone at the end.
    """
    columns = (
        TextColumn("reading"),
        BarColumn(),
        DownloadColumn(),
        _RowRate(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=total_bytes, rows=0)

        def advance(count: int, rows: int) -> None:
            done = progress.tasks[0].fields["rows"] + rows
            progress.update(task, advance=count, rows=done)

        yield advance
