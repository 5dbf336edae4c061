"""A folder of shards answers as one file with all servers does."""

import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import closing, suppress
from hashlib import sha256
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from conftest import AS_OF, DAY, Build, Cli, build_in, csv, few_examples, ndjson, server
from srvstat.contract.errors import OutputError, SnapshotError
from srvstat.contract.requests import NAMESPACES, ServerReference
from srvstat.contract.windows import Window
from srvstat.files.paths import identify_file
from srvstat.snapshot.read.file import open_file
from srvstat.snapshot.read.snapshot import identify_snapshot, open_snapshot
from srvstat.snapshot.read.statistics import compute_window_statistics
from srvstat.snapshot.rows import MANIFEST, find_shard, name_shard
from srvstat.snapshot.write.build import Shard, build_shard
from srvstat.sources.servers import ServerRecord
from support.snapshots import read_root, write_manifest, write_shards

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
    ["top", "--rank-by", "growth", "--limit", "20"],
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
    stderr = ran.stderr.replace(str(one), str(other))
    assert (ran.exit_code, stderr) == (expected.exit_code, expected.stderr), command
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


def test_shards_are_not_updated(cli: Cli, shards: Path) -> None:
    (shards / "rows.csv").write_bytes(csv([("a", AS_OF, 5)]))
    ran = cli("snapshot", "update", str(shards), f"{shards}/rows.csv")

    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert "a directory, but only a snapshot file can be updated" in ran.stderr


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
    ran = cli("snapshot", "build", path, "--source", "snapshot", "--observations", str(shards))

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


def test_shards_need_no_observations(cli: Cli, build: Build, tmp_path: Path) -> None:
    path = build([server("a")], [], "--allow-empty", f"--at={AS_OF}")
    folder = write_shards(Path(path), tmp_path / "empty", 2)

    info, of_file = (cli("snapshot", "info", "--json", str(one)).json for one in (folder, path))
    assert info["firstObservedAt"] is info["lastObservedAt"] is None
    assert info["servers"] == of_file["servers"] == 1


def test_a_folder_has_the_identity_of_its_manifest(shards: Path) -> None:
    assert identify_snapshot(str(shards)) == identify_file(str(shards / "manifest.json"))
    assert identify_snapshot(str(shards / "gone")) is None


SHARDS = 3
FEW_IDS = ["a", "b", "c", "d", "e"]


