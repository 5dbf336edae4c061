"""A snapshot that is interrupted while SQLite works on it is not taken for a damaged one."""

import signal
from collections.abc import Iterator
from contextlib import closing
from types import FrameType

import pytest

from srvstat.snapshot.read.reader import SnapshotFile, open_file


class StoppedError(Exception):
    """What the signal raises, as the command line's handler raises SystemExit."""


def stop(_number: int, _frame: FrameType | None) -> None:
    raise StoppedError


def check_for_ever(snapshot: SnapshotFile) -> None:
    while True:
        assert snapshot.is_sound()


@pytest.fixture
def _stopped_soon() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.03)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("_stopped_soon")
def test_what_a_signal_raises_while_sqlite_works_gets_out(demo_snapshot: str) -> None:
    with closing(open_file(demo_snapshot)) as snapshot, pytest.raises(StoppedError):
        check_for_ever(snapshot)
