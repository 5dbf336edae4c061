"""A folder of shards answers as one file with all servers does."""

import json
import re
import shutil
from collections.abc import Callable
from contextlib import closing
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import AS_OF, DAY, Cli, build_in, few_examples, server
from srvstat.contract.requests import NAMESPACES
from srvstat.files.paths import identify_file
from srvstat.snapshot.digests import find_shard, name_shard
from srvstat.snapshot.read.file import open_file
from srvstat.snapshot.read.snapshot import identify_snapshot, open_snapshot
from support.snapshots import read_root, write_shards

IDS = [f"srv-{number}" for number in range(24)]
CFX_IDS = [*IDS[12:], *(f"x{number}" for number in range(12))]
"""Half of them are the ids of other servers."""

UNKNOWN = ["nothing", "SRV-1"]

ROOT = re.compile(rb"[0-9a-f]{64}")

COMMANDS = (
    ["get", "cfxId:srv-12", "--explain"],
    ["get", "nothing"],
    ["get", "SRV-5"],
    ["get", "x7"],
    ["compare", *IDS[:5], "--explain", "--range", "7d"],
    ["compare", "srv-1", "cfxId:x7"],
    ["compare", "srv-1", "cfxId:srv-1"],
    ["compare", "srv-1", "cfxId:nothing"],
    ["servers"],
    ["servers", "srv-1", "--limit", "3"],
    ["stats", "--all", "--quantile", "0.95", "--above", "9", "--versus", "previous"],
    ["top", "--by", "growth", "--limit", "20"],
    ["growth", *IDS[:7], "--step", "week"],
    ["peak-hours", *IDS[:7]],
    ["integrity", "--all", "--range", "7d"],
    ["history", *IDS[:7], "--range", "7d"],
    ["history", *IDS[:7], "--step", "1d", "--sum"],
    ["snapshot", "verify"],
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a snapshot of one file; some servers have no observation."""
    random = Random(7)  # noqa: S311 - a fixed fleet
    records = [
        server(one, cfxId=cfx, hostname="\x1b[2J" * (one == "srv-3"), sourceId=one.upper())
        for one, cfx in zip(IDS, CFX_IDS, strict=True)
    ]
    rows = [
        (one, AS_OF - random.randrange(40 * DAY), random.randrange(10 ** random.randrange(4)))
        for one in IDS[:20]
        for _ in range(random.randrange(60))
    ]
    return build_in(tmp_path_factory.mktemp("whole"), records, rows)


@pytest.fixture(scope="module")
def divide(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Return the folder with a number of shards of the whole snapshot."""
    directory = tmp_path_factory.mktemp("shards")

    def divide(count: int) -> Path:
        folder = directory / str(count)
        return folder if folder.exists() else write_shards(whole, folder, count)

    return divide


@pytest.fixture
def shards(divide: Callable[[int], Path], tmp_path: Path) -> Path:
    """Return a copy of a folder with 7 shards."""
    return Path(shutil.copytree(divide(7), tmp_path / "shards"))


def ask_both(cli: Cli, one: Path, other: Path, command: list[str], **options: Any) -> None:
    """Check that a command gives the same for both snapshots, except for their roots."""
    ran, expected = (
        cli(*command, *([] if command[0] == "snapshot" else ["-s"]), str(path), "--json", **options)
        for path in (one, other)
    )
    assert ROOT.sub(b"", ran.stdout) == ROOT.sub(b"", expected.stdout), command
    assert (ran.exit_code, ran.stderr) == (expected.exit_code, expected.stderr), command
    assert ran.exit_code in {0, 40, 44}, ran.stderr


references: st.SearchStrategy[dict[str, str]] = st.one_of(
    st.builds(dict, identifier=st.sampled_from(IDS + UNKNOWN * 2), by=st.just("id")),
    st.builds(dict, identifier=st.sampled_from(CFX_IDS + UNKNOWN), by=st.just("cfxId")),
)
requests: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    servers=st.lists(references, min_size=2, max_size=5),
    range=st.sampled_from(["24h", "7d", "30d", "90d"]),
)


