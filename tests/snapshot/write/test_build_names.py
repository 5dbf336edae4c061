"""Read sources with any name: files, gzip, FIFOs and standard input."""

import gzip
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from conftest import AS_OF, SERVERS, Cli, csv, ndjson
from support.snapshots import (
    COMMAND,
    expect_conflict,
    read_observations,
    read_rejects,
)

pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.ndjson", "x.jsonl", "x.ndjson.gz"])
def test_the_extension_sets_the_format_and_the_content_shows_gzip(
    name: str, pack: Any, cli: Cli
) -> None:
    record = {"serverId": "a", "observedAt": AS_OF, "players": 5}
    data = csv([("a", AS_OF, 5)]) if ".csv" in name else ndjson([record])
    Path(name).write_bytes(pack(data))
    Path("servers.ndjson").write_bytes(pack(ndjson(SERVERS)))

    assert cli(*COMMAND, "--observations", name).exit_code == 0
    assert read_observations("out.db") == [("a", AS_OF, 5)]


@pytest.mark.parametrize("name", ["servers", "x.nd", "x.csv", "x.csv.gz", "x.gz", "x.ndjson"])
def test_server_records_are_ndjson_with_any_file_name(name: str, cli: Cli) -> None:
    Path("servers.ndjson").rename(name)
    command = ["snapshot", "build", "out.db", "--servers", name, "--observations", "week.csv"]

    for pack in (bytes, gzip.compress):
        Path(name).write_bytes(pack(ndjson(SERVERS)))
        for options in ([], ["--format", "csv"], ["--format", "ndjson"]):
            assert cli(*command, *options, "--overwrite").exit_code == 0


def test_observations_may_come_from_standard_input(cli: Cli) -> None:
    rows = csv([("a", AS_OF, 5)])
    command = [*COMMAND, "--observations", "-"]

    refused = cli(*command, stdin=rows)
    assert (refused.exit_code, refused.stderr) == (
        2,
        "error: standard input: unknown format; add --format csv or ndjson, or --from KIND\n",
    )

    odd = csv([("a", AS_OF, 5), ("a", AS_OF, "x")])
    ran = cli(*command, "--format", "csv", "--rejects", "rejects.ndjson", stdin=odd)
    assert ran.exit_code == 0
    assert read_observations("out.db") == [("a", AS_OF, 5)]
    assert [(reject["file"], reject["line"]) for reject in read_rejects()] == [
        ("standard input", 3)
    ]


def test_servers_may_come_from_standard_input(cli: Cli) -> None:
    sources = ["--servers", "-", "--observations", "week.csv", "--format", "ndjson"]
    command = ["snapshot", "build", "out.db", *sources]

    assert cli(*command, stdin=gzip.compress(ndjson(SERVERS))).exit_code == 0
    assert cli(*command, "--overwrite", stdin=b"{}").stderr == (
        "error: standard input, line 1: id: required, but missing\n"
    )


@pytest.mark.parametrize(
    "sources",
    [
        ["--servers", "-", "--observations", "-"],
        ["--servers", "servers.ndjson", "--observations", "-", "--observations", "-"],
    ],
)
def test_standard_input_can_be_read_once(sources: list[str], cli: Cli) -> None:
    ran = cli("snapshot", "build", "out.db", *sources, "--format", "csv")

    assert (ran.exit_code, ran.stdout) == (2, b"")
    assert ran.stderr == "error: standard input (-) can be read only once\n"
    assert not Path("out.db").exists()


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_fifos_are_read_like_files(pack: Any, cli: Cli) -> None:
    rows = [("a", AS_OF + at, 5) for at in range(10_000)]  # more than a pipe holds
    os.mkfifo("fifo.csv")
    os.mkfifo("fifo.ndjson")
    data = {"fifo.csv": pack(csv(rows)), "fifo.ndjson": pack(ndjson(SERVERS))}
    writers = [
        threading.Thread(target=Path(name).write_bytes, args=(text,), daemon=True)
        for name, text in data.items()
    ]
    for writer in writers:
        writer.start()

    ran = cli(
        "snapshot", "build", "out.db", "--servers", "fifo.ndjson", "--observations", "fifo.csv"
    )

    assert (ran.exit_code, read_observations("out.db")) == (0, rows)


ODD_NAMES = [b"a#b", b"a?b=c&d", b"a%41b", b"a b", b"a\nb", b"-a", "ä夜".encode()]
NOT_UTF8 = pytest.param(
    b"\xff\xfe",
    marks=pytest.mark.skipif(sys.platform == "darwin", reason="its file names are UTF-8"),
)


@pytest.mark.parametrize("name", [*ODD_NAMES, NOT_UTF8])
def test_any_path_can_be_read_and_written(name: bytes, here: Path, cli: Cli) -> None:
    odd = os.fsdecode(name)
    os.mkdir(odd)
    Path(f"{odd}/{odd}.csv").write_bytes(csv([("a", AS_OF, 5), ("a", AS_OF, 6)]))
    Path("servers.ndjson").rename(f"{odd}/servers.ndjson")
    options = [f"--servers={odd}/servers.ndjson", f"--observations={odd}/{odd}.csv"]
    output = f"{odd}/{odd}.db"

    ran = cli("snapshot", "build", *options, f"--rejects={odd}/rejects", "--", output)

    title = name.decode("utf-8", "backslashreplace")
    assert ran.exit_code == 0, ran.stderr
    assert {path.name for path in (here / odd).iterdir()} == {
        f"{odd}.csv",
        f"{odd}.db",
        "rejects",
        "servers.ndjson",
    }
    assert read_rejects(f"{odd}/rejects") == [
        expect_conflict(f"{title}/{title}.csv", 3, 5, f"a,{AS_OF},6")
    ]
    assert cli("snapshot", "info", "--", output).json["sources"] == [f"{title}.csv"]
