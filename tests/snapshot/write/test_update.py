"""Update snapshots: an updated one equals one built from all sources."""

import random
import sqlite3
import tempfile
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from conftest import AS_OF, csv, few_examples, ndjson, server
from snapshot.observed import Observed, draw_fleets
from srvstat import open_snapshot
from srvstat.cli.app import main
from srvstat.snapshot.rows import BLOCK_SIZE, BLOCKS_PER_SERVER

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


def read_root(path: str) -> str:
    """Return the root of a snapshot."""
    with open_snapshot(path) as file:
        return file.root


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
        path = build_snapshot(folder / "u.db", *sources, f"--as-of={as_of}")
        updated = main(["snapshot", "update", path, *write_sources(folder, "new", new, after)])
        event(f"exit {updated}")
        if updated == NOTHING_KEPT:
            assert read_root(path) == read_root(build_snapshot(folder / "o.db", *sources))
            return

        assert updated == 0
        sources = write_sources(folder, "all", old | new, [*kept, *after])
        with open_snapshot(path) as file:
            built = build_snapshot(folder / "all.db", *sources, f"--as-of={file.as_of}")
        assert read_content(path) == read_content(built)
        assert main(["snapshot", "verify", path]) == 0
