"""Update snapshots: an updated one equals one built from all sources."""

import json
import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from conftest import AS_OF, DAY, Build, Cli, csv, few_examples, ndjson, server
from snapshot.observed import Observed, draw_fleets
from srvstat import open_snapshot
from srvstat.cli.app import main
from srvstat.cli.sources import SourceOptions, parse_sources
from srvstat.snapshot.rows import BLOCK_SIZE, BLOCKS_PER_SERVER
from srvstat.snapshot.write.build import build
from support.snapshots import change, forge, parse_summary, read_observations, read_root

Row = tuple[str, int, int]

NOTHING_KEPT = 6


def write_sources(
    folder: Path, name: str, records: dict[str, dict[str, Any]], rows: Iterable[Row]
) -> list[str]:
    """Write sources, and return the options that name them."""
    servers, observations = folder / f"{name}.ndjson", folder / f"{name}.csv"
    servers.write_bytes(ndjson(records.values()))
    observations.write_bytes(csv(rows))
    return [f"--servers={servers}", f"--observations={observations}", "--quiet"]


def build_snapshot(path: Path, *options: str) -> str:
    """Build a snapshot, and return its path."""
    assert main(["snapshot", "build", str(path), "--allow-empty", *options]) == 0
    return str(path)


def read_content(path: str) -> dict[str, Any]:
    """Return all rows, except what a file says about its sources, by table.

    The rows of a server have its id in place of its number.
    """
    with closing(sqlite3.connect(path)) as connection:
        ids = dict(connection.execute("SELECT server, id FROM servers"))
        content: dict[str, Any] = {
            table: {
                (ids[row[0] // per_server], row[0] % per_server): row[1:]
                for row in connection.execute(f"SELECT * FROM {table}")  # noqa: S608 - our own names
            }
            for table, per_server in (("servers", 1), ("blocks", BLOCKS_PER_SERVER))
        }
        content["directory"] = connection.execute(
            "SELECT bucket, entries FROM directory"
        ).fetchall()
        content["file"] = connection.execute(
            "SELECT as_of, server_count, observation_count, first_observed_at, last_observed_at,"
            " bucket_digests, root FROM snapshot"
        ).fetchone()
    return content


@st.composite
def draw_blocks(draw: st.DrawFn) -> Observed:
    """Draw a server whose last block is nearly full, full, or new."""
    drawn = random.Random(draw(st.integers(0, 2**32)))  # noqa: S311 - not for secrets
    count = draw(st.sampled_from([1, 2])) * BLOCK_SIZE + draw(st.integers(-2, 2))
    highest = draw(st.sampled_from([3, 900, 5_000, 2**53 - 1]))
    instants = sorted(drawn.sample(range(AS_OF, AS_OF + 9 * count), count))
    return Observed(instants, [drawn.randint(0, highest) for _ in instants])


@st.composite
def draw_parts(draw: st.DrawFn) -> tuple[list[Row], list[Row]]:
    """Draw the rows of a snapshot and those of an update: later ones, late ones, and repeats."""
    fleet = draw(draw_fleets()) | {"many-blocks": draw(draw_blocks())}
    before: list[Row] = []
    after: list[Row] = []
    for name, observed in fleet.items():
        rows = observed.rows(name)
        split = draw(st.integers(0, len(rows)) | st.sampled_from([len(rows) - 1, len(rows)]))
        late = draw(st.sets(st.integers(0, max(split - 1, 0)), max_size=2))
        again = draw(st.sets(st.integers(0, max(split - 1, 0)), max_size=2))
        before += [row for at, row in enumerate(rows[:split]) if at not in late]
        after += [rows[at] for at in sorted(late) if at < split] + rows[max(split, 0) :]
        after += [
            (name, rows[at][1], draw(st.just(rows[at][2]) | st.just(7)))
            for at in again
            if at < split
        ]
    return before, draw(st.permutations(after)) if draw(st.booleans()) else after


FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "hostname": st.sampled_from(["one", "two"]),
        "players": st.just({"current": 5, "max": 9}),
        "firstSeenAt": st.just(5),
        "updatedAt": st.just(6),
        "publishable": st.sampled_from([True, True, False]),
    },
)
NAMES = ("few-values", "many-blocks", "lonely", "many-values", "silent")


