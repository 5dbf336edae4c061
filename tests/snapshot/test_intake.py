"""Keep the first observation of an instant, for any order of rows and any size of steps."""

import gzip
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from conftest import AS_OF, Cli, csv, few_examples
from srvstat.snapshot.blocks import Observations
from srvstat.snapshot.write import intake
from srvstat.snapshot.write.intake import Inputs, Intake, Staging
from srvstat.snapshot.write.roster import read_roster
from srvstat.sources import source
from srvstat.sources.source import Source
from support.snapshots import (
    COMMAND,
    WEEK,
    expect_conflict,
    parse_summary,
    read_observations,
    read_rejects,
)

LARGEST = 2**53 - 1

Observation = tuple[int, int, int]
"""A server, an instant and its players."""

OBSERVATIONS = st.tuples(
    st.integers(1, 3),
    st.integers(0, 9) | st.sampled_from([AS_OF, 253_402_300_799_999]),
    st.integers(0, 2) | st.sampled_from([2**32, LARGEST]),
)


Found = tuple[list[int], list[int], int, list[list[int]]]
"""The columns of a series, the number of equal repeats, and the conflicts."""


def stage_with_dict(read: Sequence[tuple[int, Observation]], server: int) -> Found:
    """Return the series of a server by means of a dict."""
    kept_players: dict[int, int] = {}
    repeated, conflicts = 0, []
    for place, (of, instant, players) in read:
        if of == server and kept_players.setdefault(instant, players) != players:
            conflicts.append([place, instant, players, kept_players[instant]])
        elif of == server:
            repeated += 1
    ordered = sorted(kept_players)
    players_of = [kept_players[instant] for instant in ordered]
    return ordered, players_of, repeated - len(ordered), conflicts


def take_lists(staged: Staging, server: int, *earlier: Observations) -> Found:
    """Return a comparable series with its conflicts in reading order."""
    conflicts: list[list[int]] = []
    series = staged.take_series(server, lambda part: conflicts.extend(part.tolist()), *earlier)
    return (
        series.observations.instants.tolist(),
        series.observations.players.tolist(),
        series.repeated,
        sorted(conflicts),
    )


@given(
    batches=st.lists(st.lists(OBSERVATIONS, min_size=1, max_size=8), max_size=8),
    most=st.sampled_from([1, 2, 3, 5, 8, 13, 1_000_000]),
    start=st.sampled_from([0, 1, 3 << 40]),
    earlier=st.dictionaries(st.integers(0, 9), st.integers(0, 2)),
)
@example(batches=[], most=1, start=0, earlier={})
@example(batches=[[(1, 5, 0), (1, 5, 1), (1, 5, 0)]], most=1, start=0, earlier={})
@example(batches=[[(1, 5, 0)], [(1, 5, 1)], [(1, 5, 0)], [(2, 5, 1)]], most=1, start=0, earlier={})
@example(batches=[[(1, 5, 0)], [(1, 5, 1)], [(1, 5, 0)], [(2, 5, 1)]], most=2, start=0, earlier={})
@example(batches=[[(1, at, at) for at in range(9)]], most=4, start=0, earlier={3: 1})
def test_the_first_observation_of_an_instant_is_kept_and_the_others_are_repeats(
    batches: list[list[Observation]], most: int, start: int, earlier: dict[int, int]
) -> None:
    read: list[tuple[int, Observation]] = []

    known = Observations(*np.array(sorted(earlier.items()), np.int64).reshape(-1, 2).T)

    with pytest.MonkeyPatch.context() as patch, closing(sqlite3.connect(":memory:")) as connection:
        patch.setattr(intake, "MAX_IN_MEMORY", most)
        staged = Staging(connection)
        for batch in batches:
            places = range(start + len(read), start + len(read) + len(batch))
            servers, instants, players = np.array(batch).T
            staged.add(servers, instants, players, np.array(places))
            read += zip(places, batch, strict=True)
        found = {server: take_lists(staged, server) for server in (3, 1, 2, 4)}
        updated = take_lists(staged, 1, known)
        for server in found:
            instants = [at for _, (of, at, _) in read if of == server]
            assert staged.find_first(server) == min(instants, default=None)

    for server, series in found.items():
        assert series == stage_with_dict(read, server)
    before = [(-1, (1, at, players)) for at, players in earlier.items()]
    assert updated == stage_with_dict([*before, *read], 1)


class Line(NamedTuple):
    """A record of a source: its observation, or the reason why it is malformed."""

    text: str
    observation: tuple[str, int, int] | None
    reason: str