def build(directory: Path, players: int, as_of: int = AS_OF) -> Path:
    """Build a snapshot of five servers, and its shards in the folder `shards` beside it."""
    directory.mkdir()
    rows = [(one, at, players) for one in FEW_IDS for at in (as_of - DAY, as_of)]
    path = build_in(directory, map(server, FEW_IDS), rows)
    write_shards(path, directory / "shards", SHARDS)
    return path


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("healthy") / "one", 5)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the shards of another build of the same servers."""
    return build(tmp_path_factory.mktemp("other") / "one", 6).parent / "shards"


@pytest.fixture
def folder(healthy: Path, tmp_path: Path) -> Path:
    """Return a copy of healthy shards."""
    return Path(shutil.copytree(healthy.parent / "shards", tmp_path / "shards"))


def edit(folder: Path, change: Callable[[Any], object], *, seal: bool = True) -> None:
    """Change the members of a manifest; with `seal`, its digest matches."""
    path = folder / MANIFEST
    value = json.loads(path.read_bytes())
    change(value)
    if seal:
        text = json.dumps({**value, "digest": ""}, separators=(",", ":"))
        unsealed = text.removesuffix(',"digest":""}') + "}"
        value["digest"] = sha256(b"srvstat manifest\0" + unsealed.encode()).hexdigest()
    path.write_text(json.dumps(value), encoding="utf-8")


def list_shards_again(healthy: Path, folder: Path) -> None:
    """Write the manifest for the shards that are in a folder now."""
    with closing(open_file(str(healthy))) as snapshot:
        write_manifest(folder, snapshot, [name_shard(number) for number in range(SHARDS)])


def ask(path: Path) -> list[Any]:
    """Return what a snapshot says of a server by each identifier, and its totals."""
    with closing(open_snapshot(str(path))) as snapshot:
        references = [ServerReference(identifier=name, by="id") for name in ("a", "b")]
        references.append(ServerReference(identifier="x-c", by="cfxId"))
        found = [one for one in snapshot.find_servers(references) if one]
        statistics = compute_window_statistics(snapshot, found, Window(0, snapshot.as_of))
        return [[one.id for one in found], statistics, snapshot.as_of, snapshot.file_row[:9]]


OF_SHARDS = "does not match its shards"
MANIFESTS: dict[str, tuple[Callable[[Any], object], str]] = {
    "another version": (lambda value: value.update(version=2), "version: 2 is not one of 1"),
    "an unknown member": (lambda value: value.update(more=1), "more: unknown property"),
    "no time": (lambda value: value.update(asOf=True), "asOf: must be an integer"),
    "an impossible time": (
        lambda value: value.update(asOf="2026-02-30T00:00Z"),
        "asOf: invalid date",
    ),
    "no shard": (lambda value: value.update(shards=[]), "0 shards, not 1 to 4,096"),
    "too many shards": (
        lambda value: value.update(shards=value["shards"] * 2_000),
        "6,000 shards, not 1 to 4,096",
    ),
    "a path": (lambda value: value["shards"][1].update(file="../shard-001.db"), OF_SHARDS),
    "another root": (lambda value: value.update(root="0" * 64), OF_SHARDS),
    "another order": (lambda value: value["shards"].reverse(), OF_SHARDS),
    "other servers": (lambda value: value.update(servers=9), OF_SHARDS),
    "other observations": (lambda value: value.update(observations=9), OF_SHARDS),
    "a lone surrogate": (
        lambda value: value.update(sources=["\ud800"]),
        "'utf-8' codec can't encode character '\\ud800'",
    ),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_forged_manifest_is_refused(name: str, cli: Cli, folder: Path) -> None:
    change, reason = MANIFESTS[name]
    edit(folder, change)
    ran = cli("get", "a", "-s", str(folder))

    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert ran.stderr.startswith(f"error: {folder}/{MANIFEST}: damaged ({reason}")
    assert ran.stderr.endswith(
        "; copy the whole directory again, or write it with `srvstat fleet --snapshots`\n"
    )


def make_huge(path: Path) -> None:
    os.truncate(path, 1 << 25)


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "text": (lambda path: path.write_text("shards"), f"{MANIFEST}: damaged (not JSON at column 1"),
    "nothing": (lambda path: path.write_text(""), f"{MANIFEST}: damaged (not JSON at column 1"),
    "an array": (lambda path: path.write_text("[]"), f"{MANIFEST}: damaged (not an object)"),
    "depth": (lambda path: path.write_text("[" * 99_999), f"{MANIFEST}: damaged (nested too deep"),
    "a huge file": (make_huge, f"{MANIFEST}: not a file of at most 16,"),
    "a repeated key": (
        lambda path: path.write_text('{"root":1,"root":1}'),
        f'{MANIFEST}: damaged (the key "root" is repeated)',
    ),
    "a pipe": (make_pipe, f"{MANIFEST}: not a file of at most 16,"),
    "no file": (lambda path: path.unlink(), "a directory without manifest.json, not a snapshot"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_manifest_is_refused(name: str, cli: Cli, folder: Path) -> None:
    replace, reason = FILES[name]
    replace(folder / MANIFEST)
    ran = cli("get", "a", "-s", str(folder))

    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert reason in ran.stderr


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), file=st.integers(0, SHARDS))
def test_a_flipped_bit_gives_an_error_or_the_right_answer(
    healthy: Path, folder: Path, place: float, bit: int, file: int
) -> None:
    path = folder / (MANIFEST if file == SHARDS else name_shard(file))
    intact = path.read_bytes()
    at = int(place * len(intact))
    path.write_bytes(intact[:at] + bytes([intact[at] ^ 1 << bit]) + intact[at + 1 :])
    try:
        with suppress(SnapshotError):
            assert ask(folder) == ask(healthy)
    finally:
        path.write_bytes(intact)


def test_a_shard_of_another_build_is_refused(cli: Cli, folder: Path, other: Path) -> None:
    name = name_shard(find_shard("a", SHARDS))
    shutil.copy(other / name, folder / name)

    for command in (["get", "a", "-s"], ["snapshot", "verify"], ["servers", "-s"]):
        ran = cli(*command, str(folder))
        assert (ran.exit_code, ran.stdout) == (3, b"")
        assert f"{folder}/{name}: not the file that manifest.json lists: its content" in ran.stderr


def test_shards_of_different_instants_are_refused(
    cli: Cli, healthy: Path, folder: Path, tmp_path: Path
) -> None:
    later = build(tmp_path / "later", 5, AS_OF + DAY).parent / "shards"
    name = name_shard(find_shard("a", SHARDS))
    shutil.copy(later / name, folder / name)
    list_shards_again(healthy, folder)
    ran = cli("get", "a", "-s", str(folder))

    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert f"{folder}/{name}: not the file that manifest.json lists: its content" in ran.stderr


def test_a_server_in_the_wrong_shard_is_found_out(cli: Cli, healthy: Path, folder: Path) -> None:
    number = find_shard("a", SHARDS)
    first, second = name_shard(number), name_shard((number + 1) % SHARDS)
    (folder / first).rename(folder / "other")
    (folder / second).rename(folder / first)
    (folder / "other").rename(folder / second)
    list_shards_again(healthy, folder)

    for command in (["get", "cfxId:x-a", "-s"], ["servers", "-s"], ["snapshot", "verify"]):
        ran = cli(*command, str(folder))
        assert (ran.exit_code, ran.stdout) == (3, b"")
        assert " belongs in shard-00" in ran.stderr


def test_verify_finds_a_cfx_id_that_two_shards_have(
    cli: Cli, healthy: Path, folder: Path, tmp_path: Path
) -> None:
    number = find_shard("a", SHARDS)
    elsewhere = next(one for one in FEW_IDS if find_shard(one, SHARDS) != number)
    records = [server("a", cfxId="own"), server(elsewhere, cfxId="x-a")]
    (tmp_path / "more").mkdir()
    more = build_in(tmp_path / "more", records, [("a", AS_OF, 1)])
    name = name_shard(find_shard(elsewhere, SHARDS))
    shutil.copy(write_shards(more, tmp_path / "of-more", SHARDS) / name, folder / name)
    list_shards_again(healthy, folder)
    edit(folder, lambda value: value.update(observations=count_observations(value)))
    ran = cli("snapshot", "verify", str(folder))

    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert ": another shard has its cfxId, too); copy" in ran.stderr


def count_observations(manifest: Any) -> int:
    return sum(shard["observations"] for shard in manifest["shards"])


def test_verify_compares_the_manifest_with_the_first_observation(cli: Cli, folder: Path) -> None:
    edit(folder, lambda value: value.update(firstObservedAt="2026-01-01T00:00:00.000Z"))
    ran = cli("snapshot", "verify", str(folder))

    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert "damaged (the first or last observation of manifest.json); copy" in ran.stderr


ROWS = [(name, AS_OF - at, at) for name in ("a", "b") for at in range(100)]
RECORDS = [
    ServerRecord(id=name, cfx_id=f"x-{name}", game="game_a", hostname=name) for name in ("a", "b")
]


def write_rows(folder: str) -> None:
    Path(folder).mkdir()
    columns = dict(zip(("serverId", "observedAt", "players"), zip(*ROWS, strict=True), strict=True))
    parquet.write_table(pa.table(columns), f"{folder}/part.parquet")


@pytest.mark.usefixtures("here")
def test_a_shard_is_the_build_of_its_servers(cli: Cli) -> None:
    write_rows("rows")
    Path("servers.ndjson").write_bytes(ndjson(map(server, ("a", "b"))))
    Path("rows.csv").write_bytes(csv(ROWS))
    command = ["snapshot", "build", "one.db", "--servers=servers.ndjson"]
    assert cli(*command, "--observations=rows.csv").exit_code == 0
    reports: list[int] = []

    row = build_shard(
        Shard(0, "shard.db", "DIR/shard.db", RECORDS, "rows", AS_OF, ["week.csv"]), reports.append
    )

    assert row.root == read_root("shard.db") == read_root("one.db")
    assert row.sources == '["week.csv"]'
    assert sum(reports) == len(ROWS)  # those read; few rows are stored without a report


@pytest.mark.usefixtures("here")
def test_a_shard_can_be_empty(cli: Cli) -> None:
    row = build_shard(Shard(0, "shard.db", "DIR/shard.db", (), "rows", AS_OF, ["week.csv"]), print)

    assert (row.server_count, row.observation_count) == (0, 0)
    assert cli("snapshot", "verify", "shard.db").exit_code == 0


@pytest.mark.usefixtures("here")
def test_a_shard_that_can_not_be_written_is_an_error() -> None:
    with pytest.raises(OutputError, match=r"^DIR/shard\.db: no such file or directory$"):
        build_shard(Shard(0, "none/shard.db", "DIR/shard.db", (), "rows", AS_OF, ()), print)