@st.composite
def draw_records(draw: st.DrawFn, *, has_swap: bool = False) -> dict[str, dict[str, Any]]:
    """Draw the records of some servers; with `has_swap`, two of them can swap their cfxIds."""
    names = draw(st.sets(st.sampled_from(NAMES)))
    records = {name: server(name, **draw(FIELDS)) for name in sorted(names)}
    if has_swap and {"lonely", "many-values"} <= names and draw(st.booleans()):
        records["lonely"]["cfxId"] = "x-many-values"
        records["many-values"]["cfxId"] = "x-lonely"
    return records


@settings(max_examples=few_examples(), suppress_health_check=[HealthCheck.too_slow])
@given(draw_parts(), draw_records(), draw_records(has_swap=True))
def test_an_updated_snapshot_equals_one_built_from_everything(
    parts: tuple[list[Row], list[Row]],
    old: dict[str, dict[str, Any]],
    new: dict[str, dict[str, Any]],
) -> None:
    before, after = parts
    old = {name: server(name) for name in NAMES[:2]} | old
    is_known = {name for name, record in old.items() if record.get("publishable", True)}
    kept = [row for row in before if row[0] in is_known]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = write_sources(folder, "old", old, before)
        as_of = max([at for _, at, _ in kept], default=0)
        path = build_snapshot(folder / "u.db", *sources, f"--at={as_of}")
        updated = main(["snapshot", "update", path, *write_sources(folder, "new", new, after)])
        event(f"exit {updated}")
        if updated == NOTHING_KEPT:
            assert read_root(path) == read_root(build_snapshot(folder / "o.db", *sources))
            return

        assert updated == 0
        sources = write_sources(folder, "all", old | new, [*kept, *after])
        with open_snapshot(path) as file:
            built = build_snapshot(folder / "all.db", *sources, f"--at={file.as_of}")
        assert read_content(path) == read_content(built)
        assert main(["snapshot", "verify", path]) == 0


GAME = ["--game", "game_a"]
SLUGS = ["--slug-ids"]
BUILD = ["snapshot", "build", "--overwrite", "--observations", "old.csv"]
UPDATE = ["snapshot", "update", "out.db"]
NEW = ["--observations", "new.csv"]
SERVERS = ["--servers", "servers.ndjson"]


def write(old: list[str], new: list[str]) -> None:
    """Write an observation of each identifier in two files."""
    Path("old.csv").write_bytes(csv([(name, 5, 1) for name in old]))
    Path("new.csv").write_bytes(csv([(name, 6, 2) for name in new]))


def list_servers(cli: Cli) -> list[str]:
    return [one["id"] for one in cli("servers", "-s", "out.db", "--json").json["servers"]]


@pytest.mark.usefixtures("empty_directory")
def test_a_withheld_server_does_not_become_one_again(cli: Cli) -> None:
    write(["a", "hidden"], ["a", "b", "hidden"])
    drafted = cli("snapshot", "draft-servers", "--observations", "old.csv", *GAME).stdout
    records = [json.loads(line) for line in drafted.splitlines()]
    withheld = records[1] | {"publishable": False}

    Path("servers.ndjson").write_bytes(ndjson([records[0], withheld]))
    assert cli(*BUILD, "out.db", *SERVERS).exit_code == 0
    assert cli(*UPDATE, *NEW, *GAME).exit_code == 0
    assert list_servers(cli) == ["a"]

    assert cli(*BUILD, "out.db", *GAME).exit_code == 0
    Path("servers.ndjson").write_bytes(ndjson([withheld]))
    assert cli(*UPDATE, *SERVERS).exit_code == 0
    assert cli(*UPDATE, *NEW, *GAME).exit_code == 0
    assert list_servers(cli) == ["a"]


@pytest.mark.usefixtures("empty_directory")
def test_a_server_with_a_record_needs_no_observation(cli: Cli) -> None:
    write(["a"], ["a", "b"])
    Path("servers.ndjson").write_bytes(ndjson([server("quiet")]))
    assert cli(*BUILD, "out.db", *GAME).exit_code == 0
    assert cli(*UPDATE, *SERVERS).exit_code == 0

    ran = cli(*UPDATE, *NEW, *GAME)

    assert parse_summary(ran)["servers"] == "3 (1 added)"
    assert list_servers(cli) == ["a", "b", "quiet"]


