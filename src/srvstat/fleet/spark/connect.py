"""Open a session on a Spark Connect server."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import grpc
from pyspark.sql import SparkSession
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.client.retries import DefaultPolicy

from srvstat.contract.errors import EngineError, UsageError
from srvstat.fleet.spark.brief import call_briefly
from srvstat.fleet.spark.failures import explain_failure, is_failure_of_spark
from srvstat.fleet.spark.reach import find_places

_READY_SECONDS = 20.0
"""How long the server may take for its part of the handshake."""

_RETRIES = 6
_LONGEST_PAUSE_MS = 15_000  # all pauses together take half a minute


@contextmanager
def open_connect(url: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Open a session on the server of a URL, `sc://HOST:PORT`, and close it after the block.

    Raises UsageError for an invalid URL, EngineError if the server does not answer, and instead of
    the errors of PySpark in the block.
    """
    _wait_until_ready(url)
    session: SparkSession | None = None
    try:
        session = SparkSession.builder.remote(url).create()
        policy = DefaultPolicy(max_retries=_RETRIES, max_backoff=_LONGEST_PAUSE_MS)
        session.client.set_retry_policies([policy])
        for name, value in settings.items():
            session.conf.set(name, value)
        yield session
    except Exception as error:
        if not is_failure_of_spark(error):
            raise
        raise explain_failure(error, str) from error
    except BaseException:
        if session:
            call_briefly(session.interruptAll)
        raise
    finally:
        if session:
            call_briefly(session.stop)


def _wait_until_ready(url: str) -> None:
    """Wait for the handshake of gRPC, in which Spark itself would try for ten minutes."""
    ((host, port),) = find_places(url)
    try:
        channel = DefaultChannelBuilder(url).toChannel()
    except Exception:  # noqa: BLE001 - the message of PySpark can repeat the token
        raise UsageError(
            "--master: invalid; a URL of Spark Connect is sc://HOST:PORT/;NAME=VALUE;…"
        ) from None
    try:
        grpc.channel_ready_future(channel).result(_READY_SECONDS)
    except grpc.FutureTimeoutError:
        raise EngineError(
            f"Spark at {host}:{port}: it accepts connections, but did not answer as a Spark Connect"
            f" server within {_READY_SECONDS:.0f} seconds"
        ) from None
    finally:
        channel.close()
