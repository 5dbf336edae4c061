"""Do not report an interrupted statement as damage."""

import signal
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from types import FrameType

import pytest

from srvstat.snapshot.read.file import open_file


class StoppedError(Exception):
    """Like SystemExit of the command line's handler."""


def stop(_number: int, _frame: FrameType | None) -> None:
    raise StoppedError


@pytest.fixture
def _stop_soon() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.03)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("_stop_soon")
def test_an_exception_of_a_signal_handler_passes_through_sqlite(demo_snapshot: str) -> None:
    with closing(open_file(demo_snapshot)) as snapshot, pytest.raises(StoppedError):
        deque(iter(snapshot.connection.check_structure, "never"))