@pytest.mark.usefixtures("empty_directory")
def test_an_identifier_that_is_the_id_of_another_one_is_not_joined_unseen(cli: Cli) -> None:
    write(["MAIN_LOBBY"], ["main-lobby"])
    assert cli(*BUILD, "out.db").exit_code == 0

    ran = cli(*UPDATE, *NEW)

    assert (ran.exit_code, "serverId: the id that another identifier got; " in ran.stderr) == (
        6,
        True,
    )
    joined = server("main-lobby", sourceId=["MAIN_LOBBY", "main-lobby"])
    Path("servers.ndjson").write_bytes(ndjson([joined]))
    assert cli(*UPDATE, *SERVERS).exit_code == 0
    assert cli(*UPDATE, *NEW).exit_code == 0
    assert read_observations("out.db") == [("main-lobby", 5, 1), ("main-lobby", 6, 2)]


MISSING_GAME = (
    "server b-c: no game in its metadata, which the response of Get Server needs; set it with"
    " srvstat snapshot update out.db --game game_a or --game game_b"
)


@pytest.mark.usefixtures("empty_directory")
def test_new_servers_are_added_without_an_option_and_a_game_later(cli: Cli) -> None:
    write(["a", "b c"], ["a", "d e", "異環"])
    assert cli(*BUILD, "out.db").exit_code == 0
    assert cli(*BUILD, "all.db", *NEW).exit_code == 0

    ran = cli(*UPDATE, *NEW)

    assert parse_summary(ran)["servers"] == "4 (2 added)"
    assert read_content("out.db") == read_content("all.db")
    listed = cli("servers", "-s", "out.db", "--json").json["servers"]
    assert [one["game"] for one in listed] == [None] * 4
    missing = cli("get", "b-c", "-s", "out.db")
    assert (missing.exit_code, missing.stdout, missing.stderr) == (
        2,
        b"",
        f"error: {MISSING_GAME}\n",
    )

    assert cli(*UPDATE, *GAME).exit_code == 0
    assert cli("get", "b-c", "-s", "out.db").json["data"]["game"] == "game_a"
    assert cli(*BUILD, "all.db", *NEW, *GAME).exit_code == 0
    assert read_content("out.db") == read_content("all.db")


OWN_NAMES = st.sampled_from(["a", "B c", "Süd", "異環", "d_e", "#?", "F-1", "x" * 130, "g.h:1"])


