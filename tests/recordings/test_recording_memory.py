"""Measure the memory and time that reading a HAR file takes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from recordings.readings import build_entry
from test_memory import run_python_measured

pytestmark = pytest.mark.slow

MAX_MIB = 100
"""A third of the 300 MiB that a large recording may take."""
SIZE = 50 << 20

READ = """
import sys
from srvstat.support.replay import read_recording
assert sum(1 for _ in read_recording("case.har")) == int(sys.argv[1])
"""


def write_long_text(url: str) -> Iterator[str]:
    text = json.dumps(build_entry(url, response_content={"text": "LONG", "encoding": "base64"}))
    before, _, after = text.partition("LONG")
    yield before
    for _ in range(SIZE >> 20):
        yield "A" * (1 << 20)
    yield after


def write_many_entries() -> Iterator[str]:
    headers = [{"name": f"name-{number}", "value": "value"} for number in range(10)]
    for number in range(5_000):
        yield "," if number else ""
        yield json.dumps(build_entry(f"https://cdn/{number}", request_headers=headers))


WRITERS = {
    "ours": lambda: write_long_text("https://h/gateway/v1/servers/a"),
    "many": write_many_entries,
}


@pytest.mark.parametrize(
    ("kind", "backend"), [*((kind, "yajl2_c") for kind in WRITERS), ("ours", "python")]
)
def test_a_large_har_takes_little_memory(
    kind: str, backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IJSON_BACKEND", backend)
    with (tmp_path / "case.har").open("w", encoding="utf-8") as file:
        file.write('{"log": {"entries": [')
        file.writelines(WRITERS[kind]())
        file.write("]}}")
    count = 5_000 if kind == "many" else 1

    assert run_python_measured(tmp_path, "-c", READ, str(count)) < MAX_MIB
