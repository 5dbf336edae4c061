"""Find the cause of a failure of Spark, and say it in one line."""

import re
from collections.abc import Callable
from urllib.parse import unquote

from srvstat.contract import errors
from srvstat.contract.errors import EngineError, SourceError, SrvstatError

_LONGEST = 300

_SECRET = re.compile(r"\b([a-z][a-z0-9+.-]*://)[^\s@]*@", re.IGNORECASE)
"""What may be a password in a URL."""

_OURS = re.compile(r"srvstat\.contract\.errors\.(\w+): (.+)")
_FILE = re.compile(
    r"\[FAILED_READ_FILE\.(?P<kind>\w+)\] Encountered error while reading file (?P<path>.+?)\. "
    r"(?P<detail>.*)"
)
_NO_PATH = re.compile(r"\[PATH_NOT_FOUND\] Path does not exist: (.+?)\. SQLSTATE")
_MODULE = re.compile(r"No module named '([\w.]+)'")
_COLUMN = re.compile(r"column \[(.+)\]\. Expected Spark type (.+?), actual Parquet type (\w+)")
_CAUSE = re.compile(r"^(?:Caused by|): ?[\w.$]+(?:Exception|Error)\b:? ?(.*)$", re.MULTILINE)

_LOST = ("Py4JError", "Py4JNetworkError")
_PROBLEM = re.compile(
    r" ERROR |^error(?!: (?:could not create the java|a fatal))|invalid|^exception in thread",
    re.IGNORECASE,
)
"""A line of the log of Spark, or of a Java process that can't start, with a reason."""

_CAUSES = {
    r"No space left on device|Disk quota exceeded": (
        "a disk is full; free some, or set SPARK_LOCAL_DIRS to a larger one"
    ),
    r"OutOfMemoryError|MemoryError|exit(?:ed with)? (?:code|status) (?:52|137|143)|"
    r"running beyond physical memory|OOMKilled": (
        "out of memory; raise spark.executor.memory, or with a local master spark.driver.memory"
    ),
    r"Python worker exited unexpectedly": (
        "a Python worker was killed or crashed, perhaps for lack of memory outside of Java;"
        " raise spark.executor.memoryOverhead"
    ),
    r'Cannot run program "(?P<name>[^"]+)"': (
        "executors have no {name}; set PYSPARK_PYTHON to a Python of theirs that has pyarrow"
    ),
    r"PYTHON_VERSION_MISMATCH\].*?(?P<name>Python in worker.*?)[.,] PySpark": (
        "{name}; set PYSPARK_PYTHON to a Python of the same version"
    ),
    r'(?P<name>Class [\w.$]+FileSystem not found|No FileSystem for scheme "\w+")': (
        "{name}; add the library of this file system, such as with spark.jars.packages in"
        " spark-defaults.conf"
    ),
    r"All masters are unresponsive": "no master of the cluster answered within a minute",
    r"Cannot call methods on a stopped SparkContext|"
    r"SparkContext was shut down|Master removed our application": (
        "the cluster ended the application; see the log of its master"
    ),
    r"ExecutorLostFailure \((?P<name>executor [^ ]+) .*Reason: (?:.*)": (
        "{name} was lost too often; see its log"
    ),
}
"""Patterns of causes, the most specific first, and what to say."""


def is_failure_of_spark(error: Exception) -> bool:
    """Return whether PySpark or the connection to it raised an error; others are ours, or bugs."""
    library = type(error).__module__.split(".")[0]
    return library in {"grpc", "py4j", "pyspark"} or isinstance(error, ConnectionError)


def explain_failure(error: Exception, read_log: Callable[[], str]) -> SrvstatError:
    """Return our error for an exception of PySpark, Py4J or gRPC.

    `read_log` returns the end of the log of Spark's Java process, for failures in which it ended.
    """
    text = _SECRET.sub(r"\1", str(error))
    known = _find_our_error(text) or _find_file(text)
    if known:
        return known
    if not _is_connection_lost(error):
        return EngineError(f"Spark: {_find_cause(text) or _find_first_words(text)}")
    log = read_log()
    if reason := _find_cause(f"{text}\n{log}"):
        return EngineError(f"Spark: {reason}")
    lines = [line.strip() for line in log.splitlines()]
    places = [number for number, line in enumerate(lines) if _PROBLEM.search(line)]
    said = " ".join(lines[places[-1] :][:2]) if places else "nothing"
    return EngineError(
        f"Spark: its process ended, or the connection to it was lost; it said: {said[:_LONGEST]}"
    )


def _find_our_error(text: str) -> SrvstatError | None:
    """Find an error that our own code raised on an executor."""
    found = _OURS.search(text)
    kind = getattr(errors, found[1], None) if found else None
    return kind(found[2].strip()) if found and kind else None


def _find_file(text: str) -> SourceError | None:
    if missing := _NO_PATH.search(text):
        return SourceError(f"{_find_path(missing[1])}: no such file or folder")
    if not (failed := _FILE.search(text)):
        return None
    path = _find_path(failed["path"])
    column = _COLUMN.search(failed["detail"])
    if failed["kind"] == "FILE_NOT_EXIST":
        return SourceError(f"{path}: it vanished while it was read")
    if column:
        return SourceError(
            f"{path}: the column {column[1]} is {column[3]}, but {column[2]} in other files;"
            " files of one source must have the same types"
        )
    return SourceError(f"{path}: not a whole Parquet file; it is damaged, cut off or unreadable")


def _find_path(uri: str) -> str:
    """Return the path of a local file, as the user writes it, or another URI unchanged."""
    return unquote(re.sub("^file:(//)?", "", uri)) if uri.startswith("file:") else uri


def _find_cause(text: str) -> str | None:
    if missing := _MODULE.search(text):
        return f"executors have no Python module {missing[1]}; install it there"
    for pattern, reason in _CAUSES.items():
        if found := re.search(pattern, text):
            return reason.format(**found.groupdict())
    return None


def _is_connection_lost(error: Exception) -> bool:
    # Py4J raises its plain error for an answer that is cut off.
    if isinstance(error, ConnectionError) or type(error).__name__ in _LOST:
        return True
    return any(word in str(error) for word in ("UNAVAILABLE", "JAVA_GATEWAY_EXITED"))


def _find_first_words(text: str) -> str:
    """Return the message of the root cause, without class names and stack traces."""
    causes = [cause for cause in _CAUSE.findall(text) if cause.strip()]
    first = causes[-1] if causes else text.strip().split("\n")[0]
    return first.strip()[:_LONGEST] or "it failed without a reason"
