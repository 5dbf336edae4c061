"""The Python API, and its rows in every format, read with the reader that others would use."""

import copy
import csv
import html
import io
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta, timezone
from html.parser import HTMLParser
from itertools import islice, permutations
from pathlib import Path
from threading import Event
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import srvstat
from conftest import DAY, Cli
from srvstat.cli.demo import list_ids
from srvstat.contract.errors import MissingLibraryError, SnapshotError
from srvstat.contract.time import LATEST, format_instant
from srvstat.documents.rows import Column, Kind, RowDocument, Rows, encode_rows
from support.markdown import make_visible, parse_table


def test_an_answer_is_typed_and_encodes_to_the_bytes_of_the_api(
    cli: Cli, demo_snapshot: str
) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        answer = snapshot.compare(["id:harbor-city", "cfxId:nf8q1z"], range="7d")
        detail = snapshot.get("id:harbor-city")

    assert answer.data[1].server_id == "new-frontier"
    assert answer.data[0].growth.players == -4
    assert detail.data.players.max == 400
    command = ("compare", "harbor-city", "cfxId:nf8q1z", "--range", "7d", "-s", demo_snapshot)
    assert answer.to_json() + b"\n" == cli(*command).stdout
    assert detail.to_json() + b"\n" == cli("get", "harbor-city", "-s", demo_snapshot).stdout


def test_errors_of_the_api_are_exceptions(demo_snapshot: str) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        with pytest.raises(
            srvstat.InvalidRequestError, match="1 given; 2 to 5 required"
        ) as invalid:
            snapshot.compare(["harbor-city"])
        with pytest.raises(srvstat.ServerNotFoundError, match="no server with cfxId nobody"):
            snapshot.get("cfxId:nobody")

    assert isinstance(invalid.value, srvstat.ApiError)
    assert (invalid.value.code, invalid.value.http_status) == ("INVALID_REQUEST", 400)
    assert str(invalid.value).startswith("INVALID_REQUEST: Invalid request (")


def test_at_overrides_the_instant_of_the_snapshot(demo_snapshot: str) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        assert snapshot.as_of == "2026-03-01T12:00:00.000Z"
        assert re.fullmatch("[0-9a-f]{64}", snapshot.root)
        earlier = snapshot.compare(["harbor-city", "old-guard"], at="2025-12-16T13:30Z")
        with pytest.raises(ValueError, match="no time zone"):
            snapshot.compare(["harbor-city", "old-guard"], at="2025-12-16T13:30")

    assert [result.sample_count for result in earlier.data] == [2, 2]


def test_a_path_may_be_str_bytes_or_path(demo_snapshot: str) -> None:
    for path in (demo_snapshot, os.fsencode(demo_snapshot), Path(demo_snapshot)):
        with srvstat.open_snapshot(path) as snapshot:
            assert snapshot.get("harbor-city").data.id == "harbor-city"


def test_a_missing_snapshot_is_an_error_and_creates_no_file(tmp_path: Path) -> None:
    for name, message in (("none.db", "no such file"), ("a\0b", "not a file name")):
        with pytest.raises(srvstat.SnapshotError, match=message):
            srvstat.open_snapshot(tmp_path / name)

    assert not list(tmp_path.iterdir())


