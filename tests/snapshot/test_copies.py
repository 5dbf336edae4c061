"""A bundle answers as its parent does, and refuses what it doesn't cover."""

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import AS_OF, DAY, Build, Cli, build_in, few_examples, ndjson, server
from snapshot.observed import Observed, draw_fleets
from srvstat import open_snapshot
from srvstat.cli.app import main
from srvstat.contract.errors import SnapshotError, UsageError
from srvstat.contract.requests import ServerReference, build_compare_request
from srvstat.contract.time import LATEST, format_instant
from srvstat.contract.windows import DAYS, Range, find_window
from srvstat.documents.snapshot import BundleSummary
from srvstat.operations.answers import NotInBundleError, compare, get_server, resolve_servers
from srvstat.snapshot.read.file import SnapshotFile, open_file
from srvstat.snapshot.read.verify import verify
from srvstat.snapshot.write.copies import write_bundle
from support.snapshots import change, forge, read_observations


def find_references(*names: str) -> list[ServerReference]:
    return [ServerReference(identifier=name, by="id") for name in names]


def bundle(path: str, output: str, names: Sequence[str], range: Range, **options: Any) -> str:
    """Write a bundle and return its path."""
    write(path, output, names, range, **options)
    return output


def write(
    path: str, output: str, names: Sequence[str], range: Range, **options: Any
) -> BundleSummary:
    with closing(open_file(path)) as parent:
        servers = resolve_servers(parent, find_references(*names))
        return write_bundle(output, parent, servers, range, **options)


@contextmanager
def open_both(parent: str, path: str) -> Iterator[tuple[SnapshotFile, SnapshotFile]]:
    with closing(open_file(parent)) as first, closing(open_file(path)) as second:
        yield first, second


def draw_instants(fleet: dict[str, Observed], covered_from: int) -> st.SearchStrategy[int]:
    """Draw instants next to observations and to the first one with a covered window."""
    seen = {at for one in fleet.values() for at in one.instants}
    edges = {covered_from + days * DAY for days in DAYS.values()}
    marks = st.sampled_from(sorted(seen)) | st.sampled_from(sorted(edges))
    nearby = st.builds(int.__add__, marks, st.sampled_from([-DAY, -1, 0, 1, DAY]))
    return nearby.map(lambda at: min(max(at, 0), LATEST))


def check_comparison(
    parent: SnapshotFile, bundled: SnapshotFile, names: Sequence[str], range: Range, at: int | None
) -> None:
    """Compare the answers of both files, or expect a refusal by the bundle."""
    request = build_compare_request(names, range=range)
    start = find_window(range, parent.as_of if at is None else at).start
    assert bundled.covered_from is not None
    if start < bundled.covered_from:
        with pytest.raises(NotInBundleError, match="a bundle that covers"):
            compare(bundled, request, at=at)
    else:
        expected = compare(parent, request, at=at).to_json()
        assert compare(bundled, request, at=at).to_json() == expected


@settings(max_examples=few_examples(), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fleet=draw_fleets(), data=st.data())
def test_a_bundle_answers_as_its_parent_or_refuses(
    fleet: dict[str, Observed], data: st.DataObject, build: Build
) -> None:
    as_of = data.draw(st.sampled_from([max(one.instants, default=0) for one in fleet.values()]))
    rows = [row for name, one in fleet.items() for row in one.rows(name)]
    path = build(map(server, fleet), rows, "--allow-empty", "--at", str(as_of))
    names = data.draw(st.lists(st.sampled_from([*fleet]), min_size=1))
    longest = data.draw(st.sampled_from([*DAYS]))

    summary = write(path, f"{path}.case", names, longest)

    found = verify(f"{path}.case")
    assert (found.root, found.observations) == (summary.root, summary.observations)
    with open_both(path, f"{path}.case") as (parent, bundled):
        assert bundled.parent_root == parent.root == summary.parent_root
        covered_from = (as_of - DAYS[longest] * DAY) // DAY * DAY
        assert bundled.covered_from == covered_from == summary.covered_from
        instants = st.lists(draw_instants(fleet, covered_from), max_size=3)
        for at, each in product([None, *data.draw(instants)], DAYS):
            check_comparison(parent, bundled, [names[0], f"cfxId:x-{names[-1]}"], each, at)
        for name, reference in zip(fleet, find_references(*fleet), strict=True):
            if name in names:
                assert get_server(bundled, reference) == get_server(parent, reference)
            else:
                with pytest.raises(NotInBundleError, match=f"a bundle without id {name}"):
                    get_server(bundled, reference)
                with pytest.raises(NotInBundleError):
                    compare(bundled, build_compare_request([names[0], name], range="24h"))


