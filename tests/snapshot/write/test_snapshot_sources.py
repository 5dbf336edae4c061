"""Build a snapshot from others."""

from pathlib import Path

import pytest

from conftest import AS_OF, DAY, Cli, build_in, ndjson, server
from support.snapshots import forge, read_observations

BUILD = ["snapshot", "build", "new.db", "--from", "snapshot"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a directory with a snapshot of the servers a and b."""
    rows = [*(("a", AS_OF - day * DAY, day) for day in range(30)), ("b", AS_OF, 7)]
    build_in(tmp_path, [server("a"), server("b")], rows)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_servers_file_replaces_the_records_of_a_snapshot(cli: Cli) -> None:
    Path("own.ndjson").write_bytes(ndjson([server("b", hostname="New")]))

    ran = cli(*BUILD, "--observations", "snapshot.db", "--servers", "own.ndjson")

    assert ran.exit_code == 0, ran.stderr
    assert "skipped      30 (30 not in the servers file)" in ran.stderr
    assert read_observations("new.db") == [("b", AS_OF, 7)]
    assert cli("servers", "-s", "new.db").json["servers"][0]["hostname"] == "New"


def test_several_snapshots_need_a_servers_file(here: Path, cli: Cli) -> None:
    (here / "other").mkdir()
    rows = [("a", AS_OF, 0), ("a", AS_OF - 1, 9), ("b", AS_OF, 8)]
    build_in(here / "other", [server("a"), server("b")], rows)
    both = ["--observations", "snapshot.db", "--observations", "other/snapshot.db"]

    refused = cli(*BUILD, *both)
    ran = cli(*BUILD, *both, "--servers", "servers.ndjson")

    assert refused.exit_code == 2
    assert refused.stderr.startswith("error: --servers: missing, but needed for several sources")
    assert ran.exit_code == 0
    assert len(read_observations("new.db")) == 32
    assert "  repeated     1\n" in ran.stderr
    assert "other/snapshot.db, row 3: players: an earlier row of this server" in ran.stderr


def test_a_bundle_as_a_source_is_reported(cli: Cli) -> None:
    bundle = ["snapshot", "bundle", "a", "--range", "7d", "-o", "case.db", "-s", "snapshot.db"]
    assert cli(*bundle).exit_code == 0

    runs = [
        cli(*BUILD, "--observations", "case.db", "--overwrite", *servers)
        for servers in ([], ["--servers", "servers.ndjson"])
    ]

    warning = "case.db: a bundle, which has no observations before 2026-02-22T00:00:00.000Z"
    for ran in runs:
        assert ran.exit_code == 0
        assert ran.stderr.count(f"warning: {warning}\n") == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.db", "none.db: No such file or directory"),
        ("servers.ndjson", "servers.ndjson: not a snapshot and not a SQLite file; "),
        ("damaged.db", "damaged.db: damaged ("),
        ("forged.db", "forged.db: damaged (the observations of server a)"),
    ],
)
def test_another_source_is_refused(name: str, message: str, here: Path, cli: Cli) -> None:
    data = (here / "snapshot.db").read_bytes()
    (here / "damaged.db").write_bytes(data.replace(b"x-b", b"x-c"))
    (here / "forged.db").write_bytes(data)
    forge("forged.db", "UPDATE blocks SET time_unit = 0")

    ran = cli(*BUILD, "--observations", name)

    assert (ran.exit_code, ran.stdout) == (6, b"")
    assert ran.stderr.startswith(f"error: {message}"), ran.stderr
    assert not Path("new.db").exists()


def test_a_snapshot_is_not_read_from_a_pipe(cli: Cli) -> None:
    ran = cli(*BUILD, "--observations", "-")
    other = cli(*BUILD, "--observations", "-", "--servers", "servers.ndjson")

    assert ran.stderr == "error: standard input: can't be read twice; name a file\n"
    assert other.stderr == (
        "error: standard input: a snapshot can't be read from a pipe; name a file\n"
    )
    assert (ran.exit_code, other.exit_code) == (2, 6)


def test_a_snapshot_is_not_built_from_itself(here: Path, cli: Cli) -> None:
    before = (here / "snapshot.db").read_bytes()

    ran = cli(
        *("snapshot", "build", "snapshot.db", "--overwrite"),
        *("--from", "snapshot", "--observations", "./snapshot.db"),
    )

    assert (ran.exit_code, (here / "snapshot.db").read_bytes()) == (2, before)
    assert "snapshot.db: is also a source" in ran.stderr