IDS = ("a", "b", "hidden", "unknown")
ISO = {
    AS_OF: "2026-03-01T12:00:00.000Z",
    AS_OF + 999: "2026-03-01 12:00:00.999999Z",
    AS_OF + 1000: "2026-03-01T12:00:01Z",
    978_307_200_000: "2001-01-01T00:00:00Z",
}
COUNT = "players: must be a whole number from 0 to 2^53 - 1"
NEITHER = "not a time; use YYYY-MM-DDTHH:MM:SSZ or Unix milliseconds"
FORMS = {
    "plain.csv": "{id},{at},{players}",
    "iso.csv": "{id},{iso},{players}",
    "quoted.csv": '"{id}","{at}","{players}"',
    "some.ndjson": '{{"players": {players}, "serverId": "{id}", "observedAt": {at}}}',
    "iso.ndjson": '{{"serverId":"{id}","observedAt":"{iso}","players":{players}}}',
}
MALFORMED = {
    "csv": [
        ("nonsense", "must have 3 fields, not 1"),
        ("a,1772366400000,07", f"{COUNT}, without separators"),
        ("a,soon,7", f"observedAt: {NEITHER}"),
        ("a,2026-02-29T12:00:00Z,7", "observedAt: invalid date"),
        ("a,1969-12-31T23:59:59Z,7", "observedAt: outside the years 1970 to 9999"),
        ('"a,1,7', "a quote is not closed"),
        ('"a\nb",1,7', "serverId: must be 1 to 128 letters, digits and hyphens"),
    ],
    "ndjson": [
        (
            '{"serverId":"a","observedAt":1772366400000,"players":7.0}',
            f"{COUNT}, written as an integer",
        ),
        ('{"serverId":"a","observedAt":"soon","players":7}', f"observedAt: {NEITHER}"),
        ("[]", "must be an object with the keys serverId, observedAt and players"),
    ],
}
END = {name: "\r\n" if name in ("quoted.csv", "iso.ndjson") else "\n" for name in FORMS}


def lines(name: str) -> st.SearchStrategy[list[Line]]:
    """Draw the records of a source: observations, often of equal instants, and malformed lines."""

    def line(server_id: str, at: int, players: int) -> Line:
        text = FORMS[name].format(id=server_id, at=at, iso=ISO[at], players=players)
        return Line(text, (server_id, at, players), "")

    observed = st.builds(line, st.sampled_from(IDS), st.sampled_from([*ISO]), st.integers(0, 2))
    others = [("", ""), *MALFORMED[name.partition(".")[2]]]
    other = st.sampled_from(others).map(lambda one: Line(one[0], None, one[1]))
    return st.lists(observed, max_size=9) | st.lists(observed | other, max_size=9)


File = tuple[str, list[Line]]

FILES = st.permutations(list(FORMS)).flatmap(
    lambda names: st.tuples(*(st.tuples(st.just(name), lines(name)) for name in names))
)


def write(files: Sequence[File], unended: str = "iso.csv") -> list[str]:
    """Write the sources, and return the command that builds from them."""
    command = [*COMMAND, "--allow-empty", "--at", str(AS_OF + 1000), "--overwrite"]
    for name, records in files:
        header = ["serverId,observedAt,players"] if name.endswith(".csv") else []
        texts = [*header, *(record.text.replace("\n", END[name]) for record in records)]
        # One file lacks the last line end, so its last line is a block of its own.
        last = [] if name == unended else [""]
        Path(name).write_bytes(END[name].join([*texts, *last]).encode())
        command += ["--observations", name]
    return command


def read_line_by_line(
    files: Sequence[File],
) -> tuple[list[tuple[str, int, int]], list[dict[str, Any]]]:
    """Return the observations kept and the rejects, computed line by line with a dict."""
    kept_players: dict[tuple[str, int], int] = {}
    rejected: list[dict[str, Any]] = []
    for name, records in files:
        number = 2 if name.endswith(".csv") else 1
        for record in records:
            text = record.text.replace("\n", END[name])
            if record.reason:
                rejected.append(
                    {"file": name, "line": number, "reason": record.reason, "text": text}
                )
            elif record.observation and record.observation[0] in ("a", "b"):
                server_id, at, players = record.observation
                first = kept_players.setdefault((server_id, at), players)
                if first != players:
                    rejected.append(expect_conflict(name, number, first, record.observation))
            number += 1 + record.text.count("\n")
    return sorted((*key, players) for key, players in kept_players.items()), rejected


def use_small_steps(patch: pytest.MonkeyPatch) -> None:
    """Read one or two lines at a time, and move staged observations often."""
    patch.setattr(source, "BLOCK_BYTES", 50)
    patch.setattr(intake, "MAX_IN_MEMORY", 3)


