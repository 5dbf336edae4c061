"""Detect a damaged, forged or mixed folder of shards."""

import json
import os
import shutil
from collections.abc import Callable
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import AS_OF, DAY, Cli, build_in, server
from srvstat.contract.errors import SnapshotError
from srvstat.contract.requests import ServerReference
from srvstat.contract.time import Window
from srvstat.snapshot.digests import MANIFEST, find_shard, name_shard
from srvstat.snapshot.read.file import open_file
from srvstat.snapshot.read.snapshot import open_snapshot
from srvstat.snapshot.read.windows import compute_window_statistics
from support.snapshots import write_manifest, write_shards

SHARDS = 3
IDS = ["a", "b", "c", "d", "e"]


def build(directory: Path, players: int, as_of: int = AS_OF) -> Path:
    """Build a snapshot of five servers, and its shards in the folder `shards` beside it."""
    directory.mkdir()
    rows = [(one, at, players) for one in IDS for at in (as_of - DAY, as_of)]
    path = build_in(directory, map(server, IDS), rows)
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
def shards(healthy: Path, tmp_path: Path) -> Path:
    """Return a copy of healthy shards."""
    return Path(shutil.copytree(healthy.parent / "shards", tmp_path / "shards"))


def edit(shards: Path, change: Callable[[Any], object], *, seal: bool = True) -> None:
    """Change the members of a manifest; with `seal`, its digest matches."""
    path = shards / MANIFEST
    value = json.loads(path.read_bytes())
    change(value)
    if seal:
        text = json.dumps({**value, "digest": ""}, separators=(",", ":"))
        unsealed = text.removesuffix(',"digest":""}') + "}"
        value["digest"] = sha256(b"srvstat manifest\0" + unsealed.encode()).hexdigest()
    path.write_text(json.dumps(value), encoding="utf-8")


def ask(path: Path) -> list[Any]:
    """Return what a snapshot says of a server by each identifier, and its totals."""
    with closing(open_snapshot(str(path))) as snapshot:
        references = [ServerReference(identifier=name, by="id") for name in ("a", "b")]
        references.append(ServerReference(identifier="x-c", by="cfxId"))
        found = [one for one in snapshot.find_servers(references) if one]
        statistics = compute_window_statistics(snapshot, found, Window(0, snapshot.as_of))
        return [[one.id for one in found], statistics, snapshot.as_of, snapshot.file_row[:9]]


MANIFESTS: dict[str, tuple[Callable[[Any], object], str]] = {
    "another version": (lambda value: value.update(version=2), "version: 2 is not one of 1"),
    "an unknown member": (lambda value: value.update(more=1), "more: unknown property"),
    "no time": (lambda value: value.update(asOf=5), "asOf: not a time"),
    "an impossible time": (lambda value: value.update(asOf="2026-02-30T00:00Z"), "no such day"),
    "no shard": (lambda value: value.update(shards=[]), "0 shards, not 1 to 4,096"),
    "too many shards": (
        lambda value: value.update(shards=value["shards"] * 2_000),
        "6,000 shards, not 1 to 4,096",
    ),
    "a path": (
        lambda value: value["shards"][1].update(file="../shard-001.db"),
        "shards[1].file: not shard-001.db",
    ),
    "another root": (lambda value: value.update(root="0" * 64), "another root than that of its"),
    "another order": (lambda value: value["shards"].reverse(), "shards[0].file: not shard-000.db"),
    "another total": (
        lambda value: value.update(observations=9),
        "other totals than those of its shards",
    ),
    "a lone surrogate": (lambda value: value.update(sources=["\ud800"]), "a lone surrogate"),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_forged_manifest_is_refused(name: str, cli: Cli, shards: Path) -> None:
    change, reason = MANIFESTS[name]
    edit(shards, change)
    ran = cli("get", "a", "-s", str(shards))

    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert ran.stderr.startswith(f"error: {shards}/{MANIFEST}: damaged ({reason}")
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
    "a huge file": (make_huge, f"{MANIFEST}: damaged (more than 16,"),
    "a repeated key": (
        lambda path: path.write_text('{"root":1,"root":1}'),
        f'{MANIFEST}: damaged (the key "root" is repeated)',
    ),
    "a pipe": (make_pipe, f"{MANIFEST}: not a regular file"),
    "no file": (lambda path: path.unlink(), "a directory without manifest.json, not a snapshot"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_manifest_is_refused(name: str, cli: Cli, shards: Path) -> None:
    replace, reason = FILES[name]
    replace(shards / MANIFEST)
    ran = cli("get", "a", "-s", str(shards))

    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert reason in ran.stderr


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), file=st.integers(0, SHARDS))
def test_a_flipped_bit_gives_an_error_or_the_right_answer(
    healthy: Path, shards: Path, place: float, bit: int, file: int
) -> None:
    path = shards / (MANIFEST if file == SHARDS else name_shard(file))
    intact = path.read_bytes()
    at = int(place * len(intact))
    path.write_bytes(intact[:at] + bytes([intact[at] ^ 1 << bit]) + intact[at + 1 :])
    try:
        with suppress(SnapshotError):
            assert ask(shards) == ask(healthy)
    finally:
        path.write_bytes(intact)


