"""A blocked or full standard error delays no answer; each line is written whole or counted."""

import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from asgi.small_service import build_small
from support.http import Client, get
from support.process import Service

pytestmark = pytest.mark.slow

PIPE_BYTES = 1 << 16
LONG = "a" * 128


@contextmanager
def serve_logging_to(
    stderr: int | IO[bytes], directory: Path, max_file_bytes: int = resource.RLIM_INFINITY
) -> Iterator[Service]:
    """Serve with a given standard error, and limit the size of files."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_bytes, resource.RLIM_INFINITY))

    command = [sys.executable, "-m", "srvstat", "serve", "--snapshot", str(build_small(directory))]
    with subprocess.Popen(
        [*command, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=stderr,
        preexec_fn=limit,  # noqa: PLW1509 - this process has no other thread
    ) as process:
        try:
            assert process.stdout
            port = int(process.stdout.readline().rpartition(b":")[2])
            yield Service(process, port, directory / "log")
        finally:
            process.kill()


def send(service: Service, sent: bytes, times: int) -> None:
    """Send a request many times and wait for the answers."""
    with Client(service) as client:
        for _ in range(times // 20):
            client.send(sent * 20)
            for _ in range(20):
                client.read_answer()


def parse_whole_lines(data: bytes) -> list[dict[str, Any]]:
    """Return the entries of the lines that were not cut."""
    found = []
    for line in data.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def read_until(reader: int, is_done: Callable[[bytearray], bool]) -> bytearray:
    """Read until a condition holds; fail if nothing comes for five seconds."""
    data = bytearray()
    while not is_done(data):
        assert select.select([reader], [], [], 5)[0], data[-1_000:]
        data += os.read(reader, PIPE_BYTES)
    return data


def read_to_end(reader: int) -> bytearray:
    data = bytearray()
    while read := os.read(reader, PIPE_BYTES):
        data += read
    return data


def count_lost(entries: list[dict[str, Any]]) -> int:
    return sum(entry["lines"] for entry in entries if entry.get("event") == "log lines lost")


def test_a_full_non_blocking_pipe_gets_every_line(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with serve_logging_to(writer, tmp_path) as service:
        os.close(writer)
        send(service, get(LONG.encode()), 400)
        time.sleep(0.2)  # the pipe is full now
        data = read_until(reader, lambda read: read.count(b"\n") == 400)
        service.process.send_signal(signal.SIGTERM)
        entries = [json.loads(line) for line in (data + read_to_end(reader)).splitlines()]
        os.close(reader)

    assert len(data) > 2 * PIPE_BYTES
    assert [entry["servers"] for entry in entries[:-1]] == [[f"id:{LONG}"]] * 400
    assert entries[-1]["event"] == "stopped"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_pipe_that_is_not_read_does_not_delay_the_stop(
    number: signal.Signals, tmp_path: Path
) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with serve_logging_to(writer, tmp_path) as service:
        send(service, get(LONG.encode()), 400)
        service.process.send_signal(number)
        assert service.process.wait(timeout=5) == 0
    os.close(reader)
    os.close(writer)


def test_lines_that_a_full_file_did_not_take_are_counted(tmp_path: Path) -> None:
    log_path = tmp_path / "log"
    with (
        log_path.open("ab") as log,
        serve_logging_to(log, tmp_path, max_file_bytes=5_000) as service,
    ):
        for _ in range(3):
            send(service, get(b"a"), 20)
            time.sleep(0.2)
        full = log_path.read_bytes()
        assert len(full) == 5_000
        os.truncate(log_path, 0)
        send(service, get(b"b"), 20)
        time.sleep(0.2)
        entries = parse_whole_lines(full + log_path.read_bytes())

    assert log_path.read_bytes()[:1] == b"\n"
    assert count_lost(entries) > 0
    assert sum("status" in entry for entry in entries) + count_lost(entries) == 80


LOG_MANY_ENTRIES = """
import asyncio
from srvstat.asgi.log import Log

async def run():
    log = Log()
    for _ in range(3_000):
        log.add({"text": "x" * 7_000})
    await asyncio.to_thread(input)
    log.close()

asyncio.run(run())
"""


def test_at_most_16_mib_wait_for_the_reader(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", LOG_MANY_ENTRIES],
        stdin=subprocess.PIPE,
        stderr=writer,
        cwd=tmp_path,
    ) as process:
        os.close(writer)
        data = read_until(reader, lambda read: b"log lines lost" in read[-PIPE_BYTES:])
        process.communicate(b"\n")
        data += read_to_end(reader)
        os.close(reader)

    entries = [json.loads(line) for line in data.splitlines()]
    assert 16 << 20 < len(data) < 17 << 20
    assert count_lost(entries) > 0
    assert sum("text" in entry for entry in entries) + count_lost(entries) == 3_000
