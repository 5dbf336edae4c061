"""Export snapshots, and build them again."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import AS_OF, DAY, Cli, build_in, few_examples, server
from snapshot.observed import Observed, draw_fleets
from srvstat import open_snapshot
from srvstat.cli.app import main
from srvstat.contract.time import format_instant
from support.snapshots import change

CSV = b"""serverId,observedAt,players
a,2026-02-28T23:59:59.999Z,5
a,2026-03-01T00:00:00.000Z,7
b,2026-02-01T00:00:00.000Z,0
"""
MARCH = 1_772_323_200_000
"""2026-03-01T00:00Z."""

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
RECORDS = st.fixed_dictionaries(
    {},
    optional={
        "hostname": TEXTS,
        "projectName": TEXTS | st.none(),
        "tags": st.lists(TEXTS, max_size=2),
        "iconUrl": TEXTS | st.none(),
        "offline": st.booleans(),
        "players": st.fixed_dictionaries(
            {}, optional={name: st.integers(0, 2**53 - 1) for name in ("current", "max")}
        ),
        "firstSeenAt": st.integers(0, AS_OF).map(format_instant),
        "updatedAt": st.integers(0, AS_OF),
        "completed": st.sets(st.sampled_from(["cfxId", "hostname"])).map(sorted),
    },
)
FORMS = ("csv", "ndjson", "parquet")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a snapshot of observations of two months, and of a server without any."""
    records = [server("b"), server("a"), server("none")]
    rows = [("a", MARCH - 1, 5), ("a", MARCH, 7), ("b", MARCH - 28 * DAY, 0)]
    return str(build_in(tmp_path_factory.mktemp("small"), records, rows))


@pytest.fixture
def here(tmp_path: Path, small: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty directory with a default snapshot."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", small)
    return tmp_path


def build_again(output: Path, snapshot: Path, *sources: str) -> str:
    """Build a snapshot as of the time of another one, and return its root."""
    with open_snapshot(str(snapshot)) as file:
        options = [f"--as-of={file.as_of}", "--allow-empty", "--quiet"]
    assert main(["snapshot", "build", str(output), *sources, *options]) == 0
    with open_snapshot(str(output)) as file:
        return file.root


def export(snapshot: Path, folder: Path, *options: str) -> list[str]:
    """Export a snapshot, and return the options of a build that read the export."""
    command = ["snapshot", "export", "-s", str(snapshot), "-o", str(folder), *options]
    assert main(command) == 0
    (observations,) = folder.glob("observations*")
    return [f"--servers={folder}/servers.ndjson", f"--observations={observations}"]


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=few_examples() // 3, suppress_health_check=[HealthCheck.too_slow])
@given(fleet=draw_fleets(), fields=st.lists(RECORDS, min_size=5, max_size=5))
def test_a_build_of_an_export_or_of_the_snapshot_has_the_same_root(
    form: str, fleet: dict[str, Observed], fields: list[dict[str, Any]]
) -> None:
    records = [
        server(name, sourceId=f"{name}: {name}", publishable=name != "hidden", **own)
        for name, own in zip([*fleet, "hidden"], fields, strict=True)
    ]
    rows = [row for name, observed in fleet.items() for row in observed.rows(name)]
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        snapshot = build_in(folder, records, rows)
        with open_snapshot(str(snapshot)) as file:
            root = file.root
        sources = export(snapshot, folder / "export", "--format", form)
        assert build_again(folder / "again.db", snapshot, *sources) == root
        itself = ["--from=snapshot", f"--observations={snapshot}"]
        assert build_again(folder / "copy.db", snapshot, *itself) == root


@pytest.mark.usefixtures("here")
def test_parquet_is_read_by_pyarrow(cli: Cli) -> None:
    expected = [("a", MARCH - 1, 5), ("a", MARCH, 7), ("b", MARCH - 28 * DAY, 0)]

    assert cli("snapshot", "export", "--format", "parquet", "-o", "p").exit_code == 0
    table = pq.read_table("p/observations.parquet")
    columns = [table["serverId"], table["observedAt"].cast("int64"), table["players"]]
    assert list(zip(*(column.to_pylist() for column in columns), strict=True)) == expected
    assert str(table.schema.field("observedAt").type) == "timestamp[ms, tz=UTC]"


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["-o", "folder"], 2, "error: folder: exists; name a new folder\n"),
        (["-o", "folder/"], 2, "error: folder/: exists; name a new folder\n"),
        (["-o", ""], 2, "error: -o: the name is empty; name a file\n"),
        (["-o", "no/folder"], 4, "error: no/folder: No such file or directory\n"),
        (
            ["-o", "x", "id:A"],
            44,
            "error: SERVER_NOT_FOUND: Server not found\nno id A; did you mean id:a?\n",
        ),
        (["-o", "x", "-s", "none.db"], 3, "error: none.db: no such file; "),
    ],
)
def test_an_export_is_refused_before_it_writes(
    options: list[str], code: int, message: str, here: Path, cli: Cli
) -> None:
    (here / "folder").mkdir()

    ran = cli("snapshot", "export", *options)

    assert (ran.exit_code, ran.stderr.startswith(message)) == (code, True), ran.stderr
    assert [path.name for path in here.iterdir()] == ["folder"]


def test_damage_in_the_middle_leaves_no_folder(here: Path, small: str, cli: Cli) -> None:
    (here / "damaged.db").write_bytes(Path(small).read_bytes())
    change("damaged.db", "UPDATE blocks SET sum_before = x'09'")

    ran = cli("snapshot", "export", "-s", "damaged.db", "-o", "x")

    assert ran.exit_code == 3
    assert "damaged.db: damaged (observations of server a from " in ran.stderr
    assert [path.name for path in here.iterdir()] == ["damaged.db"]


@pytest.mark.slow
def test_a_full_disk_leaves_no_folder(here: Path) -> None:
    command = f"ulimit -f 1; exec {sys.executable} -B -m srvstat snapshot export -o full"
    many = [("a", AS_OF - at * 1000, at) for at in range(500)]
    snapshot = build_in(here, [server("a")], many)

    done = subprocess.run(
        ["sh", "-c", f"{command} -s {snapshot}"], capture_output=True, check=False, timeout=60
    )

    assert (done.returncode, done.stderr) == (4, b"error: full: File too large\n")
    assert not [path for path in here.iterdir() if "full" in path.name]
