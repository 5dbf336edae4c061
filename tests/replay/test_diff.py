"""The differences between two snapshots equal those of all rows, and `snapshot diff` shows them."""

import random
import sqlite3
import tempfile
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic.alias_generators import to_camel

from conftest import AS_OF, DAY, Build, Cli, build_in, few_examples, server
from srvstat.contract import wire
from srvstat.contract.requests import ServerReference
from srvstat.contract.time import format_instant
from srvstat.contract.windows import DAYS, Range
from srvstat.operations.answers import compute_server_results, resolve_servers
from srvstat.snapshot.read.file import SnapshotFile, open_file
from srvstat.support import diff


class Fleet(NamedTuple):
    """Server records, and the players of each server by instant."""

    records: dict[str, dict[str, Any]]
    observations: dict[str, dict[int, int]]

    @property
    def rows(self) -> list[tuple[str, int, int]]:
        """The observations as rows of a source."""
        return [
            (name, at, players)
            for name, seen in self.observations.items()
            for at, players in sorted(seen.items())
        ]


def draw_two_fleets(seed: int) -> tuple[Fleet, Fleet, int | None]:
    """Draw a fleet, a copy with a few changes, and the instant of answers, None for the default."""
    drawn = random.Random(seed)  # noqa: S311 - not for secrets
    names = drawn.sample("abcdef", drawn.randint(1, 6))
    old = Fleet(
        {name: _draw_record(name, drawn) for name in names},
        {name: _draw_observations(drawn) for name in names},
    )
    new = Fleet(dict(old.records), {name: dict(seen) for name, seen in old.observations.items()})
    for name in "abcdef":
        for kind in drawn.choices(_CHANGES, k=drawn.randint(0, 2)):
            _change(new, name, kind, drawn)
    instants = [at for fleet in (old, new) for _, at, _ in fleet.rows] or [AS_OF]
    lengths = [0, 0, DAY, 7 * DAY, 30 * DAY, 365 * DAY]
    edge = drawn.choice(instants) + drawn.choice(lengths) + drawn.choice([-1, 0, 0, 1])
    return old, new, drawn.choice([None, edge])


def _draw_record(name: str, drawn: random.Random) -> dict[str, Any]:
    fields: dict[str, Any] = {"hostname": drawn.choice("xy"), "tags": drawn.choice([[], ["t"]])}
    if drawn.random() < 0.5:
        players = {"current": drawn.randint(0, 2), "max": drawn.randint(2, 3)}
        fields |= {"players": players, "updatedAt": AS_OF}
        fields |= {
            "sourceId": f"{drawn.choice('XY')}_{name}",
            "completed": drawn.choice([[], ["game"]]),
        }
    return server(name, **fields)