def test_coverage_begins_at_a_midnight_and_includes_it(build: Build) -> None:
    midnight = (AS_OF - 7 * DAY) // DAY * DAY
    rows = [("a", midnight + step, step + 9) for step in (-1, 0, 1, 2, 7 * DAY)]
    path = build([server("a")], rows, "--at", str(AS_OF))

    case = bundle(path, f"{path}.case", ["a"], "7d")

    assert read_observations(case) == rows[1:]
    with open_both(path, case) as (parent, bundled):
        assert bundled.covered_from == midnight
        for (each, days), step in product(DAYS.items(), (-1, 0, 1)):
            at = midnight + days * DAY + step
            check_comparison(parent, bundled, ["a", "cfxId:x-a"], each, at)


def test_a_flipped_bit_of_what_a_bundle_covers_is_refused(build: Build) -> None:
    path = build([server("a")], [("a", AS_OF, 1)])
    case = Path(bundle(path, f"{path}.case", ["a"], "7d"))
    with closing(open_file(str(case))) as bundled:
        row = bundled.file_row
    assert row.parent_root is not None
    assert row.covered_from is not None
    stored = case.read_bytes()
    parts = (row.parent_root, row.covered_from.to_bytes(6))
    assert [stored.count(part) for part in parts] == [1, 1]

    for part in parts:
        first = 8 * stored.index(part)
        for bit in range(first, first + 8 * len(part)):
            damaged = bytearray(stored)
            damaged[bit // 8] ^= 1 << bit % 8
            case.write_bytes(damaged)
            with pytest.raises(SnapshotError, match="damaged"):
                open_file(str(case))


@pytest.mark.parametrize(
    ("columns", "is_valid"),
    [
        (f"parent_root = zeroblob(32), covered_from = {-365 * DAY}", True),
        ("parent_root = zeroblob(32)", False),
        ("covered_from = 0", False),
        ("parent_root = zeroblob(31), covered_from = 0", False),
        ("parent_root = zeroblob(32), covered_from = 1", False),
        (f"parent_root = zeroblob(32), covered_from = {-366 * DAY}", False),
        (f"parent_root = zeroblob(32), covered_from = {AS_OF // DAY * DAY + DAY}", False),
    ],
)
def test_a_forged_coverage_is_refused_unless_it_is_possible(
    columns: str, is_valid: bool, build: Build
) -> None:
    path = build([server("a")], [("a", AS_OF, 1)])
    forge(path, f"UPDATE snapshot SET {columns}")  # noqa: S608 - our own values

    if is_valid:
        assert verify(path).servers == 1
    else:
        with pytest.raises(SnapshotError, match=r"damaged \(the table snapshot\)"):
            open_file(path)


def test_a_bundle_of_a_bundle_answers_as_both(build: Build) -> None:
    rows = [("a", AS_OF - days * DAY, days) for days in range(100)]
    path = build([server("a"), server("b")], rows)
    outer = bundle(path, f"{path}.outer", ["a", "b"], "90d")

    inner = write(outer, f"{path}.inner", ["a"], "90d")

    with open_both(path, f"{path}.inner") as (parent, bundled):
        assert bundled.parent_root == inner.parent_root != parent.root
        for each in DAYS:
            check_comparison(parent, bundled, ["a", "cfxId:x-a"], each, None)


def test_equal_content_has_an_equal_root_and_bundles_of_other_parents_do_not(build: Build) -> None:
    rows = [("a", AS_OF, 1), ("b", AS_OF, 2)]
    first = build([server("a"), server("b")], rows)
    second = build([server("b"), server("a")], rows[::-1])
    third = build([server("a")], rows[:1], "--at", str(AS_OF))

    roots = [write(path, f"{path}.case", ["a"], "7d").root for path in (first, second, third)]

    assert roots[0] == roots[1] != roots[2]
    assert write(first, f"{first}.30d", ["a"], "30d").root != roots[0]
    again = bundle(first, f"{first}.again", ["a", "a"], "7d")
    assert Path(again).read_bytes() == Path(f"{first}.case").read_bytes()


SECRET_TEXTS = {
    "hostname": "Høst of Alice",
    "projectName": "Alice's project",
    "projectDescription": "Call Alice at 555-0100\n" * 2_000,
    "chatUrl": "https://chat.example/alice",
    "iconUrl": "https://icons.example/alice.png",
}
SOURCE_ID = "alice.example:30120"
KEPT = {"region": "EU", "tags": ["tag-kept"], "flags": ["FLAG"], "players": {"max": 64}}


def test_redaction_leaves_none_of_the_original_texts(tmp_path: Path) -> None:
    records = [
        server("a", **SECRET_TEXTS, **KEPT, sourceId=SOURCE_ID),
        server("b", hostname="", iconUrl=None),
    ]
    path = str(build_in(tmp_path, records, [("a", AS_OF, 5)]))

    case = bundle(path, f"{path}.case", ["a", "b"], "7d", redact=True)

    found = Path(case).read_bytes()
    texts = [*SECRET_TEXTS.values(), SOURCE_ID, "Alice", "alice", "555-", "observations.csv"]
    assert [text for text in texts if text.encode() in found] == []
    verify(case)
    with open_both(path, case) as (parent, bundled):
        check_comparison(parent, bundled, ["a", "b"], "7d", None)
        (first, second) = find_references("a", "b")
        assert get_server(bundled, second) == get_server(parent, second)
        original, shown = (
            json.loads(get_server(file, first).to_json()) for file in (parent, bundled)
        )
    url = "https://redacted.invalid/"
    new = {**dict.fromkeys(SECRET_TEXTS, "redacted"), "chatUrl": url, "iconUrl": url}
    assert shown["data"] == original["data"] | new


def test_what_the_parent_counted_and_derived_is_copied(build: Build) -> None:
    rows = [("a", AS_OF - 9 * DAY, 4), ("a", AS_OF, 5), ("a", AS_OF, 5), ("a", AS_OF, 6)]
    path = build([server("a"), server("b")], [*rows, ("a", "never", 1)])

    with open_both(path, bundle(path, f"{path}.case", ["a"], "7d")) as (parent, bundled):
        row = bundled.file_row
        assert (bundled.sources, row.observation_count) == (parent.sources, 1)
        assert row.first_observed_at == row.last_observed_at == AS_OF
        assert (row.repeated, row.conflicting, row.rejected) == (1, 1, 1)
        (copied,) = resolve_servers(bundled, find_references("a"))
        assert (copied.first_seen_at, copied.current_is_fallback) == (AS_OF - 9 * DAY, 1)


@pytest.mark.parametrize("link", [None, "link.db"])
def test_the_parent_is_never_replaced(link: str | None, tmp_path: Path) -> None:
    path = build_in(tmp_path, [server("a")], [("a", AS_OF, 1)])
    output = str(tmp_path / link) if link else str(path)
    if link:
        os.symlink(path, output)
    before = path.read_bytes()

    with pytest.raises(UsageError, match="same file as the input snapshot"):
        bundle(str(path), output, ["a"], "7d", overwrite=True)
    assert path.read_bytes() == before


DAMAGE = {
    "a changed block": (change, "UPDATE blocks SET players = x'09'"),
    "observations that descend": (forge, "UPDATE blocks SET times = x'0100'"),
    "players beyond 64 bits": (
        forge,
        "UPDATE blocks SET players = x'ffffffffffffffffffffffffffffffff'",
    ),
    "tags that are no list": (forge, "UPDATE servers SET tags = '3'"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_parent_leaves_the_output_as_it_was(kind: str, tmp_path: Path) -> None:
    midnight = AS_OF // DAY * DAY
    path = build_in(tmp_path, [server("a")], [("a", midnight, 1), ("a", midnight + 1, 2)])
    harm, sql = DAMAGE[kind]
    harm(str(path), sql)
    output = tmp_path / "case.db"
    output.write_bytes(b"old")
    before = sorted(os.listdir(tmp_path))

    with pytest.raises(SnapshotError, match="damaged"):
        bundle(str(path), str(output), ["a"], "7d", overwrite=True)
    assert (output.read_bytes(), sorted(os.listdir(tmp_path))) == (b"old", before)


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
        options = [f"--at={file.as_of}", "--allow-empty", "--quiet"]
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
        itself = ["--source=snapshot", f"--observations={snapshot}"]
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
        (["-o", "folder"], 2, "error: folder: already exists; choose a new folder\n"),
        (["-o", "folder/"], 2, "error: folder/: already exists; choose a new folder\n"),
        (["-o", ""], 2, "error: -o: empty; give a file name\n"),
        (["-o", "no/folder"], 4, "error: no/folder: no such file or directory\n"),
        (["-o", "x", "id:A"], 44, "error: no server with id A; did you mean id:a?\n"),
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


BUILD = ["snapshot", "build", "new.db", "--source", "snapshot"]


@pytest.fixture
def sole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a directory with a snapshot of the servers a and b."""
    rows = [*(("a", AS_OF - day * DAY, day) for day in range(30)), ("b", AS_OF, 7)]
    build_in(tmp_path, [server("a"), server("b")], rows)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("sole")
def test_a_snapshot_is_recognized_with_its_records(cli: Cli) -> None:
    Path("snapshot.db").rename("backup")

    ran = cli("snapshot", "build", "new.db", "backup")

    assert ran.exit_code == 0, ran.stderr
    assert (
        cli("snapshot", "verify", "new.db").json["root"]
        == cli("snapshot", "verify", "backup").json["root"]
    )


@pytest.mark.usefixtures("sole")
def test_a_servers_file_replaces_the_records_of_a_snapshot(cli: Cli) -> None:
    Path("own.ndjson").write_bytes(ndjson([server("b", hostname="New")]))

    ran = cli(*BUILD, "--observations", "snapshot.db", "--servers", "own.ndjson")

    assert ran.exit_code == 0, ran.stderr
    assert "skipped      30 (30 not in the servers file)" in ran.stderr
    assert read_observations("new.db") == [("b", AS_OF, 7)]
    assert cli("servers", "-s", "new.db").json["servers"][0]["hostname"] == "New"


def test_several_snapshots_need_a_servers_file(sole: Path, cli: Cli) -> None:
    (sole / "other").mkdir()
    rows = [("a", AS_OF, 0), ("a", AS_OF - 1, 9), ("b", AS_OF, 8)]
    build_in(sole / "other", [server("a"), server("b")], rows)
    both = ["--observations", "snapshot.db", "--observations", "other/snapshot.db"]

    refused = cli(*BUILD, *both)
    ran = cli(*BUILD, *both, "--servers", "servers.ndjson")

    assert refused.exit_code == 2
    assert refused.stderr.startswith("error: --servers: missing, but needed for several sources")
    assert ran.exit_code == 0
    assert len(read_observations("new.db")) == 32
    assert "  repeated     1\n" in ran.stderr
    assert "other/snapshot.db, row 3: players: conflicts with an earlier row" in ran.stderr


@pytest.mark.usefixtures("sole")
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
        ("none.db", "none.db: no such file or directory"),
        ("servers.ndjson", "servers.ndjson: not a snapshot; "),
        ("damaged.db", "damaged.db: damaged ("),
        ("forged.db", "forged.db: damaged (the observations of server a)"),
    ],
)
def test_another_source_is_refused(name: str, message: str, sole: Path, cli: Cli) -> None:
    data = (sole / "snapshot.db").read_bytes()
    (sole / "damaged.db").write_bytes(data.replace(b"x-b", b"x-c"))
    (sole / "forged.db").write_bytes(data)
    forge("forged.db", "UPDATE blocks SET time_unit = 0")

    ran = cli(*BUILD, "--observations", name)

    assert (ran.exit_code, ran.stdout) == (6, b"")
    assert ran.stderr.startswith(f"error: {message}"), ran.stderr
    assert not Path("new.db").exists()


@pytest.mark.usefixtures("sole")
def test_a_snapshot_is_not_read_from_a_pipe(cli: Cli) -> None:
    ran = cli(*BUILD, "--observations", "-")
    other = cli(*BUILD, "--observations", "-", "--servers", "servers.ndjson")

    assert ran.stderr == "error: standard input can be read only once; use a file\n"
    assert other.stderr == (
        "error: standard input: a snapshot can't be read from a pipe; name a file\n"
    )
    assert (ran.exit_code, other.exit_code) == (2, 6)


def test_a_snapshot_is_not_built_from_itself(sole: Path, cli: Cli) -> None:
    before = (sole / "snapshot.db").read_bytes()

    ran = cli(
        *("snapshot", "build", "snapshot.db", "--overwrite"),
        *("--source", "snapshot", "--observations", "./snapshot.db"),
    )

    assert (ran.exit_code, (sole / "snapshot.db").read_bytes()) == (2, before)
    assert "snapshot.db: same file as an input" in ran.stderr
