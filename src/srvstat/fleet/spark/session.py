"""Start a Spark session, and stop it with its Java process."""

import os
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from srvstat.contract.errors import EngineError, MissingLibraryError
from srvstat.fleet.spark.java import check_java
from srvstat.fleet.spark.package import zip_package

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INSTALL_SPARK = "run pip install 'srvstat[spark]'"

_LOG_NAME = "java.log"
_LOG_LINES = 5

_SETTINGS: Mapping[str, str] = {
    "spark.app.name": "srvstat fleet",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

_LOCAL_SETTINGS: Mapping[str, str] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",  # in local mode, it is the memory of the tasks, too
}
"""The settings of a session whose processes all run on this machine."""


@contextmanager
def open_session(
    master: str, settings: Mapping[str, str] | None = None
) -> Iterator["SparkSession"]:
    """Start a session on a master, such as `local[*]` or `spark://HOST:PORT`.

    Executors import srvstat from a copy that the session sends to them. `settings` are settings of
    Spark in addition to ours. What Java prints goes to a file, which is removed at the end.

    Raises MissingLibraryError without PySpark or Java, EngineError if Spark can't start.
    """
    with hide_warnings(), tempfile.TemporaryDirectory(prefix="srvstat-spark-") as folder:
        check_library()
        check_java()
        session = _start(master, settings or {}, os.path.join(folder, _LOG_NAME))
        try:
            session.addArtifacts(zip_package(folder), pyfile=True)
            yield session
        finally:
            _stop(session)


@contextmanager
def hide_warnings() -> Iterator[None]:
    """Hide the warning of PySpark that it may not support pandas 3, of which we use nothing."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully", FutureWarning)
        yield


def check_library() -> None:
    """Import PySpark.

    Raises MissingLibraryError.
    """
    try:
        import pyspark.sql.pandas.utils as pandas  # noqa: PLC0415 - for this check

        pandas.require_minimum_pandas_version()
    except ImportError as error:
        reason = " ".join(str(error).split())
        raise MissingLibraryError(f"Spark: {reason}; {INSTALL_SPARK}") from None


def _start(master: str, settings: Mapping[str, str], log_path: str) -> "SparkSession":
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - PySpark is an extra
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 - see above
    from pyspark.sql import SparkSession  # noqa: PLC0415 - see above

    # The executors' Python must be that of the driver; another place on a cluster can be set.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    local = _LOCAL_SETTINGS if master.startswith("local") else {}
    every = {**_SETTINGS, **local, **settings, "spark.master": master}
    conf = SparkConf(loadDefaults=False).setAll(list(every.items()))
    with open(log_path, "wb") as log:
        try:
            gateway = launch_gateway(conf, {"stdout": log, "stderr": log})
            context = SparkContext(conf=conf, gateway=gateway)
        except Exception as error:  # Py4J and PySpark have no common class of errors
            raise EngineError(f"Spark can't start: {_read_last_lines(log_path)}") from error
    context.setLogLevel("ERROR")
    return SparkSession(context)


def _read_last_lines(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as log:
        return " | ".join(line.strip() for line in log.readlines()[-_LOG_LINES:])


def _stop(session: "SparkSession") -> None:
    from pyspark import SparkContext  # noqa: PLC0415 - see above

    session.stop()
    gateway = SparkContext._gateway  # noqa: SLF001 - PySpark has no public way to end its Java
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - see above
