"""The Python API of the analyzer: the command line's documents, and errors in Python's terms."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import pytest

import srvstat
from conftest import DAY, Cli
from srvstat.documents.document import RowDocument
from srvstat.render.rows import encode_rows

Ask = Callable[[srvstat.Snapshot], Any]

DOCUMENTS: list[tuple[Ask, list[str]]] = [
    (
        lambda snapshot: snapshot.servers("a", offline=False, sort="current"),
        ["servers", "a", "--online", "--sort=current"],
    ),
    (lambda snapshot: snapshot.stats(), ["stats", "--all"]),
    (
        lambda snapshot: snapshot.stats(
            ["ns6r0b", "id:old-guard"],
            by="cfxId",
            start="2026-01-31",
            end="2026-02-10T12:00Z",
            tz="Asia/Tokyo",
            quantiles=[0.95, "0.1"],
            above=20,
            versus_previous=True,
        ),
        [
            *("stats", "ns6r0b", "id:old-guard", "--by=cfxId", "--from=2026-01-31"),
            *("--to=2026-02-10T12:00Z", "--tz=Asia/Tokyo", "--quantile=0.95", "--quantile=0.1"),
            *("--above=20", "--versus=previous"),
        ],
    ),
    (
        lambda snapshot: snapshot.top("a", by="peak", limit=2, range="36h", quantiles=[0.00001]),
        ["top", "a", "--by=peak", "--limit=2", "--range=36h", "--quantile=0.00001"],
    ),
    (
        lambda snapshot: snapshot.growth(
            ["harbor-city", "old-guard"], step="week", range="90d", tz="Asia/Tokyo"
        ),
        ["growth", "harbor-city", "old-guard", "--step=week", "--range=90d", "--tz=Asia/Tokyo"],
    ),
    (
        lambda snapshot: snapshot.peak_hours(["harbor-city"], tz="Asia/Tokyo"),
        ["peak-hours", "harbor-city", "--tz=Asia/Tokyo"],
    ),
    (
        lambda snapshot: snapshot.integrity(["old-guard"], tz="Asia/Tokyo"),
        ["integrity", "old-guard", "--tz=Asia/Tokyo"],
    ),
]

HISTORIES: list[tuple[Ask, list[str]]] = [
    (
        lambda snapshot: snapshot.history(["harbor-city", "old-guard"], range="90d"),
        ["harbor-city", "old-guard", "--range=90d"],
    ),
    (
        lambda snapshot: snapshot.history(["harbor-city"], step="1d", tz="Asia/Tokyo"),
        ["harbor-city", "--step=1d", "--tz=Asia/Tokyo"],
    ),
    (
        lambda snapshot: snapshot.history(
            ["harbor-city", "old-guard"], step="6h", aggregate="max", sum=True
        ),
        ["harbor-city", "old-guard", "--step=6h", "--aggregate=max", "--sum"],
    ),
]


@pytest.mark.parametrize(("ask", "command"), DOCUMENTS)
def test_a_method_returns_the_document_of_its_command(
    cli: Cli, demo_snapshot: str, ask: Ask, command: list[str]
) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        document = ask(snapshot)

    assert document.to_json() + b"\n" == cli(*command, "--snapshot", demo_snapshot).stdout
    assert isinstance(document, RowDocument)


@pytest.mark.parametrize(("ask", "command"), HISTORIES)
def test_a_history_has_the_rows_of_its_command(
    cli: Cli, demo_snapshot: str, ask: Ask, command: list[str]
) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        history = ask(snapshot)
        rows = list(history)
        assert "read_rows" not in repr(history)  # it holds the servers and all edges
        lines = b"".join(encode_rows(history, "ndjson"))
        table = history.to_arrow()

    assert lines == cli("history", *command, "--snapshot", demo_snapshot).stdout
    assert len(rows) == table.num_rows > 1
    at = table.column_names.index("players")
    assert table.column("players").to_pylist() == [row[at] for row in rows]


def test_a_report_and_its_parts_are_those_of_the_command(cli: Cli, demo_snapshot: str) -> None:
    names = ["cfxId:hc4x2k", "old-guard"]
    window: Any = {"start": "2026-02-01", "tz": "Asia/Tokyo"}
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        report = snapshot.report(names, title="a b", **window)
        year, default = snapshot.report(names[1:], range="1y"), snapshot.report(names[1:])
        timeline = snapshot.timeline(names, most_steps=9_000, **window)
        distribution = snapshot.distribution(iter(names), **window)
        short = snapshot.timeline(most_steps=3)
        wide = snapshot.distribution(most_bins=1)

    options = ["--title=a b", "--from=2026-02-01", "--tz=Asia/Tokyo", "--json"]
    shown = cli("report", *names, *options, "--snapshot", demo_snapshot).stdout
    assert report.to_json() + b"\n" == shown
    assert (timeline, distribution) == (report.timeline, report.distribution)
    assert year.timeline.step == "1h"
    assert default.window.from_ == default.window.to - 90 * DAY
    assert {len(one.averages) for one in short.servers} == {3}
    assert [one.counts for one in wide.servers] == [(one.sample_count,) for one in wide.servers]


WRONG: Any = "size"
HALF: Any = 0.5

ERRORS: list[tuple[Ask, type[Exception], str]] = [
    (lambda snapshot: snapshot.stats(range="8x"), ValueError, 'range: "8x" is not a number of'),
    (lambda snapshot: snapshot.stats(range='--from "'), ValueError, r'range: "--from \\"" is not'),
    (
        lambda snapshot: snapshot.stats(start="2026-02-02", end="2026-02-01"),
        srvstat.UsageError,
        "^start: must be earlier than end$",
    ),
    (
        lambda snapshot: snapshot.top(range="7d", start="2026-01-01"),
        ValueError,
        "^range and start can't be combined; use start and end, or range$",
    ),
    (lambda snapshot: snapshot.stats(tz="Mars"), ValueError, '^tz: no time zone "Mars"'),
    (lambda snapshot: snapshot.stats(quantiles=[2]), ValueError, '^quantiles: "2" is not'),
    (lambda snapshot: snapshot.stats(above=-1), ValueError, "^above: -1 is less than 0$"),
    (lambda snapshot: snapshot.top(limit=0), ValueError, "^limit: 0 is less than 1$"),
    (lambda snapshot: snapshot.top(by=WRONG), ValueError, '^by: "size" is not one of average,'),
    (lambda snapshot: snapshot.servers(sort=WRONG), ValueError, '^sort: "size" is not one of id,'),
    (lambda snapshot: snapshot.history(step="7h"), ValueError, '^step: "7h"'),
    (lambda snapshot: snapshot.growth(step=WRONG), ValueError, '^step: "size" is not one of day,'),
    (lambda snapshot: snapshot.history(sum=True), ValueError, "^sum: needs step$"),
    (lambda snapshot: snapshot.stats(["no one"]), srvstat.InvalidRequestError, "identifier: "),
    (lambda snapshot: snapshot.stats(["nobody"]), srvstat.ServerNotFoundError, "no id nobody"),
    (lambda snapshot: snapshot.report([]), ValueError, "^no server"),
    (
        lambda snapshot: snapshot.report(list("abcdef")),
        ValueError,
        "^servers: 6 given, at most 5 can be drawn$",
    ),
    (lambda snapshot: snapshot.report(["a"], title=""), ValueError, "^title: is empty"),
    (lambda snapshot: snapshot.timeline(most_steps=1), ValueError, "^most_steps: 1 is less than 2"),
    (lambda snapshot: snapshot.distribution(most_bins=0), ValueError, "^most_bins: 0 is less than"),
    (lambda snapshot: snapshot.report(["a"], title=HALF), TypeError, "^title: must be a string$"),
    (lambda snapshot: snapshot.report("old-guard"), TypeError, "^identifiers: must be a list"),
    (lambda snapshot: snapshot.history("old-guard"), TypeError, "^identifiers: must be a list"),
    (lambda snapshot: snapshot.servers(tags="pvp"), TypeError, "^tags: must be a list"),
    (lambda snapshot: snapshot.stats(quantiles="0.5"), TypeError, "^quantiles: must be a list$"),
    (lambda snapshot: snapshot.servers(HALF), TypeError, "^text: must be a string$"),
    (lambda snapshot: snapshot.top(tags=[HALF]), TypeError, "^tags: must be a list of strings$"),
    (lambda snapshot: snapshot.stats(range=HALF), TypeError, "^range: must be a string$"),
    (lambda snapshot: snapshot.stats(above=HALF), TypeError, "^above: must be an integer$"),
]


@pytest.mark.parametrize(("ask", "kind", "message"), ERRORS)
def test_an_error_names_the_argument(
    demo_snapshot: str, ask: Ask, kind: type[Exception], message: str
) -> None:
    with (
        srvstat.open_snapshot(demo_snapshot) as snapshot,
        pytest.raises(kind, match=message) as caught,
    ):
        ask(snapshot)

    assert "--" not in str(caught.value).replace('"--from', "")


def test_other_threads_can_ask_while_a_history_is_read(demo_snapshot: str) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot, ThreadPoolExecutor(1) as pool:
        history = snapshot.history(range="all")
        expected = list(history)
        rows = iter(history)
        read = list(islice(rows, 1500))
        assert pool.submit(snapshot.get, "old-guard").result(30).data.id == "old-guard"
        read += rows

    assert read == expected
    with pytest.raises(ValueError, match="the snapshot is closed"):
        next(iter(history))