def _draw_observations(drawn: random.Random) -> dict[int, int]:
    """Draw a few observations a day of few or many values, or several blocks in some hours."""
    most = drawn.choice([3, 3, 40, 2**40])
    last = AS_OF // DAY - drawn.choice([0, 0, 0, 5])
    if drawn.random() < 0.1:
        polls = range(last * DAY, last * DAY + 5_000 * 7_919, 7_919)
        return {at: drawn.randint(0, most) for at in polls}
    return {
        day * DAY + drawn.choice([0, 1, drawn.randrange(DAY // 2)]): drawn.randint(0, most)
        for day in range(last - drawn.choice([0, 3, 40, 130]), last + 1)
        for _ in range(drawn.randint(0, 3))
        if day * DAY < AS_OF
    }


_CHANGES = [*("replace", "drop") * 2, "remove", "rename", *("append", "alter", "move") * 3]
"""How a server can change; what is listed more often is drawn more often."""


def _change(fleet: Fleet, name: str, kind: str, drawn: random.Random) -> None:
    seen = fleet.observations.get(name)
    if kind == "replace":
        fleet.records[name] = _draw_record(name, drawn)
        fleet.observations.setdefault(name, {})
    elif seen is None:
        return
    elif kind == "remove":
        del fleet.records[name], fleet.observations[name]
    elif kind == "rename":
        fleet.records[name] = {**fleet.records[name], "cfxId": f"y-{name}"}
    elif kind == "append":
        first = AS_OF // DAY * DAY + drawn.choice([0, DAY, 2 * DAY])
        seen |= {first + at * 9_999: drawn.randint(0, 5) for at in range(5)}
    elif seen:
        at = drawn.choice(list(seen))
        players = seen.pop(at)
        if kind == "alter":
            seen[at] = drawn.choice([0, 1, 2**41])
        elif kind == "move":
            seen[at + 1] = players


_COLUMNS = (
    "game", "cfx_id", "hostname", "project_name", "project_description", "region",
    "players_current", "players_max", "tags", "flags", "chat_url", "icon_url", "offline",
    "first_seen_at", "updated_at", "source_id", "other_source_ids", "completed",
)  # fmt: skip
"""The columns of `servers` that a record determines, in the order of its fields."""


def _name_field(column: str) -> str:
    return column.replace("_", ".") if column.startswith("players_") else to_camel(column)


class _Content(NamedTuple):
    records: dict[str, dict[str, Any]]
    observations: dict[str, set[tuple[int, int]]]


def describe_difference(old: str, new: str, at: int | None = None) -> dict[str, Any]:
    """Return the members `servers` and `answers` of the document."""
    before, after = _read_content(old), _read_content(new)
    changed = []
    for name in sorted(before.records.keys() & after.records.keys()):
        was, now = before.records[name], after.records[name]
        fields = [_name_field(column) for column in _COLUMNS if was[column] != now[column]]
        pairs = before.observations[name] ^ after.observations[name]
        days = sorted({format_instant(instant)[:10] for instant, _ in pairs})
        if fields or days:
            changed.append({"serverId": name, "fields": fields, "days": days})
    with closing(open_file(old)) as first, closing(open_file(new)) as second:
        as_of = min(first.as_of, second.as_of) if at is None else at
        answers = [
            {"serverId": one["serverId"], "range": name, "differences": differences}
            for one in changed
            for name in DAYS
            if (differences := _compare(first, second, str(one["serverId"]), name, as_of))
        ]
    return {
        "servers": {
            "added": sorted(after.records.keys() - before.records.keys()),
            "removed": sorted(before.records.keys() - after.records.keys()),
            "changed": changed,
        },
        "answers": answers,
    }


def _read_content(path: str) -> _Content:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        records = {row["id"]: dict(row) for row in connection.execute("SELECT * FROM servers")}
        observations = defaultdict(set)
        query = "SELECT id, observed_at, players FROM observations JOIN servers USING (server)"
        for name, instant, players in connection.execute(query):
            observations[name].add((instant, players))
    return _Content(records, observations)


def _compare(
    old: SnapshotFile, new: SnapshotFile, identifier: str, name: Range, at: int
) -> list[dict[str, Any]]:
    reference = ServerReference(identifier=identifier, by="id")
    ((before,), (after,)) = (
        compute_server_results(file, resolve_servers(file, [reference]), name, at=at)
        for file in (old, new)
    )
    was, now = (_list_figures(one.model_dump()) for one in (before, after))
    return [
        {
            "pointer": pointer,
            "recorded": value,
            "recomputed": now[pointer],
            "class": "current" if pointer == "/currentPlayers" else "value",
            "absentIn": None,
        }
        for pointer, value in was.items()
        if value != now[pointer]
    ]


def _list_figures(result: dict[str, Any]) -> dict[str, Any]:
    growth = result.pop("growth")
    figures = {f"/{name}": value for name, value in result.items() if name != "sampleCount"}
    figures |= {f"/growth/{name}": value for name, value in growth.items()}
    return {**figures, "/sampleCount": result["sampleCount"]}


def build_fleet(directory: str, name: str, fleet: Fleet) -> str:
    """Build the snapshot of a fleet and of one more server, which has an observation."""
    place = Path(directory, name)
    place.mkdir()
    records = [*fleet.records.values(), server("z")]
    return str(build_in(place, records, [*fleet.rows, ("z", AS_OF, 1)]))


def compare_files(old: str, new: str, at: int | None = None) -> dict[str, Any]:
    """Return the document of two snapshots."""
    with closing(open_file(old)) as first, closing(open_file(new)) as second:
        document = wire.decode(diff.compare_snapshots(first, second, at=at).to_json())
    assert isinstance(document, dict)
    return document


@given(st.integers(0, 2**32))
@settings(max_examples=few_examples())
def test_differences_equal_those_of_all_rows(seed: int) -> None:
    *fleets, at = draw_two_fleets(seed)
    with tempfile.TemporaryDirectory() as directory:
        old, new = (
            build_fleet(directory, name, fleet)
            for name, fleet in zip(("old", "new"), fleets, strict=True)
        )
        found = compare_files(old, new, at)
        expected = describe_difference(old, new, at)

        assert {name: found[name] for name in expected} == expected
        swapped = compare_files(new, old, at)
        servers = found["servers"]
        assert swapped["servers"] == {
            "added": servers["removed"],
            "removed": servers["added"],
            "changed": servers["changed"],
        }
        assert len(swapped["answers"]) == len(found["answers"])
        itself = compare_files(old, old, at)
        assert itself["servers"] == {"added": [], "removed": [], "changed": []}
        assert itself["answers"] == []


HOURS = range(AS_OF - 40 * DAY, AS_OF + 1, DAY // 24)
ROWS = [(name, at, at // DAY % 7) for name in ("a", "b") for at in HOURS]
ALTERED = AS_OF - 3 * DAY
CHANGED = [
    (name, at, 6 - players if (name, at) == ("a", ALTERED) else players)
    for name, at, players in ROWS
]


@pytest.fixture
def old(build: Build) -> str:
    """Build the old snapshot: servers a and b."""
    return build([server("a"), server("b", cfxId="one")], ROWS)


@pytest.fixture
def new(build: Build) -> str:
    """Build the new snapshot: a differs on one day and in its tags; c has the former cfxId of b."""
    records = [server("a", tags=["t"]), server("b"), server("c", cfxId="one")]
    return build(records, [*CHANGED, ("c", AS_OF, 1)])


def change_players(path: str) -> None:
    """Change the players of the first server, and keep the digest."""
    with closing(sqlite3.connect(path)) as connection, connection:
        query = "UPDATE blocks SET players = zeroblob(length(players)) WHERE server_block = ?"
        assert connection.execute(query, (10**9,)).rowcount == 1


@pytest.mark.parametrize(
    ("identifiers", "found"),
    [
        (["a", "id:a"], (["a"], [])),
        (["cfxId:x-b"], (["b"], [])),
        (["--by", "cfxId", "x-a"], (["a"], [])),
        (["c"], ([], ["c"])),
        (["cfxId:one"], (["b"], ["c"])),  # another server in each snapshot
    ],
)
def test_identifiers_restrict_the_comparison(
    cli: Cli, old: str, new: str, identifiers: list[str], found: tuple[list[str], list[str]]
) -> None:
    servers = cli("snapshot", "diff", old, new, *identifiers).json["servers"]

    assert ([one["serverId"] for one in servers["changed"]], servers["added"]) == found


def test_a_name_is_that_of_a_server_in_the_later_snapshot(cli: Cli, old: str, build: Build) -> None:
    records = [server("a", hostname="b"), server("b"), server("c", hostname="^1The Lobby")]
    new = build(records, [*CHANGED, ("c", AS_OF, 1)])

    def find(*identifiers: str) -> tuple[list[str], list[str]]:
        servers = cli("snapshot", "diff", old, new, *identifiers).json["servers"]
        return servers["added"], [one["serverId"] for one in servers["changed"]]

    assert find("the lobby") == (["c"], [])
    assert find("b") == ([], ["b"])  # an id wins
    ran = cli("snapshot", "diff", old, new, "a lobby")
    assert (ran.exit_code, ran.stdout[:9]) == (40, b'{"error":')
    assert ran.stderr == 'no server is named "a lobby"; did you mean c ("The Lobby")?\n'


def test_an_invalid_identifier_is_refused_before_the_files_are_read(cli: Cli) -> None:
    assert cli("snapshot", "diff", "none.db", "none.db", "id:a b").exit_code == 40


def test_answers_are_as_of_the_given_time(cli: Cli, old: str, new: str) -> None:
    past = ALTERED + 7 * DAY
    for at, is_listed in ((ALTERED, True), (ALTERED - 1, False), (past - 1, True), (past, False)):
        ran = cli("snapshot", "diff", old, new, "a", "--at", str(at))
        ranges = [one["range"] for one in ran.json["answers"]]
        assert ("7d" in ranges) is is_listed
        late = f"after the end of {old}, 2026-03-01 12:00:00 UTC"
        assert (late in ran.stderr) is (at > AS_OF)


def test_a_damaged_file_is_named(cli: Cli, old: str, new: str) -> None:
    change_players(new)
    for arguments in ([old, new], [new, old]):
        ran = cli("snapshot", "diff", *arguments)
        assert (ran.exit_code, ran.stdout) == (3, b"")
        assert ran.stderr.startswith(f"error: {new}: damaged (observations of server a from ")


def test_equal_blocks_before_the_first_difference_are_not_read(cli: Cli, build: Build) -> None:
    rows = [("a", at, at % 7) for at in range(AS_OF - 3000 * 60_000, AS_OF + 1, 60_000)]
    old, new = (build([server("a", tags=tags)], rows) for tags in ([], ["t"]))
    altered = build([server("a")], [*rows[:-1], ("a", AS_OF, 8)])
    for path in (new, altered):
        change_players(path)
        assert cli("snapshot", "diff", old, path, "--at", str(AS_OF - 1)).exit_code == 5


def test_a_bundle_is_compared_where_it_has_data(cli: Cli, build: Build, tmp_path: Path) -> None:
    early = [("a", AS_OF - 20 * DAY, 5), ("a", AS_OF - 2 * DAY, 6)]
    old = build([server("a"), server("b")], [*ROWS[:100], *early, ("b", AS_OF, 1)])
    new = build([server("a"), server("b")], [*early, ("a", AS_OF - DAY, 6), ("b", AS_OF, 1)])
    case = str(tmp_path / "case.db")
    bundle = ["snapshot", "bundle", "a", "--range", "7d", "--snapshot", old, "-o", case]
    assert cli(*bundle).exit_code == 0

    ran = cli("snapshot", "diff", case, new)

    assert ran.json["comparedFrom"] == "2026-02-22T00:00:00.000Z"
    assert ran.json["servers"] == {
        "added": [],
        "removed": [],
        "changed": [
            {"serverId": "a", "fields": ["firstSeenAt", "updatedAt"], "days": ["2026-02-28"]}
        ],
    }
    assert {one["range"] for one in ran.json["answers"]} == {"7d"}
    ran = cli("snapshot", "diff", case, new, "--at", "2026-03-01T00:00Z")
    assert {one["range"] for one in ran.json["answers"]} == {"24h", "7d"}
    assert cli("snapshot", "diff", old, case).exit_code == 0
    ran = cli("snapshot", "diff", case, new, "b")
    assert (ran.exit_code, "a bundle without id b" in ran.stderr) == (3, True)


def test_long_lists_are_cut(cli: Cli, build: Build) -> None:
    names = [f"s-{number:02}" for number in range(45)]
    rows = [(name, AS_OF - at * 2 * DAY, 1) for name in names for at in range(9)]
    old = build(map(server, names[:35]), rows)
    new = build(map(server, names[10:]), [(name, at, 2) for name, at, _ in rows if name != "s-44"])

    shown = cli("snapshot", "diff", old, new, "--table").stdout.decode()

    assert shown.startswith("25 servers changed, 10 added, 10 removed; 125 responses change\n")
    assert "and 5 more servers; --json lists all\n" in shown
    assert "and 460 more differences; --json lists all\n" in shown
    assert "2026-02-21, 2026-02-23, and 3 more" in shown
    assert shown.count(" removed ") == 5
