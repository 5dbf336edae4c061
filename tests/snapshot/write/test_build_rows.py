"""Keep, skip or reject each row of observations."""

import re
from pathlib import Path

import pytest

from conftest import AS_OF, DAY, Cli, csv
from support.snapshots import (
    COMMAND,
    WEEK,
    expect_conflict,
    parse_summary,
    read_directory,
    read_observations,
    read_rejects,
)

pytestmark = pytest.mark.usefixtures("here")


FALLBACKS = "2 current counts, taken from the last observation (0 without one)"
ALL_KINDS = f"""\
serverId,observedAt,players
a,{AS_OF},1
a,{AS_OF},1
a,{AS_OF},2
nonsense
unknown,{AS_OF},5
hidden,{AS_OF},5
b,{AS_OF + 1},5
unknown,{AS_OF},x
b,{AS_OF - DAY},3

hidden,soon,5
a,2026-03-01T12:00Z,2
"a",2026-03-01T13:00+01:00,"1"
"""


def test_every_row_is_kept_repeated_conflicting_rejected_or_skipped(cli: Cli) -> None:
    Path("week.csv").write_text(ALL_KINDS)

    ran = cli(*WEEK, "--as-of", str(AS_OF), "--rejects", "rejects.ndjson")

    summary = parse_summary(ran)
    assert (ran.exit_code, ran.stdout) == (0, b"")
    assert ran.stderr.startswith("built out.db\n")
    read = re.fullmatch(r"12 rows in (\d+\.\d+) s, ([\d,]+) per second", summary.pop("read"))
    assert read
    assert int(read[2].replace(",", "")) == round(12 / float(read[1]))
    assert summary == {
        "servers": "2 (1 not publishable, skipped)",
        "kept": "2",
        "repeated": "2",
        "conflicting": "2",
        "rejected": "3",
        "skipped": "3 (1 after the as-of time, 1 not in the servers file, 1 not publishable)",
        "span": "2026-02-28 12:00:00 UTC to 2026-03-01 12:00:00 UTC",
        "as of": "2026-03-01 12:00:00 UTC",
        "fallbacks": FALLBACKS,
    }
    assert read_observations("out.db") == [("a", AS_OF, 1), ("b", AS_OF - DAY, 3)]
    assert (
        "first rejected or conflicting row: week.csv, line 4: players: an earlier row of this"
        " server and instant has 1\n" in ran.stderr
    )


@pytest.mark.parametrize(("first", "second"), [("x.csv", "y.ndjson"), ("y.ndjson", "x.csv")])
def test_files_are_read_in_the_order_of_the_command_line(first: str, second: str, cli: Cli) -> None:
    texts = {
        "x.csv": f"a,{AS_OF},1",
        "y.ndjson": f'{{"serverId":"a","observedAt":{AS_OF},"players":2}}',
    }
    Path("x.csv").write_text(f"serverId,observedAt,players\n{texts['x.csv']}\n")
    Path("y.ndjson").write_text(f"\n\n\n{texts['y.ndjson']}\n")
    sources = ["--observations", first, "--observations", second]

    assert cli(*COMMAND, *sources, "--rejects", "rejects.ndjson").exit_code == 0

    kept_players = {"x.csv": 1, "y.ndjson": 2}[first]
    line = {"x.csv": 2, "y.ndjson": 4}[second]
    assert read_observations("out.db") == [("a", AS_OF, kept_players)]
    assert read_rejects() == [expect_conflict(second, line, kept_players, texts[second])]
    assert cli("snapshot", "info", "out.db").json["sources"] == [first, second]


def test_a_reject_in_a_later_block_has_its_own_line_and_text(cli: Cli) -> None:
    end = "\r\n"
    rows = [f"a,{AS_OF + at},1" for at in range(120_000)]
    just_before_a_block_ends = (1 << 20) // len(rows[0] + end) - 100
    rows[just_before_a_block_ends] = '"a'
    rows[100_000] = f"a,{AS_OF},2"
    rows[118_000] = f'"a",{AS_OF},"3"'
    data = end.join(["serverId,observedAt,players", *rows])
    Path("week.csv").write_bytes(data.encode())

    assert cli(*WEEK, "--rejects", "rejects.ndjson").exit_code == 0

    assert len(data) > 2 << 20
    assert read_rejects() == [
        {
            "file": "week.csv",
            "line": just_before_a_block_ends + 2,
            "reason": "a quote is not closed",
            "text": '"a',
        },
        expect_conflict("week.csv", 100_002, 1, rows[100_000]),
        expect_conflict("week.csv", 118_002, 1, rows[118_000]),
    ]


def test_the_rejects_file_is_written_even_when_empty(cli: Cli) -> None:
    assert cli(*WEEK, "--rejects", "rejects.ndjson").exit_code == 0

    assert Path("rejects.ndjson").read_bytes() == b""


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("nonsense", "must have 3 fields, not 1"),
        (f"a,{AS_OF},9", "players: an earlier row of this server and instant has 6"),
    ],
)
def test_strict_stops_at_the_first_rejected_or_conflicting_row(
    row: str, reason: str, here: Path, cli: Cli
) -> None:
    Path("odd.csv").write_text(f"serverId,observedAt,players\na,{AS_OF + 5},1\n{row}\nworse\n")
    Path("rejects.ndjson").write_text("old")
    before = read_directory(here)

    ran = cli(*WEEK, "--observations", "odd.csv", "--strict", "--rejects", "rejects.ndjson")

    assert (ran.exit_code, ran.stdout) == (6, b"")
    assert ran.stderr == f"error: odd.csv, line 3: {reason}\n"
    assert read_directory(here) == before


def test_strict_accepts_repeated_and_skipped_rows(cli: Cli) -> None:
    rows = [("a", AS_OF, 1), ("a", AS_OF, 1), ("unknown", AS_OF, 1), ("a", AS_OF + 1, 1)]
    Path("week.csv").write_bytes(csv(rows))

    assert cli(*WEEK, "--strict", "--as-of", str(AS_OF)).exit_code == 0
