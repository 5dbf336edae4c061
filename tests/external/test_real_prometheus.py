"""Read the answers of a real Prometheus. The test is skipped where there is none."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from conftest import AS_OF
from sources.readings import read_rows
from srvstat.contract.errors import SourceError
from srvstat.sources.mapping import ColumnMapping

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(
        not (shutil.which("prometheus") and shutil.which("promtool")),
        reason="prometheus and promtool are not installed",
    ),
]

SAMPLES = [("lobby", 0, "5"), ("lobby", 61_123, "7"), ("lobby", 120_000, "NaN"), ("b:1", 1, "0")]
"""The server, the milliseconds after AS_OF, and the value of each sample."""
SECONDS = 60


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Run Prometheus on a free port, with the samples as its data."""
    directory = tmp_path_factory.mktemp("prometheus")
    lines = [
        f'players{{job="games",server="{name}"}} {value} {(AS_OF + at) / 1000:.3f}\n'
        for name, at, value in SAMPLES
    ]
    (directory / "samples").write_text(f"# TYPE players gauge\n{''.join(lines)}# EOF\n")
    (directory / "none.yml").touch()
    write = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "samples", "data"]
    subprocess.run(write, cwd=directory, check=True, capture_output=True, timeout=SECONDS)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    options = [
        "--config.file=none.yml",
        "--storage.tsdb.path=data",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address={address}",
    ]
    with (
        (directory / "log").open("wb") as log,
        subprocess.Popen(["prometheus", *options], cwd=directory, stderr=log) as process,
        httpx.Client(base_url=f"http://{address}") as client,
    ):
        try:
            wait_until_ready(client)
            yield client
        finally:
            process.terminate()


def wait_until_ready(client: httpx.Client) -> None:
    for _ in range(10 * SECONDS):
        with suppress(httpx.TransportError):
            if client.get("/-/ready").status_code == httpx.codes.OK:
                return
        time.sleep(0.1)
    pytest.fail(f"Prometheus is not ready after {SECONDS} s")


def test_answers_to_both_kinds_of_queries_are_read(
    prometheus: httpx.Client, tmp_path: Path
) -> None:
    start = AS_OF // 1000
    raw: dict[str, str | int] = {"query": "players[1h]", "time": start + 600}
    steps: dict[str, str | int] = {
        "query": "players",
        "start": start,
        "end": start + 120,
        "step": 60,
    }
    for name, path, parameters in (("raw", "query", raw), ("steps", "query_range", steps)):
        answer = prometheus.get(f"/api/v1/{path}", params=parameters)
        (tmp_path / name).write_bytes(answer.content)
    mapping = ColumnMapping(id="server")

    found = read_rows(tmp_path / "raw", "prometheus", mapping)
    counts = {(name, AS_OF + at, int(value)) for name, at, value in SAMPLES if value != "NaN"}
    assert set(found.kept.values()) == counts
    assert (found.rejects, found.skipped) == ({}, {"not a number (NaN)": 1})

    found = read_rows(tmp_path / "steps", "prometheus", mapping)
    of_lobby = {at - AS_OF: count for name, at, count in found.kept.values() if name == "lobby"}
    assert of_lobby == {0: 5, 60_000: 5}


def test_an_error_is_reported(prometheus: httpx.Client, tmp_path: Path) -> None:
    answer = prometheus.get("/api/v1/query", params={"query": "players["})
    (tmp_path / "error").write_bytes(answer.content)

    with pytest.raises(SourceError, match="error: an error of Prometheus: invalid parameter"):
        read_rows(tmp_path / "error", "prometheus")