def test_all_public_names_can_be_loaded() -> None:
    assert dir(srvstat) == sorted(srvstat.__all__)
    assert all(getattr(srvstat, name) is not None for name in srvstat.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        srvstat.nonsense  # noqa: B018 - the look-up is the test


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
            versus="previous",
        ),
        [
            *("stats", "ns6r0b", "id:old-guard", "--by=cfxId", "--from=2026-01-31"),
            *("--to=2026-02-10T12:00Z", "--tz=Asia/Tokyo", "--quantile=0.95", "--quantile=0.1"),
            *("--above=20", "--versus=previous"),
        ],
    ),
    (
        lambda snapshot: snapshot.top(
            "a", rank_by="peak", limit=2, range="36h", quantiles=[0.00001]
        ),
        ["top", "a", "--rank-by=peak", "--limit=2", "--range=36h", "--quantile=0.00001"],
    ),
    (
        lambda snapshot: snapshot.top(rank_by="share", reverse=True, sum=True, around="2026-02-20"),
        ["top", "--rank-by=share", "--reverse", "--sum", "--around=2026-02-20"],
    ),
    (
        lambda snapshot: snapshot.stats(
            ["old-guard", "silent-valley"], range="2w", until_last_seen=True, versus="previous"
        ),
        [
            *("stats", "old-guard", "silent-valley", "--range=2w", "--until-last-seen"),
            "--versus=previous",
        ],
    ),
    (
        lambda snapshot: snapshot.growth(
            ["harbor-city"], step="week", after="2026-01-20", range="90d", tz="Asia/Tokyo"
        ),
        [
            *("growth", "harbor-city", "--step=week", "--after=2026-01-20", "--range=90d"),
            "--tz=Asia/Tokyo",
        ],
    ),
    (
        lambda snapshot: snapshot.peak_hours(["harbor-city"], group_by="hour", tz="Asia/Tokyo"),
        ["peak-hours", "harbor-city", "--group-by=hour", "--tz=Asia/Tokyo"],
    ),
    (
        lambda snapshot: snapshot.together(["harbor-city", "old-guard"], step="3h", range="60d"),
        ["together", "harbor-city", "old-guard", "--step=3h", "--range=60d"],
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
        timeline = snapshot.timeline(names, max_steps=9_000, **window)
        distribution = snapshot.distribution(iter(names), **window)
        short = snapshot.timeline(max_steps=3)
        wide = snapshot.distribution(max_bins=1)

    options = ["--title=a b", "--from=2026-02-01", "--tz=Asia/Tokyo", "--json"]
    shown = cli("report", *names, *options, "--snapshot", demo_snapshot).stdout
    assert report.to_json() + b"\n" == shown
    assert (timeline, distribution) == (report.timeline, report.distribution)
    assert year.timeline.step == "1h"
    assert default.window.from_ == default.window.to - 90 * DAY
    assert {len(one.averages) for one in short.servers} == {3}
    assert [one.counts for one in wide.servers] == [(one.sample_count,) for one in wide.servers]


def test_a_document_is_described_in_one_line(demo_snapshot: str) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        names = ["harbor-city", "old-guard"]
        documents = [
            snapshot.stats(names, range="7d"),
            snapshot.growth(names[:1], start="2026-02-01T12:34Z", end="2026-02-02"),
            snapshot.events(names, range="all"),
            snapshot.history(names, range="24h", step="1h"),
            snapshot.servers(),
        ]

    assert [*map(repr, documents)] == [
        "<Stats 7 days to 2026-03-01 12:00 UTC, 2 servers>",
        "<Growth 2026-02-01 12:34 UTC to 2026-02-02 00:00 UTC, 1 server>",
        "<Events all observations to 2026-03-01 12:00 UTC, 3 events>",
        "<History 1 day to 2026-03-01 12:00 UTC>",
        "<Servers of 2026-03-01 12:00 UTC, 9 servers>",
    ]
    assert str(documents[0]) == repr(documents[0])


class Cells(HTMLParser):
    """The rows of the tables in a page, and its tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, _attrs: object) -> None:
        """Begin a row or a cell."""
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        """Add to the last cell."""
        if self.rows and "more" not in data:
            self.rows[-1][-1] += data


def show(document: Any) -> str:
    """Return what a notebook shows."""
    shown: str = document._repr_html_()
    return shown


def test_a_notebook_shows_a_document_as_a_table(demo_snapshot: str) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        documents = [ask(snapshot) for ask, _ in (*DOCUMENTS, *HISTORIES)]
        documents += [snapshot.events(), snapshot.today()]
        documents += [snapshot.timeline(range="7d"), snapshot.distribution()]
        pages = [*map(show, documents)]
        rows = [[*document.to_rows().rows] for document in documents]
        stats = Cells(show(snapshot.growth(["harbor-city"], range="24h", tz="Asia/Tokyo")))

    for page, expected in zip(pages, rows, strict=True):
        found = Cells(page)
        assert found.tags <= {"div", "p", "table", "tr", "th", "td", "span", "wbr"}
        assert len(found.rows) == min(len(expected), 50) + 1
        assert ("more</p>" in page) == (len(expected) > 50)
        assert len({len(row) for row in found.rows}) == 1
    assert f"<p>… {len(rows[10]) - 50:,} more</p>" in pages[10]
    assert [row[:6] for row in stats.rows] == [
        ["serverId", "from", "to", "isPartial", "observedShare", "sampleCount"],
        ["harbor-city", "2026-02-28 21:00", "2026-03-01 00:00", "yes", "0.12", "3"],
        ["harbor-city", "2026-03-01 00:00", "2026-03-01 21:00", "yes", "0.88", "22"],
    ]


def test_a_stranger_cannot_write_html_in_a_notebook() -> None:
    row = ("<script>\u202e&", 1_000, 0.125, False, 0, ["<b>", '"x'])

    found = Cells(show(Written([row, (None,) * 6])))

    assert found.tags == {"div", "p", "table", "tr", "th", "td", "span"}
    assert found.rows[1:] == [
        ["<script>\\u202e&", "1,000", "0.12", "no", "1970-01-01 00:00", '<b>, "x'],
        ["–"] * 6,  # noqa: RUF001 - the dash of a missing value
    ]


def test_other_libraries_read_the_rows_of_a_document(demo_snapshot: str) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        history = snapshot.history(["harbor-city"], step="day", range="7d")
        table = history.to_arrow()
        assert pa.table(history).equals(table)
        assert history.to_polars().equals(pl.DataFrame(history))
        assert history.to_polars().to_dicts() == table.to_pylist()


TOKYO = timezone(timedelta(hours=9))


@pytest.mark.parametrize("start", [date(2026, 2, 20), datetime(2026, 2, 20, 9, tzinfo=TOKYO)])
def test_a_time_can_be_a_date_or_an_aware_datetime(demo_snapshot: str, start: date) -> None:
    names, end = ["harbor-city", "old-guard"], date(2026, 2, 27)
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        stats = snapshot.stats(names, start=start, end=end)
        assert stats == snapshot.stats(names, start="2026-02-20", end="2026-02-27")
        stats = snapshot.stats(names, range="24h", versus=(start, end))
        assert stats == snapshot.stats(names, range="24h", versus="2026-02-20..2026-02-27")
        growth = snapshot.growth(names, after=date(2026, 2, 20))
        assert growth == snapshot.growth(names, after="2026-02-20")
        answer = snapshot.compare(names, at=start)
        assert answer == snapshot.compare(names, at="2026-02-20T00:00Z")


def test_a_timestamp_of_pandas_is_a_time(demo_snapshot: str) -> None:
    pd = pytest.importorskip("pandas")
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        start = pd.Timestamp("2026-02-20 09:00", tz="Asia/Tokyo")
        assert snapshot.stats(start=start) == snapshot.stats(start="2026-02-20")
        with pytest.raises(srvstat.UsageError, match=r"^start: NaT has no time zone"):
            snapshot.stats(start=pd.NaT)


def convert_to_pandas(table: pa.Table) -> Any:
    pytest.importorskip("pandas")
    return table.to_pandas()


@pytest.mark.parametrize("convert", [convert_to_pandas, pl.from_arrow, pa.Table.to_reader])
def test_a_data_frame_is_built_and_added_like_files(
    cli: Cli, demo_snapshot: str, tmp_path: Path, convert: Callable[[pa.Table], Any]
) -> None:
    path, of_command = tmp_path / "games.db", str(tmp_path / "command.db")
    with srvstat.open_snapshot(demo_snapshot) as demo:
        table = demo.history(range="7d").to_arrow()
    pq.write_table(table, tmp_path / "rows.parquet")
    assert cli("snapshot", "build", of_command, str(tmp_path / "rows.parquet")).exit_code == 0

    built = srvstat.build(convert(table.slice(0, 500)), path)
    with srvstat.open_snapshot(path) as snapshot, srvstat.open_snapshot(of_command) as expected:
        updated = snapshot.update(convert(table.slice(500)))
        assert (built.kept, updated.rows.kept) == (500, len(table) - 500)
        assert snapshot.root == expected.root


COLUMNS_OF_ROWS = {"id": "name", "at": "time", "players": "online"}
ROWS_OF_NAMES = pl.DataFrame(
    {
        "name": ["a", "a", "b"],
        "time": [datetime(2026, 1, day, tzinfo=TOKYO) for day in (2, 2, 3)],
        "online": [1, 2, 3],
    }
)


def test_rows_of_a_data_frame_that_are_not_kept_are_a_warning(tmp_path: Path) -> None:
    path, rejects = tmp_path / "games.db", tmp_path / "rejects.ndjson"

    with pytest.warns(UserWarning, match="^1 of 3 rows not kept: 1 conflicting; .* frame, row 2"):
        built = srvstat.build(ROWS_OF_NAMES, path, columns=COLUMNS_OF_ROWS, rejects=rejects)

    assert repr(built) == "<BuildSummary 2 of 3 rows kept, 2 servers>"
    assert json.loads(rejects.read_bytes())["line"] == 2
    with srvstat.open_snapshot(path) as snapshot:
        snapshot.update(ROWS_OF_NAMES[2:].with_columns(name=pl.lit("c")))  # columns are remembered
        assert [one.id for one in snapshot.servers().servers] == ["a", "b", "c"]
        assert snapshot.as_of == "2026-01-02T15:00:00.000Z"


@pytest.mark.parametrize(
    ("data", "options", "kind", "message"),
    [
        (ROWS_OF_NAMES, {}, srvstat.SrvstatError, "; name them with columns$"),
        (ROWS_OF_NAMES, {"columns": {"who": "name"}}, srvstat.UsageError, '^columns: "who" is not'),
        (ROWS_OF_NAMES, {"max_rejected": "all"}, srvstat.UsageError, "^max_rejected: must be a"),
        (ROWS_OF_NAMES, {"rows": 5}, srvstat.UsageError, "^rows: unknown; the options are"),
        ([1], {}, TypeError, "^data: must be a data frame of pandas, polars or Arrow"),
        (
            ROWS_OF_NAMES.with_columns(pl.col("time").dt.replace_time_zone(None)),
            {"columns": COLUMNS_OF_ROWS},
            srvstat.SrvstatError,
            "no time zone",
        ),
    ],
)
def test_a_data_frame_that_cannot_be_read_is_an_error(
    tmp_path: Path, data: Any, options: Any, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        srvstat.build(data, tmp_path / "games.db", **options)

    assert "--" not in str(caught.value)
    assert not list(tmp_path.iterdir())


PICTURES: list[tuple[Any, list[str]]] = [
    ({}, []),
    ({"kind": "growth", "step": "week", "title": "a b"}, ["--kind=growth", "--step=week"]),
    ({"kind": "hours", "width": 400, "theme": "auto"}, ["--kind=hours", "--width=400"]),
    ({"kind": "share", "start": date(2026, 2, 1)}, ["--kind=share", "--from=2026-02-01"]),
    ({"mark": {date(2026, 2, 20): "Update 5"}, "scale": 2}, ["--mark=2026-02-20=Update 5"]),
]
MORE: dict[str, list[str]] = {
    "title": ["--title=a b"],
    "theme": ["--theme=auto"],
    "scale": ["--scale=2"],
}


@pytest.mark.parametrize(("arguments", "options"), PICTURES)
def test_a_picture_is_that_of_the_command(
    cli: Cli, demo_snapshot: str, tmp_path: Path, arguments: Any, options: list[str]
) -> None:
    names = ["harbor-city", "old-guard"]
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        picture = snapshot.plot(names, **arguments)
    picture.save(tmp_path / "picture.svg")

    options = [*options, *(word for name in arguments for word in MORE.get(name, ()))]
    drawn = cli("plot", *names, *options, "-o", "-", "--snapshot", demo_snapshot).stdout
    assert (tmp_path / "picture.svg").read_bytes() == picture.to_svg() == drawn
    assert picture._repr_svg_().encode() == drawn
    assert re.fullmatch("<Picture of .*2026-03-01 12:00 UTC, 2 servers>", repr(picture))


def test_a_picture_is_saved_by_the_ending_of_its_name(demo_snapshot: str, tmp_path: Path) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        picture = snapshot.plot(["harbor-city"], range="7d")
        with pytest.warns(UserWarning, match="^mark 'Old' is outside the window and not drawn$"):
            snapshot.plot(["harbor-city"], mark=["2020-01-01=Old"])
    picture.save(tmp_path / "picture.png")

    assert (tmp_path / "picture.png").read_bytes() == picture.to_png()
    with pytest.raises(
        srvstat.UsageError, match=r"unsupported picture format; use \.svg or \.png$"
    ):
        picture.save(tmp_path / "picture.gif")


def test_a_report_is_a_page_in_a_frame(cli: Cli, demo_snapshot: str, tmp_path: Path) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        report = snapshot.report(["hostile-host"])
    report.save(tmp_path / "report.html")

    page = cli("report", "hostile-host", "-o", "-", "--snapshot", demo_snapshot).stdout
    assert (tmp_path / "report.html").read_bytes() == page == report.to_html()
    frame = show(report)
    assert frame.count("<") == 2
    assert html.unescape(frame.split('"')[1]).encode() == page


WRONG: Any = "size"
HALF: Any = 0.5

ERRORS: list[tuple[Ask, type[Exception], str]] = [
    (lambda snapshot: snapshot.stats(range="8x"), ValueError, 'range: "8x" is not a duration; '),
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
    (lambda snapshot: snapshot.stats(above=-1), ValueError, "^above: must be at least 0, not -1$"),
    (lambda snapshot: snapshot.top(limit=0), ValueError, "^limit: must be at least 1, not 0$"),
    (
        lambda snapshot: snapshot.top(rank_by=WRONG),
        ValueError,
        '^rank_by: "size" is not one of average,',
    ),
    (lambda snapshot: snapshot.servers(sort=WRONG), ValueError, '^sort: "size" is not one of id,'),
    (lambda snapshot: snapshot.history(step="7h"), ValueError, '^step: "7h"'),
    (lambda snapshot: snapshot.growth(step=WRONG), ValueError, '^step: "size" is not one of day,'),
    (lambda snapshot: snapshot.history(sum=True), ValueError, "^sum requires step$"),
    (
        lambda snapshot: snapshot.history(step="1h", aggregate="share", sum=True),
        ValueError,
        "^sum: a share compares servers; leave out sum$",
    ),
    (
        lambda snapshot: snapshot.stats(["no one"]),
        srvstat.InvalidRequestError,
        "no server is named",
    ),
    (
        lambda snapshot: snapshot.stats(["nobody"]),
        srvstat.ServerNotFoundError,
        "no server with id nobody",
    ),
    (lambda snapshot: snapshot.report([]), ValueError, "^no server"),
    (
        lambda snapshot: snapshot.report(),
        ValueError,
        "^servers: 9 selected, at most 5 can be drawn; select fewer, or draw their total with sum$",
    ),
    (lambda snapshot: snapshot.report(["a"], title=""), ValueError, "^title: empty"),
    (
        lambda snapshot: snapshot.plot(["a"], width=5),
        ValueError,
        "^width: must be at least 320, not 5$",
    ),
    (
        lambda snapshot: snapshot.plot(["a"], scale=9),
        ValueError,
        "^scale: must be at most 8, not 9$",
    ),
    (
        lambda snapshot: snapshot.plot(["a"], theme=WRONG),
        ValueError,
        '^theme: "size" is not one of',
    ),
    (
        lambda snapshot: snapshot.plot(["a"], kind="b"),
        ValueError,
        '^kind: "b" is not one of players',
    ),
    (lambda snapshot: snapshot.timeline(max_steps=1), ValueError, "^max_steps: must be at least 2"),
    (
        lambda snapshot: snapshot.distribution(max_bins=0),
        ValueError,
        "^max_bins: must be at least 1",
    ),
    (lambda snapshot: snapshot.report(["a"], title=HALF), TypeError, "^title: must be a string, "),
    (lambda snapshot: snapshot.report("old-guard"), TypeError, "^identifiers: must be a list"),
    (
        lambda snapshot: snapshot.stats(foo=1),  # type: ignore[call-arg]  # wrong on purpose
        TypeError,
        "^unexpected keyword argument 'foo'$",
    ),
    (lambda snapshot: snapshot.history("old-guard"), TypeError, "^identifiers: must be a list"),
    (lambda snapshot: snapshot.servers(tags="pvp"), TypeError, "^tags: must be a list"),
    (
        lambda snapshot: snapshot.stats(quantiles="0.5"),
        TypeError,
        "^quantiles: must be a list, not ",
    ),
    (lambda snapshot: snapshot.servers(HALF), TypeError, "^text: must be a string, not "),
    (lambda snapshot: snapshot.top(tags=[HALF]), TypeError, "^tags: must be a list of strings$"),
    (lambda snapshot: snapshot.stats(range=HALF), TypeError, "^range: must be a string, not "),
    (lambda snapshot: snapshot.stats(above=HALF), TypeError, "^above: must be an integer, not "),
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


DEEP: Any = []
for _ in range(100_000):
    DEEP = [DEEP]
NOT_TEXT: list[Any] = [5, 5.5, True, b"id", ["id"], {("a",): 1}, object(), DEEP]

USES: list[Ask] = [
    *(ask for ask, _ in DOCUMENTS + HISTORIES),
    lambda snapshot: snapshot.get("harbor-city"),
    lambda snapshot: snapshot.get("not valid"),
    lambda snapshot: snapshot.compare([]),
    lambda snapshot: snapshot.stats(["nobody"]),
    lambda snapshot: snapshot.top(range="8x"),
    lambda snapshot: snapshot.as_of,
    lambda snapshot: snapshot.root,
    lambda snapshot: snapshot.__enter__(),
]


@pytest.mark.parametrize("value", NOT_TEXT, ids=type)
def test_a_value_of_a_wrong_type_is_an_invalid_request(demo_snapshot: str, value: Any) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        for ask in (lambda: snapshot.get(value), lambda: snapshot.compare([value, "harbor-city"])):
            with pytest.raises(srvstat.InvalidRequestError, match="must be a string"):
                ask()


def test_a_wrong_type_outside_the_contract_is_a_type_error(demo_snapshot: str) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        for identifiers in ("ab", b"ab", 5, None, 5.5, object()):
            with pytest.raises(TypeError, match=r"identifiers: must be a list, not "):
                snapshot.compare(identifiers)  # type: ignore[arg-type] # wrong on purpose
        for at in (5, 1_772_366_400_000, b"2026-01-31T12:00Z", object()):
            with pytest.raises(TypeError, match="at: must be a string, a date or a datetime"):
                snapshot.compare(["harbor-city", "old-guard"], at=at)  # type: ignore[arg-type] # as above
    with pytest.raises(TypeError):
        srvstat.open_snapshot(5)  # type: ignore[arg-type] # as above


def test_every_use_after_close_is_an_error(demo_snapshot: str) -> None:
    snapshot = srvstat.open_snapshot(demo_snapshot)
    snapshot.get("harbor-city")
    snapshot.compare(["harbor-city", "old-guard"])

    snapshot.close()
    snapshot.close()

    for use in USES:
        with pytest.raises(ValueError, match="the snapshot is closed"):
            use(snapshot)


def test_an_exception_in_a_with_block_closes_the_snapshot(demo_snapshot: str) -> None:
    with (
        pytest.raises(srvstat.ServerNotFoundError, match="no server with id nobody"),
        srvstat.open_snapshot(demo_snapshot) as snapshot,
    ):
        snapshot.get("nobody")

    with pytest.raises(ValueError, match="the snapshot is closed"):
        snapshot.get("harbor-city")


def test_threads_may_share_a_snapshot(demo_snapshot: str) -> None:
    questions = list(islice(permutations(list_ids(), 3), 100))
    with srvstat.open_snapshot(demo_snapshot) as alone:
        expected = [alone.compare(question, range="90d").to_json() for question in questions]

    with srvstat.open_snapshot(demo_snapshot) as shared, ThreadPoolExecutor(8) as threads:
        answers = threads.map(lambda q: shared.compare(q, range="90d").to_json(), questions)

        assert list(answers) == expected


def compare_until_error(snapshot: srvstat.Snapshot, started: Event) -> tuple[set[bytes], str]:
    """Return the answers to one question and the error that ended them."""
    answers = set()
    try:
        while True:
            answers.add(snapshot.compare(["harbor-city", "night-shift"]).to_json())
            started.set()
    except Exception as error:  # noqa: BLE001 - the test checks which error it is
        return answers, repr(error)


def test_close_waits_for_the_calls_of_other_threads(demo_snapshot: str) -> None:
    started = Event()
    with ThreadPoolExecutor(4) as threads:
        snapshot = srvstat.open_snapshot(demo_snapshot)
        asking = [threads.submit(compare_until_error, snapshot, started) for _ in range(4)]
        assert started.wait(30)
        snapshot.close()
        ends = [future.result(30) for future in asking]

    assert {error for _, error in ends} == {"ValueError('the snapshot is closed')"}
    assert len(set[bytes]().union(*(answers for answers, _ in ends))) == 1


def test_a_signal_handler_may_close_the_snapshot_during_a_call(demo_snapshot: str) -> None:
    snapshot = srvstat.open_snapshot(demo_snapshot)
    before = signal.signal(signal.SIGALRM, lambda *_: snapshot.close())
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        _, error = compare_until_error(snapshot, Event())
    finally:
        signal.signal(signal.SIGALRM, before)

    assert error == "ValueError('the snapshot is closed')"


def test_an_iterable_of_identifiers_may_use_the_snapshot_in_another_thread(
    demo_snapshot: str,
) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot, ThreadPoolExecutor(1) as pool:
        names = (
            pool.submit(snapshot.get, name).result(30).data.id
            for name in ("harbor-city", "old-guard")
        )
        assert len(snapshot.compare(names).data) == 2  # type: ignore[arg-type] # any iterable works


def test_a_snapshot_cannot_be_copied_or_pickled(demo_snapshot: str) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        for make_copy in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="open it again"):
                make_copy(snapshot)


def test_results_can_be_pickled_but_not_a_history_which_reads_the_snapshot(
    demo_snapshot: str,
) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        names = ["harbor-city", "old-guard"]
        questions = (snapshot.compare, snapshot.stats, snapshot.growth, snapshot.events)
        for result in [ask(names) for ask in questions]:
            assert pickle.loads(pickle.dumps(result)) == result  # noqa: S301 - our own bytes
        with pytest.raises(TypeError, match="open it again"):
            pickle.dumps(snapshot.history(names))


def test_a_snapshot_of_before_a_fork_is_refused_in_the_child(demo_snapshot: str) -> None:
    code = f"""if True:
        import os, srvstat
        snapshot = srvstat.open_snapshot({demo_snapshot!r})
        snapshot._lock.acquire()  # as another thread may have done at the fork
        if os.fork():
            os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
        try:
            snapshot.as_of
        except RuntimeError as error:
            print(error)
        snapshot.close()
    """
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )

    assert ran.stdout == "the snapshot was opened before a fork; open it in each process\n"


KINDS: tuple[Kind, ...] = ("text", "integer", "number", "boolean", "instant", "texts")
COLUMNS = tuple(Column(f"{kind}0.5%", kind) for kind in KINDS)


class Written(RowDocument):
    """A document of given rows."""

    document = "history"
    as_of = 0
    root = "cafe"

    def __init__(
        self, rows: Iterable[tuple[Any, ...]], columns: tuple[Column, ...] = COLUMNS
    ) -> None:
        self._rows = Rows(columns, rows)

    def to_rows(self) -> Rows:
        """Return the given rows."""
        return self._rows


def encode(
    rows: Iterable[tuple[Any, ...]], format: str, columns: tuple[Column, ...] = COLUMNS
) -> bytes:
    return b"".join(encode_rows(Written(rows, columns), format))


MARKUP = [
    "|", "\\", "\\|", "`", "``", "*a*", "__a__", "~~a~~", "[a](b)", "![a](b)", "<b>", "<!--",
    "&lt;", "http://a.de", "www.a.de", "<http://a.de>", "\n", "\r\n", "\x1b[2J", "\u202e", "\x85",
    "\x00", '"', ",", "'", "=1+1", "# a", "- a", "---", " ", "\t", "e\u0301", "{", "%s", "$x$",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(MARKUP) | st.text(max_size=3), max_size=5).map("".join)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(0, 2**53)
ROWS = st.lists(
    st.tuples(
        st.none() | TEXTS,
        st.none() | st.integers(-(2**53), 2**53),
        st.none() | NUMBERS,
        st.none() | st.booleans(),
        st.none() | st.integers(0, LATEST),
        st.none() | st.lists(st.sampled_from(["game", "cfxId", 'a "b"']), max_size=2),
    ),
    max_size=5,
)


def list_cells(row: Sequence[Any]) -> list[str]:
    """Return a row as the cells of a text format, None as an empty one."""
    text, integer, number, boolean, instant, texts = row
    return [
        text or "",
        "" if integer is None else str(integer),
        "" if number is None else json.dumps(number),
        "" if boolean is None else json.dumps(boolean),
        "" if instant is None else format_instant(instant),
        " ".join(texts or ()),
    ]


def parse_numbers(rows: Iterable[Sequence[str]]) -> list[list[Any]]:
    """Return rows of cells with the value of the third, whose digits are not Python's."""
    return [[a, b, c and float(c), *others] for a, b, c, *others in rows]


def parse_integer(digits: str) -> float:
    """Return a number without a point, which is a double if it is too large to be exact."""
    return int(digits) if abs(int(digits)) <= 2**53 else float(digits)


@given(ROWS)
@example([("".join(MARKUP), None, None, None, None, None)])
@example([(markup, None, None, None, None, None) for markup in MARKUP])
def test_all_formats_hold_the_same_rows(rows: list[tuple[Any, ...]]) -> None:
    names = [column.name for column in COLUMNS]
    cells = [list_cells(row) for row in rows]

    head, *lines = csv.reader(io.StringIO(encode(rows, "csv").decode(), newline=""))
    assert (head, parse_numbers(lines)) == (names, parse_numbers(cells))

    objects = [
        json.loads(line, parse_int=parse_integer)
        for line in encode(rows, "ndjson").split(b"\n")[:-1]
    ]
    times = [None if row[4] is None else format_instant(row[4]) for row in rows]
    assert objects == [
        dict(zip(names, (*row[:4], time, row[5]), strict=True))
        for row, time in zip(rows, times, strict=True)
    ]

    head, *lines = parse_table(encode(rows, "markdown").decode())
    visible = [
        [make_visible(text), *others, ", ".join(row[5] or ())]
        for (text, *others, _), row in zip(cells, rows, strict=True)
    ]
    assert (head, parse_numbers(lines)) == (names, parse_numbers(visible))

    table = pq.read_table(io.BytesIO(encode(rows, "parquet")))
    table = table.set_column(4, names[4], table.column(4).cast(pa.int64()))
    assert [tuple(row.values()) for row in table.to_pylist()] == rows


def test_csv_quotes_only_where_it_must() -> None:
    columns = (Column("name", "text"), Column("players", "number"))
    rows = [("plain", 1.0), ("", None), (None, 1e21), ("=a, b", 1e-7), ('say "hi"\r\n', 0.5)]

    assert encode(rows, "csv", columns) == (
        b'name,players\nplain,1\n"",\n,1e+21\n"=a, b",1e-7\n"say ""hi""\r\n",0.5\n'
    )


def test_numbers_are_on_the_right_in_markdown() -> None:
    assert encode([("a_b|c", 7, 0.5, True, 0, ["x", "y"])], "markdown").decode() == (
        "| text0.5% | integer0.5% | number0.5% | boolean0.5% | instant0.5% | texts0.5% |\n"
        "| --- | ---: | ---: | --- | --- | --- |\n"
        "| a\\_b\\|c | 7 | 0.5 | true | 1970-01-01T00:00:00.000Z | x, y |\n"
    )


@pytest.mark.parametrize("format", ["csv", "ndjson", "markdown"])
def test_nothing_can_drive_a_terminal(format: str) -> None:
    rows = [("\x1b[2J\x9b\x07\u202e\r\n\x85", None, None, None, None, ["\x1b"])]
    shown = b"".join(encode_rows(Written(rows), format, for_terminal=True)).decode()

    assert {unicodedata.category(one) for one in shown.replace("\n", "")}.isdisjoint({"Cc", "Cf"})
    assert "\\u202e" in shown.replace("\\\\", "\\")
    assert shown.count("\n") == {"csv": 2, "ndjson": 1, "markdown": 3}[format]


@pytest.mark.parametrize("format", ["csv", "ndjson", "markdown", "parquet"])
def test_rows_are_read_while_they_are_written(format: str) -> None:
    numbers = iter(range(60_000))
    columns = (Column("number", "integer"),)
    pieces = encode_rows(Written(((one,) for one in numbers), columns), format)

    assert any(next(pieces) for _ in range(2))
    assert next(numbers) <= 50_000


def test_parquet_has_types_and_says_where_it_is_from() -> None:
    file = pq.ParquetFile(io.BytesIO(encode([], "parquet")))

    assert list(map(str, file.schema_arrow.types)) == [
        "string",
        "int64",
        "double",
        "bool",
        "timestamp[ms, tz=UTC]",
        "list<element: string>",
    ]
    metadata = {b"document": b"history", b"asOf": b"1970-01-01T00:00:00.000Z", b"root": b"cafe"}
    assert file.schema_arrow.metadata == metadata
    assert Written([]).to_arrow().schema.metadata == metadata


def test_a_number_beyond_doubles_is_rounded_in_parquet() -> None:
    rows = [(None, None, 2**53 + 1, None, None, None)]

    assert Written(rows).to_arrow().column(2).to_pylist() == [2.0**53]


def test_a_number_that_no_format_of_columns_can_hold_is_damage() -> None:
    with pytest.raises(SnapshotError, match="number of more than 64 bits"):
        encode([("", 2**64, None, None, None, None)], "parquet")


def test_without_pyarrow_the_remedy_is_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(MissingLibraryError, match=r"pip install 'srvstat\[parquet\]'"):
        encode([], "parquet")
    with pytest.raises(ImportError, match="need pyarrow"):
        Written([]).to_arrow()


def test_a_data_frame_keeps_integers_where_values_are_missing() -> None:
    pytest.importorskip("pandas")
    frame = Written([("a", 2**53, 0.5, True, 0, ["x"]), (None,) * 6]).to_pandas()

    assert list(map(str, frame.dtypes)) == [
        "str",
        "Int64",
        "float64",
        "boolean",
        "datetime64[ms, UTC]",
        "object",
    ]
    assert frame.iloc[0].tolist()[:4] == ["a", 2**53, 0.5, True]
    assert frame.iloc[1].isna().all()


WITHOUT_PYARROW = """
import pydoc, sys

sys.modules["pyarrow"] = None
import srvstat
from srvstat.contract.errors import MissingLibraryError

assert "build(data" in pydoc.render_doc(srvstat)


class Frame:
    def __arrow_c_stream__(self):
        raise AssertionError("is not read")


with srvstat.open_snapshot(sys.argv[1]) as snapshot:
    for ask in (lambda: srvstat.build(Frame(), "x.db"), lambda: snapshot.update(Frame())):
        try:
            ask()
        except MissingLibraryError as error:
            print(error)
"""


def test_help_needs_no_pyarrow_and_data_frames_name_the_remedy(demo_snapshot: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYARROW, demo_snapshot],
        capture_output=True,
        text=True,
        check=False,
    )

    remedy = "Arrow and Parquet need pyarrow; run pip install 'srvstat[parquet]'\n"
    assert (ran.stdout, ran.stderr) == (2 * remedy, "")