@settings(max_examples=few_examples(), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(count=st.integers(1, 7), asked=st.lists(requests, min_size=5, max_size=40))
def test_comparisons_over_shards_have_the_bytes_of_one_file(
    cli: Cli, whole: Path, divide: Callable[[int], Path], count: int, asked: list[Any]
) -> None:
    lines = b"".join(json.dumps(one).encode() + b"\n" for one in asked)
    ask_both(cli, divide(count), whole, ["compare", "--batch", "-"], stdin=lines)


def test_five_servers_of_five_shards_are_compared_as_in_one_file(
    cli: Cli, whole: Path, shards: Path
) -> None:
    by_shard = {find_shard(one, 7): one for one in IDS}
    chosen = list(by_shard.values())[:5]

    assert len(chosen) == 5
    ask_both(cli, shards, whole, ["compare", *chosen])


def test_files_from_shards_are_those_from_one_file(
    cli: Cli, whole: Path, shards: Path, tmp_path: Path
) -> None:
    def write(*command: str) -> tuple[dict[str, bytes], ...]:
        """Return the files that a command writes, without roots and times, for each snapshot."""
        found = []
        for path in (whole, shards):
            folder = tmp_path / f"{command[-1]}-{path.name}"
            folder.mkdir()
            ran = cli(*command, "-o", str(folder / "new"), "-s", str(path))
            assert ran.exit_code == 0, ran.stderr
            files = (file for file in folder.rglob("*") if file.is_file())
            found.append({file.name: ROOT.sub(b"", file.read_bytes()) for file in files})
        return tuple(found)

    for command in (["snapshot", "export"], ["report", "srv-1", "cfxId:x7"]):
        one, other = write(*command)
        assert one == other
        assert one


def test_shards_can_be_the_source_of_a_build_of_one_file(
    cli: Cli, whole: Path, shards: Path, tmp_path: Path
) -> None:
    path = str(tmp_path / "built.db")
    ran = cli("snapshot", "build", path, "--from", "snapshot", "--observations", str(shards))

    assert ran.exit_code == 0, ran.stderr
    assert cli("snapshot", "verify", path).json["root"] == read_root(str(whole)).hex()
    assert cli("snapshot", "diff", path, str(shards)).exit_code == 0


def test_a_bundle_of_shards_answers_as_they_do(cli: Cli, shards: Path, tmp_path: Path) -> None:
    path = str(tmp_path / "bundle.db")
    assert cli("snapshot", "bundle", *IDS[:3], "-o", path, "-s", str(shards)).exit_code == 0

    bundle, parent = (cli("compare", *IDS[:3], "-s", one) for one in (path, str(shards)))
    assert bundle.stdout == parent.stdout
    info = cli("snapshot", "info", str(shards)).json
    assert cli("snapshot", "info", path).json["parentRoot"] == info["root"]
    assert [one["file"] for one in info["shards"]] == [name_shard(number) for number in range(7)]


def test_identifiers_of_shards_are_in_order_in_both_directions(whole: Path, shards: Path) -> None:
    with closing(open_file(str(whole))) as one, closing(open_snapshot(str(shards))) as several:
        for by, backwards in product(NAMESPACES, (False, True)):
            found = list(several.iter_identifiers(by, "srv-2", backwards=backwards))
            assert found == list(one.iter_identifiers(by, "srv-2", backwards=backwards))
            assert len(found) > 5


def test_an_id_needs_only_its_shard(cli: Cli, whole: Path, shards: Path) -> None:
    number = find_shard("srv-5", 7)
    for other in set(range(7)) - {number}:
        (shards / name_shard(other)).unlink()

    ask_both(cli, shards, whole, ["get", "srv-5"])
    ran = cli("get", "cfxId:nothing", "-s", str(shards))
    assert (ran.exit_code, ran.stdout) == (3, b"")
    missing = shards / name_shard(0 if number else 1)
    assert ran.stderr.startswith(f"error: {missing}: missing, but manifest.json lists it; copy")


ROOT = re.compile(rb"[0-9a-f]{64}")


COMMANDS = (
    ["get", "cfxId:srv-12", "--explain"],
    ["get", "nothing"],
    ["get", "SRV-5"],
    ["get", "x7"],
    ["compare", *IDS[:5], "--explain", "--range", "7d"],
    ["compare", "srv-1", "cfxId:x7"],
    ["compare", "srv-1", "cfxId:srv-1"],
    ["compare", "srv-1", "cfxId:nothing"],
    ["servers"],
    ["servers", "srv-1", "--limit", "3"],
    ["stats", "--all", "--quantile", "0.95", "--above", "9", "--versus", "previous"],
    ["top", "--by", "growth", "--limit", "20"],
    ["growth", *IDS[:7], "--step", "week"],
    ["peak-hours", *IDS[:7]],
    ["integrity", "--all", "--range", "7d"],
    ["history", *IDS[:7], "--range", "7d"],
    ["history", *IDS[:7], "--step", "1d", "--sum"],
    ["snapshot", "verify"],
)


def test_documents_have_the_bytes_of_one_file(cli: Cli, whole: Path, shards: Path) -> None:
    for command in COMMANDS:
        ask_both(cli, shards, whole, command)


def test_tables_and_differences_are_those_of_one_file(
    cli: Cli, whole: Path, shards: Path, tmp_path: Path
) -> None:
    rows = [(one, AS_OF - at, 7) for one in IDS[:9] for at in (0, DAY)]
    other = build_in(tmp_path, [server(one) for one in IDS[:9]], rows)
    for command in (
        ["get", "srv-1", "--table", "--at", str(AS_OF - DAY), "-s"],
        ["compare", *IDS[:5], "--table", "--at", str(AS_OF - DAY), "-s"],
        ["snapshot", "diff", str(other)],
    ):
        one, several = (cli(*command, str(path)) for path in (whole, shards))
        assert ROOT.sub(b"", several.stdout) == ROOT.sub(b"", one.stdout)
        assert (several.exit_code, several.stderr) == (one.exit_code, one.stderr)
        assert one.stdout


def test_a_folder_has_the_identity_of_its_manifest(shards: Path) -> None:
    assert identify_snapshot(str(shards)) == identify_file(str(shards / "manifest.json"))
    assert identify_snapshot(str(shards / "gone")) is None
