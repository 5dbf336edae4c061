"""Write rejects to open files and pipes, and refuse invalid names."""

import os
import threading
from pathlib import Path

import pytest

from conftest import AS_OF, Cli, csv, ndjson, server
from support.descriptors import replace_descriptor
from support.snapshots import WEEK

REJECTED = 3_000


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("servers.ndjson").write_bytes(ndjson([server("a")]))
    Path("week.csv").write_bytes(csv([("a", AS_OF, 5)]) + b"odd\n" * REJECTED)


def write_rejects_to(cli: Cli, name: str) -> None:
    ran = cli(*WEEK, "--max-rejected=100%", "--overwrite", "--quiet", "--rejects", name)
    assert ran.exit_code == 0, ran.stderr


def test_rejects_are_appended_to_an_open_file_by_any_name(cli: Cli) -> None:
    log = os.open("log.log", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    os.symlink(f"/dev/fd/{log}", "link")
    try:
        write_rejects_to(cli, f"/dev/fd/{log}")
        write_rejects_to(cli, "link")
        with replace_descriptor(2, log):
            write_rejects_to(cli, "log.log")
    finally:
        os.close(log)

    assert Path("log.log").read_bytes().count(b'"file":"week.csv"') == 3 * REJECTED


def test_rejects_wait_for_the_reader_of_a_nonblocking_pipe(cli: Cli) -> None:
    reading_end, writing_end = os.pipe()
    os.set_blocking(writing_end, False)
    found = bytearray()

    def read() -> None:
        while chunk := os.read(reading_end, 1_000):
            found.extend(chunk)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        write_rejects_to(cli, f"/dev/fd/{writing_end}")
    finally:
        os.close(writing_end)
        reader.join()
        os.close(reading_end)

    assert found.count(b"\n") == REJECTED


@pytest.mark.parametrize("output", ["new/", "/dev/fd/1"])
def test_an_output_that_names_no_file_is_refused(output: str, cli: Cli) -> None:
    ran = cli(*(output if word == "out.db" else word for word in WEEK))

    assert (ran.exit_code, ran.stdout) == (2, b"")
    assert not os.path.lexists("new")


def test_a_source_with_an_invalid_name_is_refused(cli: Cli) -> None:
    ran = cli(*("a\0b.csv" if word == "week.csv" else word for word in WEEK))

    assert ran.exit_code == 6
    assert "not a file name" in ran.stderr