@settings(max_examples=few_examples(), suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(OWN_NAMES, min_size=1), st.lists(OWN_NAMES, min_size=1))
def test_an_update_with_new_names_equals_a_build_from_everything(
    old: list[str], new: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        files = [Path(name, part) for part in ("old.csv", "new.csv")]
        for start, (file, names) in enumerate(zip(files, (old, new), strict=True)):
            rows = [(each, AS_OF + 100 * start + at, at) for at, each in enumerate(names)]
            file.write_bytes(csv(rows))
        updated, built = str(Path(name, "u.db")), str(Path(name, "b.db"))

        assert main(["snapshot", "build", updated, str(files[0]), "--quiet"]) == 0
        assert main(["snapshot", "update", updated, str(files[1]), "--quiet"]) == 0
        assert main(["snapshot", "build", built, *map(str, files[::-1]), "--quiet"]) == 0

        assert read_content(updated) == read_content(built)


@pytest.mark.usefixtures("empty_directory")
def test_an_update_keeps_how_the_snapshot_was_read(cli: Cli) -> None:
    write(["a"], ["a"])
    Path("old.csv").write_text(f"when,name,count\n{AS_OF},a,5\n")
    columns = {"id": "name", "at": "when", "players": "count"}
    given = ",".join(f"{key}={name}" for key, name in columns.items())
    inputs = parse_sources(SourceOptions(observations=["old.csv"], columns=given, hold=True))
    reading = {"columns": columns, "hold": True}
    build("out.db", replace(inputs.inputs, reading=json.dumps(reading)))

    assert cli(*UPDATE, *NEW).exit_code == 0

    assert cli("snapshot", "info", "out.db").json["reading"] == reading
    shown = cli("snapshot", "info", "out.db", "--table").stdout.decode()
    assert "\nread with     --columns id=name,at=when,players=count --hold\n" in shown
    bundle = ["snapshot", "bundle", "a", "-s", "out.db", "-o"]
    assert cli(*bundle, "whole.db").exit_code == cli(*bundle, "cut.db", "--redact").exit_code == 0
    assert cli("snapshot", "info", "whole.db").json["reading"] == reading
    assert cli("snapshot", "info", "cut.db").json["reading"] == {"hold": True}
    forge("cut.db", "UPDATE snapshot SET reading = '[]'")
    assert cli("snapshot", "info", "cut.db").exit_code == 3


BUILD_WEEK = ["snapshot", "build", "--servers", "servers.ndjson", "--observations", "week.csv"]
UPDATE_WEEK = ["snapshot", "update", "out.db", "--observations", "new.csv"]


@pytest.fixture
def _built(here: Path, cli: Cli) -> None:
    assert cli(*BUILD_WEEK, "out.db").exit_code == 0
    (here / "new.csv").write_bytes(csv([("a", AS_OF - DAY + 1, 8), ("b", AS_OF + 1, 9)]))


@pytest.mark.usefixtures("_built")
@pytest.mark.parametrize(
    "harm",
    [
        partial(change, sql="DELETE FROM blocks"),
        partial(change, sql="UPDATE blocks SET counts_before = x'01' WHERE counts_before <> x''"),
        partial(forge, sql="UPDATE blocks SET time_unit = 0"),
        partial(forge, sql="UPDATE servers SET block_peaks = x''"),
    ],
)
def test_an_update_verifies_the_block_to_which_it_appends(
    harm: Callable[[str], None], build: Build, cli: Cli
) -> None:
    path = build([server("a")], [("a", AS_OF + at, at % 9) for at in range(BLOCK_SIZE + 9)])
    Path("new.csv").write_bytes(csv([("a", AS_OF + BLOCK_SIZE + at, 5) for at in range(9, 99)]))
    harm(path)
    damaged = Path(path).read_bytes()

    ran = cli("snapshot", "update", path, *UPDATE_WEEK[3:])

    assert (ran.exit_code, "of server a" in ran.stderr) == (3, True)
    assert Path(path).read_bytes() == damaged


@pytest.mark.usefixtures("_built")
def test_an_update_misses_blocks_that_it_does_not_read(build: Build, cli: Cli) -> None:
    path = build([server("a")], [("a", AS_OF + at, at % 9) for at in range(BLOCK_SIZE + 9)])
    Path("new.csv").write_bytes(csv([("a", AS_OF + BLOCK_SIZE + 9, 5)]))
    change(path, "DELETE FROM blocks WHERE players_before IS NULL")

    assert cli("snapshot", "update", path, *UPDATE_WEEK[3:]).exit_code == 4


@pytest.mark.usefixtures("_built")
def test_a_repeat_of_the_last_observation_of_a_block_changes_nothing(
    build: Build, cli: Cli
) -> None:
    rows = [("a", AS_OF + at, at % 9) for at in range(BLOCK_SIZE + 9)]
    path = build([server("a")], rows[:-1])
    Path("new.csv").write_bytes(csv([rows[BLOCK_SIZE - 1], rows[-1]]))

    assert cli("snapshot", "update", path, *UPDATE_WEEK[3:]).exit_code == 0
    assert read_root(path) == read_root(build([server("a")], rows))


@pytest.mark.usefixtures("_built")
def test_strict_names_a_conflict_before_a_last_line_that_may_be_cut_off(cli: Cli) -> None:
    Path("new.csv").write_bytes(csv([("a", AS_OF, 99), ("b", AS_OF + 1, 147)])[:-1])

    ran = cli(*UPDATE_WEEK, "--strict")

    assert ran.exit_code == 6
    assert ran.stderr.startswith("error: new.csv, line 2: players: conflicts with an earlier row")


@pytest.mark.usefixtures("_built")
def test_a_source_id_without_a_slug_stays(cli: Cli) -> None:
    Path("servers.ndjson").write_bytes(ndjson([server("a", sourceId="é"), server("b")]))
    assert cli(*BUILD_WEEK, "out.db", "--overwrite").exit_code == 0

    assert cli(*UPDATE_WEEK).exit_code == 0

    found = cli("snapshot", "info", "out.db").json["identifiers"]
    assert [one["sourceId"] for one in found if one["id"] == "a"] == ["é"]
