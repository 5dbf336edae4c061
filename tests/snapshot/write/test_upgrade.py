"""Upgrade real snapshots of formats 1 to 7: the result gives the same answers."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from conftest import Cli
from srvstat.cli.main import main
from srvstat.contract.errors import OutputError
from srvstat.snapshot.write.upgrade import upgrade
from support.old_formats import (
    BUILD,
    BUNDLE_VERSIONS,
    VERSIONS,
    read_answers,
    read_old_file,
    write_old_file,
)
from support.shards import write_shards
from support.snapshots import read_root

NO_DIGESTS = {
    1: "only the structure of the file was verified",
    2: "only the observations and the structure of the file were verified",
}

CheckAnswers = Callable[[str, Path], None]


@pytest.fixture
def check_answers(cli: Cli) -> CheckAnswers:
    """Check that a snapshot gives the answers that older versions gave."""

    def check(name: str, path: Path) -> None:
        for answer in read_answers(name):
            ran = cli(*answer["arguments"], "--snapshot", str(path))
            expected = answer["exitCode"], answer["stdout"].encode()
            assert (ran.exit_code, ran.stdout) == expected, answer["arguments"]

    return check


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a snapshot that was built from the sources of the old ones."""
    path = tmp_path_factory.mktemp("built") / "built.db"
    assert main(["snapshot", "build", str(path), *BUILD]) == 0
    return path


def test_a_snapshot_of_the_current_format_answers_as_old_versions_did(
    built: Path, check_answers: CheckAnswers
) -> None:
    check_answers("answers", built)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_upgraded_snapshot_equals_one_that_is_built_from_the_sources(
    version: int, built: Path, tmp_path: Path, cli: Cli
) -> None:
    path = write_old_file(f"format-{version}", tmp_path / "old.db")
    without = NO_DIGESTS.get(version)
    warning = f"warning: {path}: format {version} has no digests, so {without}\n"

    ran = cli("snapshot", "upgrade", path, "--quiet")

    assert (ran.exit_code, ran.stderr) == (0, warning if without else "")
    assert Path(path).read_bytes() == built.read_bytes()


@pytest.mark.parametrize("version", BUNDLE_VERSIONS)
def test_an_upgraded_bundle_answers_as_before_and_keeps_its_parent(
    version: int, tmp_path: Path, cli: Cli, check_answers: CheckAnswers
) -> None:
    parent_root = read_root(write_old_file(f"format-{version}", tmp_path / "parent.db")).hex()
    path = write_old_file(f"format-{version}-bundle", tmp_path / "old.db")

    assert cli("snapshot", "upgrade", path).exit_code == 0

    check_answers("bundle-answers", Path(path))
    assert cli("snapshot", "verify", path).exit_code == 0
    info = cli("snapshot", "info", path).json
    assert (info["parentRoot"], info["coveredFrom"]) == (parent_root, "2025-12-01T00:00:00.000Z")


def test_an_output_leaves_the_old_file_as_it_is(tmp_path: Path, cli: Cli) -> None:
    path, output = write_old_file("format-5", tmp_path / "old.db"), tmp_path / "new.db"
    output.write_bytes(b"another file")
    command = ["snapshot", "upgrade", path, "-o", str(output)]

    refused = cli(*command)
    itself = cli("snapshot", "upgrade", path, "-o", path, "--overwrite")
    ran = cli(*command, "--overwrite")

    assert itself.stderr == f"error: {path}: is also PATH; leave out --output to replace it\n"
    assert refused.stderr == f"error: {output}: exists; --overwrite replaces it\n"
    assert (itself.exit_code, refused.exit_code, ran.exit_code) == (2, 2, 0)
    assert Path(path).read_bytes() == read_old_file("format-5")
    old_root, root = read_root(path).hex(), read_root(str(output)).hex()
    assert ran.stderr.splitlines() == [
        f"upgraded {path} to {output}",
        "  format        8 (was 5)",
        "  servers       7",
        "  observations  1,173",
        "  as of         2026-03-01 12:00:00.500 UTC",
        f"  old root      {old_root}",
        f"  root          {root}",
    ]


def test_a_file_that_is_replaced_keeps_its_rights_and_its_link(tmp_path: Path, cli: Cli) -> None:
    path, link = Path(write_old_file("format-2", tmp_path / "old.db")), tmp_path / "link.db"
    path.chmod(0o640)
    link.symlink_to(path)

    assert cli("snapshot", "upgrade", str(link)).exit_code == 0

    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(tmp_path.iterdir()) == [link, path]


def test_a_file_that_is_replaced_meanwhile_stays(tmp_path: Path) -> None:
    path, other = write_old_file("format-4", tmp_path / "old.db"), tmp_path / "other.db"
    other.write_bytes(b"another file")

    def replace(_done: int, _of: int) -> None:
        if other.exists():
            other.replace(path)

    with pytest.raises(OutputError, match="was replaced or changed meanwhile; try again"):
        upgrade(path, progress=replace)

    assert Path(path).read_bytes() == b"another file"


def test_a_journal_beside_the_output_is_refused(tmp_path: Path, cli: Cli) -> None:
    path, output = write_old_file("format-4", tmp_path / "old.db"), tmp_path / "new.db"
    Path(f"{output}-wal").write_bytes(b"rows of another program")

    ran = cli("snapshot", "upgrade", path, "-o", str(output))

    assert ran.exit_code == 2
    assert f"{output}-wal exists, and SQLite would apply it" in ran.stderr
    assert not output.exists()


def test_a_damaged_snapshot_of_the_current_format_is_refused(
    built: Path, tmp_path: Path, cli: Cli
) -> None:
    damaged, no_shards = tmp_path / "damaged.db", tmp_path / "no-shards"
    damaged.write_bytes(built.read_bytes())
    no_shards.mkdir()
    with closing(sqlite3.connect(damaged)) as connection, connection:
        connection.execute("UPDATE snapshot SET repeated = repeated + 1")

    for path in (damaged, no_shards):
        assert cli("snapshot", "upgrade", str(path)).exit_code == 3


def test_a_snapshot_of_the_current_format_stays_as_it_is(
    built: Path, tmp_path: Path, cli: Cli
) -> None:
    shards = write_shards(built, tmp_path / "shards", 1)
    output = tmp_path / "new.db"
    for path in (built, shards):
        content = built.read_bytes()

        ran = cli("snapshot", "upgrade", str(path))
        refused = cli("snapshot", "upgrade", str(path), "-o", str(output))

        assert (ran.exit_code, ran.stderr) == (0, f"{path} has format 8 already\n")
        assert refused.exit_code == 2
        assert f"{path}: already has format 8, so {output} is not written" in refused.stderr
        assert built.read_bytes() == content
    assert not output.exists()
