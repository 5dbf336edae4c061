"""Open a session whose driver is a Java process of our own."""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Timer
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from srvstat.contract.errors import EngineError
from srvstat.fleet.spark.failures import explain_failure, is_failure_of_spark
from srvstat.fleet.spark.gateway import open_gateway

_START_SECONDS = 600.0
"""How long a cluster may take to accept an application. A queue of YARN can be long."""

_MASTER_SECONDS = 30.0
"""How long a standalone master may take, which has no queue. Spark itself would wait for 60 s."""

_LOG_BYTES = 4096

_LOCAL_SETTINGS: Mapping[str, str] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
"""The settings of a session whose processes all run on this machine."""


@contextmanager
def open_classic(master: str, settings: Mapping[str, str], log_path: str) -> Iterator[SparkSession]:
    """Start a session on a master in a new Java process, which ends with the block.

    What Java prints goes to the log. Raises EngineError if Spark can't start, and instead of the
    errors of PySpark in the block.
    """
    local = _LOCAL_SETTINGS if master.startswith("local") else {}
    opened = open_gateway({**local, **settings, "spark.master": master}, log_path)
    with _explain_failures(log_path), opened as gateway:
        try:
            # PySpark asks Java for the message of an error, so Java still has to run.
            with _explain_failures(log_path):
                session = _start_session(gateway, master)
                yield session
                session.stop()
                gateway.shutdown()
        finally:
            _forget_session()


@contextmanager
def _explain_failures(log_path: str) -> Iterator[None]:
    """Raise our errors instead of those of PySpark."""
    try:
        yield
    except Exception as error:
        if not is_failure_of_spark(error):
            raise
        raise explain_failure(error, lambda: _read_end(log_path)) from error


def _start_session(gateway: Any, master: str) -> SparkSession:
    """Start an application on a cluster.

    Raises EngineError if the cluster takes too long.
    """
    seconds = _MASTER_SECONDS if master.startswith("spark://") else _START_SECONDS
    deadline = Timer(seconds, gateway.proc.kill)
    deadline.daemon = True
    deadline.start()
    handler = signal.getsignal(signal.SIGINT)
    try:
        context = SparkContext(gateway=gateway)
    except Exception:
        if deadline.finished.is_set():
            raise EngineError(
                f"Spark at {master}: the job was not accepted within {seconds:.0f} seconds"
            ) from None
        raise
    finally:
        deadline.cancel()
        # PySpark installs a handler of its own.
        signal.signal(signal.SIGINT, handler)
    # Its thread would print that the connection ended, if Java ends before PySpark's context.
    context._accumulatorServer.handle_error = lambda *_: None  # noqa: SLF001 - no public way
    context.setLogLevel("ERROR")
    return SparkSession(context)


def _forget_session() -> None:
    """Make PySpark start a new Java process for the next session."""
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - PySpark has no public way
    SparkContext._active_spark_context = None  # noqa: SLF001 - see above
    SparkSession._instantiatedSession = None  # noqa: SLF001 - see above


def _read_end(path: str) -> str:
    """Return the end of the log, in which Java says why it ended."""
    with open(path, "rb") as log:
        log.seek(max(0, os.path.getsize(path) - _LOG_BYTES))
        return log.read().decode(errors="replace")
