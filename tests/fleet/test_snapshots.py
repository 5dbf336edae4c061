"""Property: a shard is the snapshot that a build of its servers makes."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import AS_OF, Cli, Ran, csv
from fleet.random_fleet import FleetFiles, write_fleet
from srvstat.snapshot.digests import find_shard
from support.snapshots import parse_summary, read_directory, read_root


def write_snapshots(cli: Cli, files: FleetFiles, folder: Path, *options: str) -> Ran:
    ran = cli(
        "fleet", *map(str, files.sources), f"--servers={files.servers}", *files.options,
        f"--snapshots={folder}", *options,
    )  # fmt: skip
    assert ran.exit_code == 0, ran.stderr
    return ran


def read_manifest(folder: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_bytes())
    return manifest


def build_shard(cli: Cli, files: FleetFiles, folder: Path, number: int) -> str:
    """Build a snapshot of the servers of a shard from all sources, and return its root."""
    manifest = read_manifest(folder)
    records = [json.loads(line) for line in files.servers.read_bytes().splitlines()]
    servers = folder / "servers.ndjson"
    servers.write_bytes(
        b"".join(
            json.dumps(record).encode() + b"\n"
            for record in records
            if find_shard(record["id"], len(manifest["shards"])) == number
        )
    )
    path = folder / "expected.db"
    ran = cli(
        "snapshot", "build", str(path), f"--servers={servers}", f"--as-of={manifest['asOf']}",
        *(f"--observations={source}" for source in files.sources),
        "--allow-empty", "--overwrite",
    )  # fmt: skip
    assert ran.exit_code == 0, ran.stderr
    return read_root(str(path)).hex()


@settings(
    max_examples=max(2, settings().max_examples // 50),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # `cli` keeps no state
)
@given(seed=st.integers(min_value=0), shards=st.integers(1, 4), threads=st.integers(1, 2))
def test_a_shard_is_the_build_of_its_servers(
    cli: Cli, tmp_path_factory: pytest.TempPathFactory, seed: int, shards: int, threads: int
) -> None:
    directory = tmp_path_factory.mktemp("fleet")
    files = write_fleet(directory, Random(seed), servers=30)  # noqa: S311 - not a secret
    folder = directory / "shards"

    options = [f"--shards={shards}", f"--threads={threads}", "--conflicts=first"]
    ran = write_snapshots(cli, files, folder, *options)

    manifest = read_manifest(folder)
    names = [f"shard-{number:03}.db" for number in range(shards)]
    assert sorted(read_directory(folder)) == ["manifest.json", *names]
    assert [shard["file"] for shard in manifest["shards"]] == names
    roots = [build_shard(cli, files, folder, number) for number in range(shards)]
    assert [shard["root"] for shard in manifest["shards"]] == roots
    assert [read_root(str(folder / name)).hex() for name in names] == roots
    built = build_all(cli, files, directory)
    for name in ("observations", "servers", "repeated", "conflicting", "rejected", "sources"):
        assert manifest[name] == built[name]
    for name in ("asOf", "firstObservedAt", "lastObservedAt"):
        assert manifest[name] == built[name]
    assert parse_summary(ran)["root"] == manifest["root"]


def build_all(cli: Cli, files: FleetFiles, directory: Path) -> dict[str, Any]:
    """Return what `snapshot info` says about one snapshot of all servers."""
    path = directory / "one.db"
    ran = cli(
        "snapshot", "build", str(path), f"--servers={files.servers}", *files.options,
        *(f"--observations={source}" for source in files.sources),
    )  # fmt: skip
    assert ran.exit_code == 0, ran.stderr
    info: dict[str, Any] = cli("snapshot", "info", str(path)).json
    return info


@pytest.mark.usefixtures("here")
def test_one_shard_of_servers_without_records_is_the_whole_snapshot(cli: Cli) -> None:
    rows = [(name, AS_OF - at, at) for name in ("MAIN LOBBY", "b") for at in range(9)]
    Path("rows.csv").write_bytes(csv([*rows, ("late", AS_OF + 1, 5)]))
    options = ["--ids=slug", "--game=game_b", f"--as-of={AS_OF}"]

    shards = cli(
        "fleet", "rows.csv", *options, "--snapshots=one", "--shards=1", "--output=r.ndjson"
    )
    built = cli("snapshot", "build", "all.db", "--observations=rows.csv", *options)

    assert (shards.exit_code, built.exit_code) == (0, 0)
    assert read_root("one/shard-000.db") == read_root("all.db")
    compare = ["compare", "main-lobby", "b", "--json", "--snapshot"]
    answer = cli(*compare, "one").stdout
    assert answer == cli(*compare, "all.db").stdout
    b, lobby = Path("r.ndjson").read_bytes().splitlines()
    assert answer == b'{"range":"30d","data":[%s,%s]}\n' % (lobby, b)
    assert parse_summary(shards)["snapshot"] == "18 observations in 1 shard"


def test_lowest_conflicts_do_not_depend_on_the_order_of_sources(cli: Cli, tmp_path: Path) -> None:
    files = write_fleet(tmp_path, Random(7), servers=10)  # noqa: S311 - not a secret
    turned = files._replace(sources=files.sources[::-1])
    options = ["--shards=2", "--conflicts=lowest", "--threads=1"]

    write_snapshots(cli, files, tmp_path / "one", *options)
    write_snapshots(cli, turned, tmp_path / "two", *options)

    found = [read_manifest(tmp_path / name) for name in ("one", "two")]
    assert found[0]["conflicting"] > 0
    assert found[0]["root"] == found[1]["root"]
    assert cli("snapshot", "verify", str(tmp_path / "one")).exit_code == 0