def test_a_shard_of_another_build_is_refused(cli: Cli, shards: Path, other: Path) -> None:
    name = name_shard(find_shard("a", SHARDS))
    shutil.copy(other / name, shards / name)

    for command in (["get", "a", "-s"], ["snapshot", "verify"], ["servers", "-s"]):
        ran = cli(*command, str(shards))
        assert (ran.exit_code, ran.stdout) == (3, b"")
        assert f"{shards}/{name}: not the file that manifest.json lists: its root" in ran.stderr


def test_shards_of_different_instants_are_refused(
    cli: Cli, healthy: Path, shards: Path, tmp_path: Path
) -> None:
    later = build(tmp_path / "later", 5, AS_OF + DAY).parent / "shards"
    name = name_shard(find_shard("a", SHARDS))
    shutil.copy(later / name, shards / name)
    with closing(open_file(str(healthy))) as snapshot:
        write_manifest(shards, snapshot, [name_shard(number) for number in range(SHARDS)])
    ran = cli("get", "a", "-s", str(shards))

    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert f"{shards}/{name}: ends at another instant than manifest.json; copy" in ran.stderr


def test_a_server_in_the_wrong_shard_is_found_out(cli: Cli, healthy: Path, shards: Path) -> None:
    number = find_shard("a", SHARDS)
    first, second = name_shard(number), name_shard((number + 1) % SHARDS)
    (shards / first).rename(shards / "other")
    (shards / second).rename(shards / first)
    (shards / "other").rename(shards / second)
    with closing(open_file(str(healthy))) as snapshot:
        write_manifest(shards, snapshot, [name_shard(number) for number in range(SHARDS)])

    for command in (["get", "cfxId:x-a", "-s"], ["servers", "-s"], ["snapshot", "verify"]):
        ran = cli(*command, str(shards))
        assert (ran.exit_code, ran.stdout) == (3, b"")
        assert " belongs in shard-00" in ran.stderr


def test_verify_finds_a_cfx_id_that_two_shards_have(
    cli: Cli, healthy: Path, shards: Path, tmp_path: Path
) -> None:
    number = find_shard("a", SHARDS)
    elsewhere = next(one for one in IDS if find_shard(one, SHARDS) != number)
    records = [server("a", cfxId="own"), server(elsewhere, cfxId="x-a")]
    (tmp_path / "more").mkdir()
    more = build_in(tmp_path / "more", records, [("a", AS_OF, 1)])
    name = name_shard(find_shard(elsewhere, SHARDS))
    shutil.copy(write_shards(more, tmp_path / "of-more", SHARDS) / name, shards / name)
    with closing(open_file(str(healthy))) as snapshot:
        write_manifest(shards, snapshot, [name_shard(number) for number in range(SHARDS)])
    edit(shards, lambda value: value.update(observations=count_observations(value)))
    ran = cli("snapshot", "verify", str(shards))

    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert ": another shard has its cfxId, too); copy" in ran.stderr


def count_observations(manifest: Any) -> int:
    return sum(shard["observations"] for shard in manifest["shards"])


def test_verify_compares_the_manifest_with_the_first_observation(cli: Cli, shards: Path) -> None:
    edit(shards, lambda value: value.update(firstObservedAt="2026-01-01T00:00:00.000Z"))
    ran = cli("snapshot", "verify", str(shards))

    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert "damaged (the first or last observation of manifest.json); copy" in ran.stderr
