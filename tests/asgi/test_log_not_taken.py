"""Standard error that takes nothing for a while: each line is whole, or counted."""

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
from support.http import HOST, Client, get, request
from support.process import Service

PIPE = 1 << 16


@contextmanager
def logging_to(
    stderr: int | IO[bytes], directory: Path, most_bytes: int = resource.RLIM_INFINITY
) -> Iterator[Service]:
    """Serve with a standard error of one's own; no file may become longer than `most_bytes`."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, resource.RLIM_INFINITY))

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


def ask(service: Service, sent: bytes, times: int) -> None:
    with Client(service) as client:
        for _ in range(times // 20):
            client.send(sent * 20)
            for _ in range(20):
                client.read_answer()


def whole(data: bytes) -> list[dict[str, Any]]:
    """Return the entries of lines of which one or another may be cut."""
    found = []
    for line in data.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def read_until(reader: int, done: Callable[[bytes], bool]) -> bytes:
    """Read until enough is there, and see that it comes."""
    data = b""
    while not done(data):
        assert select.select([reader], [], [], 5)[0], data[-1_000:]
        data += os.read(reader, PIPE)
    return data


def read_to_end(reader: int) -> bytes:
    data = b""
    while read := os.read(reader, PIPE):
        data += read
    return data


def told_lost(entries: list[dict[str, Any]]) -> int:
    return sum(entry["lines"] for entry in entries if entry.get("event") == "log lines lost")


def test_a_pipe_that_does_not_block_gets_each_line_whole(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with logging_to(writer, tmp_path) as service:
        os.close(writer)
        ask(service, get(b"a" * 200), 800)
        time.sleep(0.2)  # the pipe is full now
        data = read_until(reader, lambda read: read.count(b"\n") == 800)
        service.process.send_signal(signal.SIGTERM)
        entries = [json.loads(line) for line in (data + read_to_end(reader)).splitlines()]
        os.close(reader)

    assert [entry["path"][-200:] for entry in entries[:-1]] == ["a" * 200] * 800
    assert entries[-1]["event"] == "stopped"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_pipe_that_nobody_reads_does_not_hold_up_the_end(
    number: signal.Signals, tmp_path: Path
) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with logging_to(writer, tmp_path) as service:
        ask(service, get(b"a" * 200), 400)
        service.process.send_signal(number)
        assert service.process.wait(timeout=5) == 128 + number
    os.close(reader)
    os.close(writer)


def test_a_file_that_may_not_grow_loses_lines_that_are_counted(tmp_path: Path) -> None:
    log_path = tmp_path / "log"
    with (
        log_path.open("ab") as log,
        logging_to(log, tmp_path, most_bytes=5_000) as service,
    ):
        for _ in range(3):
            ask(service, get(b"a"), 20)
            time.sleep(0.2)
        full = log_path.read_bytes()
        assert len(full) == 5_000
        os.truncate(log_path, 0)
        ask(service, get(b"b"), 20)
        time.sleep(0.2)
        entries = whole(full + log_path.read_bytes())

    assert log_path.read_bytes()[:1] == b"\n"
    assert told_lost(entries) > 0
    assert sum("path" in entry for entry in entries) + told_lost(entries) == 80


def test_a_reader_that_is_stuck_costs_no_more_memory_than_there_is_room(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    # A path with a key in it is logged decoded: a thousand characters, of 6 bytes each.
    long = request(b"GET /srvstat_12345678/" + b"%ff" * 1_000 + b" HTTP/1.1", HOST)
    with logging_to(writer, tmp_path) as service:
        os.close(writer)
        ask(service, long, 3_000)
        data = read_until(reader, lambda read: b"log lines lost" in read[-PIPE:])
        service.process.send_signal(signal.SIGTERM)
        data += read_to_end(reader)
        os.close(reader)

    entries = [json.loads(line) for line in data.splitlines()]
    assert 16 << 20 < len(data) < 17 << 20
    assert len(entries) + told_lost(entries) == 3_000 + 2  # that notice, and the end's
