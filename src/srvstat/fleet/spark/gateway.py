"""Start the Java process of Spark's driver, and end it."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from pyspark.errors import PySparkRuntimeError
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway

from srvstat.contract.errors import EngineError

_STOP_SECONDS = 15
_INTERVAL = 0.1


@contextmanager
def open_gateway(settings: Mapping[str, str], log_path: str) -> Iterator[Any]:
    """Start Java with settings of Spark, and yield its Py4J gateway; `proc` is the process.

    The process ends with the block. What it prints goes to the log.

    PySpark's own function can't be interrupted: Java would then run forever.

    Raises EngineError if Spark is not installed, PySparkRuntimeError if Java ends.
    """
    place = f"{log_path}.gateway"
    java = _start(settings, log_path, place)
    try:
        while not os.path.exists(place):
            if java.poll() is not None:
                raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
            time.sleep(_INTERVAL)
        gateway = _connect(place)
        gateway.proc = java
        yield gateway
    finally:
        # After an interruption, too: on SIGTERM, Java cancels the jobs and frees executors.
        _end(java)


def _start(settings: Mapping[str, str], log_path: str, place: str) -> "subprocess.Popen[bytes]":
    """Start Java, which will write its port and secret to a file at a place."""
    program = os.path.join(_find_spark_home(), "bin", "spark-submit")
    options = [text for each in settings.items() for text in ("--conf", "=".join(each))]
    arguments = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    # PySpark reads it here, too. The executors' Python must be that of the driver; another place
    # on a cluster can be set.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    environment = {
        # A file of settings can say otherwise. In local mode, it is the memory of the tasks, too.
        "SPARK_DRIVER_MEMORY": "2g",
        **os.environ,
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": place,
    }
    try:
        with open(log_path, "wb") as log:
            # In a session of its own, it gets no signal from the terminal.
            return subprocess.Popen(  # noqa: S603 - the program of Spark
                [program, *options, *arguments],
                stdin=subprocess.PIPE,  # Java ends when this process does
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
    except OSError as error:
        raise EngineError(
            f"Spark: {program}: {error.strerror}; correct SPARK_HOME, or unset it"
        ) from None


def _connect(place: str) -> Any:
    """Return the gateway of a running Java process, as PySpark makes it."""
    with open(place, "rb") as file:
        port = int.from_bytes(file.read(4))
        size = int.from_bytes(file.read(4))
        secret = file.read(size).decode()
    os.environ.update(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret)
    try:
        return launch_gateway()
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]


def _end(java: "subprocess.Popen[bytes]") -> None:
    assert java.stdin  # noqa: S101 - it is a pipe
    with suppress(OSError):
        java.stdin.close()
    java.terminate()
    try:
        java.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        java.kill()
        java.wait()