@pytest.mark.usefixtures("here")
@settings(max_examples=few_examples(), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=FILES)
def test_rejects_are_exact_and_in_reading_order_for_any_size_of_steps(
    cli: Cli, files: Sequence[File]
) -> None:
    command = write(files)
    kept, rejected = read_line_by_line(files)

    ran = cli(*command, "--rejects", "rejects.ndjson")
    assert (ran.exit_code, parse_summary(ran)["kept"]) == (0, str(len(kept)))
    assert read_observations("out.db") == kept
    assert read_rejects() == rejected
    written = Path("out.db").read_bytes(), Path("rejects.ndjson").read_bytes()

    with pytest.MonkeyPatch.context() as patch:
        use_small_steps(patch)
        assert cli(*command, "--rejects", "rejects.ndjson").exit_code == 0
    assert (Path("out.db").read_bytes(), Path("rejects.ndjson").read_bytes()) == written


@pytest.mark.usefixtures("here")
@settings(max_examples=few_examples(), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=FILES)
def test_strict_names_the_first_reject_in_reading_order_for_any_size_of_steps(
    cli: Cli, files: Sequence[File]
) -> None:
    # --strict refuses a CSV file without a newline at its end.
    command = write(files, unended="iso.ndjson")
    _, rejected = read_line_by_line(files)
    event(rejected[0]["reason"].partition(" ")[0] if rejected else "no reject")
    first = "error: {file}, line {line}: {reason}\n".format_map(rejected[0]) if rejected else ""

    strict = cli(*command, "--strict")
    with pytest.MonkeyPatch.context() as patch:
        use_small_steps(patch)
        in_small_steps = cli(*command, "--strict")

    for ran in (strict, in_small_steps):
        assert ran.exit_code == (6 if first else 0)
        assert ran.stderr.startswith(first or "built out.db\n")


@pytest.mark.usefixtures("here")
def test_strict_reports_a_conflict_before_a_later_refused_file(cli: Cli) -> None:
    Path("odd.csv").write_text(f"serverId,observedAt,players\na,{AS_OF},1\na,{AS_OF},2\n")
    Path("wrong.csv").write_text("server,time,players\n")
    command = [*COMMAND, "--observations", "odd.csv", "--observations", "wrong.csv"]

    reason = "players: conflicts with an earlier row for the same server and time, which has 1"
    assert cli(*command, "--strict").stderr == f"error: odd.csv, line 3: {reason}\n"
    assert cli(*command).stderr.startswith("error: wrong.csv")


@pytest.mark.usefixtures("here")
def test_progress_counts_stored_bytes_and_rows() -> None:
    packed = gzip.compress(csv([("a", AS_OF + at, "x" if at % 9 else 5) for at in range(30_000)]))
    Path("rows.csv.gz").write_bytes(packed)
    sources = [Source("week.csv", "csv"), Source("rows.csv.gz", "csv")]
    bytes_of: Counter[str] = Counter()
    rows_of: Counter[str] = Counter()

    def progress(step: str, bytes_done: int, rows_done: int) -> None:
        bytes_of[step] += bytes_done
        rows_of[step] += rows_done

    with closing(sqlite3.connect(":memory:")) as connection:
        servers_source = Source("servers.ndjson", "ndjson")
        roster = read_roster(servers_source, uses_slugs=False, game=None)
        intake = Intake(connection, roster, Inputs(None, sources, progress=progress))
        intake.read()

    assert bytes_of == {"reading": Path("week.csv").stat().st_size + len(packed)}
    assert rows_of == {"reading": 3 + 30_000}
    assert intake.rows == 3 + 30_000


UNENDED = "the last line has no newline, so it may be cut off; add one if the line is complete"
ROWS = csv([("a", AS_OF - 5, 5), ("b", AS_OF, 147)])


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(("cut", "kept"), [(1, 147), (2, 14)])
def test_a_last_row_without_a_newline_is_kept_with_a_warning(
    pack: type[bytes], cut: int, kept: int, cli: Cli
) -> None:
    Path("week.csv").write_bytes(pack(ROWS[:-cut]))

    for options in ([], ["--quiet", "--overwrite"]):
        ran = cli(*WEEK, *options)

        assert ran.exit_code == 0
        assert ran.stderr.endswith(f"warning: week.csv, line 3: {UNENDED}\n")
        assert ("b", AS_OF, kept) in read_observations("out.db")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_strict_refuses_a_last_row_without_a_newline(pack: type[bytes], cli: Cli) -> None:
    Path("week.csv").write_bytes(pack(ROWS[:-1]))

    ran = cli(*WEEK, "--strict")

    assert (ran.exit_code, ran.stderr) == (6, f"error: week.csv, line 3: {UNENDED}\n")
    assert not Path("out.db").exists()
