"""Show the progress of a command that reads the observations of a snapshot."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from srvstat.cli.output import is_progress_shown
from srvstat.cli.signals import allow_cleanup


@contextmanager
def show_row_progress(step: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on a terminal while the block runs. An interrupted block can clean up."""
    if not is_progress_shown(quiet=quiet):
        with allow_cleanup():
            yield lambda _rows, _total: None
        return
    # Imported only for a bar: Rich takes 30 ms. Nothing may be imported after allow_cleanup.
    from srvstat.render.progress import show_rows_progress  # noqa: PLC0415

    with allow_cleanup(), show_rows_progress(step) as progress:
        yield progress
