"""Start Spark's driver in a Java process of our own, and end it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Timer
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from srvstat.contract.errors import EngineError
from srvstat.fleet.spark.failures import explain_failure, is_failure_of_spark

_START_SECONDS = 600.0
"""How long a cluster may take to accept an application. A queue of YARN can be long."""

_MASTER_SECONDS = 30.0
"""How long a standalone master may take, which has no queue. Spark itself would wait for 60 s."""

_STOP_SECONDS = 15
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
    # The executors' Python must be that of the driver; another place on a cluster can be set.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # A file of settings can say otherwise. In local mode, it is the memory of the tasks, too.
    os.environ.setdefault("SPARK_DRIVER_MEMORY", "2g")
    local = _LOCAL_SETTINGS if master.startswith("local") else {}
    with open(log_path, "wb") as log:
        java: subprocess.Popen[bytes] | None = None
        try:
            gateway = _launch({**local, **settings, "spark.master": master}, log)
            java = gateway.proc
            session = _start_session(gateway, master)
            yield session
            session.stop()
            gateway.shutdown()
        except Exception as error:
            if not is_failure_of_spark(error):
                raise
            raise explain_failure(error, lambda: _read_end(log_path)) from error
        finally:
            # After an interruption, too: on SIGTERM, Java cancels the jobs and frees executors.
            _forget_session()
            if java:
                _end(java)


def _launch(settings: Mapping[str, str], log: Any) -> Any:
    """Start Java, and return its Py4J gateway."""
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    # In a session of its own, it gets no signal from the terminal. It ends when its stdin does.
    return launch_gateway(conf, {"stdout": log, "stderr": log, "start_new_session": True})


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


def _end(java: subprocess.Popen[bytes]) -> None:
    assert java.stdin  # noqa: S101 - PySpark opens a pipe
    with suppress(OSError):
        java.stdin.close()
    java.terminate()
    try:
        java.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        java.kill()
        java.wait()


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
