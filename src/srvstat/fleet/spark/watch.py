"""Follow the tasks of a session: report their progress, and cancel a job that can't run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from srvstat.contract.errors import EngineError
from srvstat.fleet.counts import Progress

Report = Callable[[float, str], None]
"""Called with the share of the current stage that is done, and its tasks as text."""

IDLE_SECONDS = 300.0
"""How long tasks may wait for an executor. A cluster that adds machines needs some minutes."""

_INTERVAL = 0.5
_PATIENCE = 3
"""The seconds after which a progress bar shows that tasks wait; some wait between two stages."""


class Steps:
    """The current step of a job, and the callback for its progress."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._step = ""
        self.begin("starting")

    def begin(self, step: str) -> None:
        """End the current step, and begin the next one."""
        if self._step:
            self.report(1, "")
        self._step = step
        self.report(0, "")

    def report(self, share: float, detail: str) -> None:
        """Report the progress of the step."""
        self._progress(self._step, share, detail)


class Tasks(NamedTuple):
    """The numbers of tasks of the current stages."""

    stages: tuple[int, ...]
    total: int
    done: int
    running: int

    def describe(self, idle: float) -> str:
        """Describe the tasks, and the seconds for which none of them has run."""
        names = ", ".join(map(str, self.stages))
        waiting = f", waiting for an executor for {idle:.0f} s" if idle > _PATIENCE else ""
        return f"stage {names}: {self.done} of {self.total} tasks{waiting}"


@contextmanager
def watch_tasks(
    session: SparkSession, report: Report, idle_seconds: float = IDLE_SECONDS
) -> Iterator[None]:
    """Report the tasks of a session until the block ends.

    If tasks wait for an executor for too long, all jobs are cancelled, and the block raises
    EngineError.
    """
    is_connect = type(session).__module__.startswith("pyspark.sql.connect")
    ended, gave_up = Event(), Event()
    read = _follow_connect(session) if is_connect else _follow_classic(session)
    cancel = session.interruptAll if is_connect else session.sparkContext.cancelAllJobs

    def follow() -> None:
        since, before = monotonic(), None
        while not ended.wait(_INTERVAL):
            tasks = read()
            if tasks is None or tasks.running or tasks != before:
                since, before = monotonic(), tasks
            if tasks:
                report(tasks.done / tasks.total, tasks.describe(monotonic() - since))
            if monotonic() - since > idle_seconds:
                gave_up.set()
                cancel()
                return

    thread = Thread(target=_end_quietly, args=(follow,), daemon=True)
    thread.start()
    try:
        yield
    except Exception:
        if gave_up.is_set():
            raise EngineError(
                f"Spark: no executor ran a task for {idle_seconds:.0f} seconds; does the cluster"
                " have workers with enough free cores and memory?"
            ) from None
        raise
    finally:
        ended.set()
        thread.join(timeout=10 * _INTERVAL)


def _end_quietly(follow: Callable[[], None]) -> None:
    """Follow tasks until the session fails. The failure itself is raised in the main thread."""
    try:
        follow()
    except Exception:  # noqa: BLE001 - Py4J and gRPC raise many kinds for a connection that is lost
        return


def _follow_classic(session: SparkSession) -> Callable[[], Tasks | None]:
    tracker = session.sparkContext.statusTracker()

    def read() -> Tasks | None:
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage]
        return _add_up(
            [
                Tasks((one.stageId,), one.numTasks, one.numCompletedTasks, one.numActiveTasks)
                for one in known
            ]
        )

    return read


def _follow_connect(session: SparkSession) -> Callable[[], Tasks | None]:
    latest: list[Tasks | None] = [None]

    def keep(stages: Any, inflight_tasks: int, operation_id: str, done: bool) -> None:  # noqa: ARG001 - PySpark passes these names
        current = [
            Tasks((one.stage_id,), one.num_tasks, one.num_completed_tasks, 0)
            for one in stages
            if not one.done
        ]
        total = None if done else _add_up(current)
        latest[0] = total._replace(running=inflight_tasks) if total else None

    session.registerProgressHandler(keep)
    return lambda: latest[0]


def _add_up(stages: list[Tasks]) -> Tasks | None:
    if not sum(stage.total for stage in stages):
        return None
    numbers, total, done, running = zip(*stages, strict=True)
    return Tasks(sum(numbers, ()), sum(total), sum(done), sum(running))
