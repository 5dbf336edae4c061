"""The servers that match a filter, in any order, beside a search of the source records."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from statistics import median
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.definitions import HOUR, compute_figures
from conftest import AS_OF, DAY, build_in, server
from srvstat.analysis.selection import FilterOptions
from srvstat.analysis.servers import list_servers
from srvstat.documents.snapshot import SortKey
from srvstat.snapshot.read.file import SnapshotFile, open_file

TEXTS = ("", "Harbor City", "STRASSE", "straße night", "İzmir |\tPvP", "no-mods")
REGIONS = ("", "EU", "eu", "US")
TAGS: tuple[list[str], ...] = ([], ["PvP"], ["pvp", "no mods"], ["Straße", 'quo"te\\'])
COUNT = 60


def pick(choices: Sequence[Any], number: int) -> Any:
    return choices[number % len(choices)]


RECORDS = [
    server(
        f"s-{number * 7 % COUNT:02}",
        game=pick(("game_a", "game_b"), number // 3),
        hostname=pick(TEXTS, number),
        projectName=pick(TEXTS, number // 5),
        projectDescription=pick(TEXTS, number // 7),
        region=pick(REGIONS, number // 2),
        tags=pick(TAGS, number // 4),
        offline=number % 3 == 0,
        players={"current": number % 11},
    )
    for number in range(COUNT)
]
"""Servers that share most of their texts."""

TIMES = {
    record["id"]: [AS_OF - 12 * HOUR * place for place in range(number % 4)]
    if number % 2
    else [AS_OF - 2 * DAY - number * HOUR * place**2 // 9 for place in range(number % 5)]
    for number, record in enumerate(RECORDS)
}
"""The instants of the observations of each server, some of them exactly days before AS_OF."""


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SnapshotFile]:
    """Open a snapshot of RECORDS with an observation at each of TIMES."""
    rows = [(name, at, 1) for name, times in TIMES.items() for at in times]
    path = build_in(tmp_path_factory.mktemp("many"), RECORDS, rows)
    with closing(open_file(str(path))) as file:
        yield file


words = st.sampled_from(["harbor", "CITY", "ss", "ß", "i̇z", "|", "s-1", "X-S-05", "mods", '"', "q"])
options = st.fixed_dictionaries(
    {},
    optional={
        "text": st.lists(words, max_size=3).map("  ".join),
        "game": st.sampled_from(["game_a", "GAME_B", "game_c"]),
        "region": st.sampled_from(["", "EU", "us", "mars"]),
        "tags": st.lists(st.sampled_from(["pvp", "NO MODS", "STRASSE", "none"]), max_size=2),
        "offline": st.booleans(),
    },
)


def is_wanted(record: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Check a record against options, each on its own."""
    fields = ("id", "cfxId", "hostname", "projectName", "projectDescription")
    texts = [record[name].casefold() for name in fields]
    tags = [tag.casefold() for tag in record["tags"]]
    for word in wanted.get("text", "").split():
        if not [text for text in texts + tags if word.casefold() in text]:
            return False
    for name in ("game", "region"):
        if name in wanted and wanted[name].casefold() != record[name].casefold():
            return False
    if not {tag.casefold() for tag in wanted.get("tags", ())} <= set(tags):
        return False
    return wanted.get("offline") in {None, record["offline"] or is_silent(record)}


def is_silent(record: dict[str, Any]) -> bool:
    return not any(at >= AS_OF - DAY for at in TIMES[record["id"]])


def build_options(wanted: dict[str, Any]) -> FilterOptions:
    text = wanted.get("text")
    return FilterOptions(**wanted | {"text": None if text is None else [text]})


@given(wanted=options)
def test_a_filter_finds_the_records_that_a_search_finds(
    wanted: dict[str, Any], snapshot: SnapshotFile
) -> None:
    found = list_servers(snapshot, build_options(wanted))

    expected = sorted(record["id"] for record in RECORDS if is_wanted(record, wanted))
    assert [one.id for one in found.servers] == expected
    assert found.matched == len(expected)


@pytest.mark.parametrize(
    ("wanted", "is_empty"),
    [
        ({}, True),
        ({"text": " ", "tags": []}, True),
        ({"region": ""}, False),
        ({"offline": False}, False),
    ],
)
def test_a_filter_without_properties_is_empty(wanted: dict[str, Any], is_empty: bool) -> None:
    assert build_options(wanted).is_empty is is_empty


VALUES: dict[SortKey, tuple[Callable[[dict[str, Any]], Any], bool]] = {
    "id": (lambda record: record["id"], False),
    "hostname": (lambda record: record["hostname"].casefold(), False),
    "game": (lambda record: record["game"], False),
    "region": (lambda record: record["region"].casefold(), False),
    "observations": (lambda record: len(TIMES[record["id"]]), True),
    "last-seen": (lambda record: max(TIMES[record["id"]], default=None), True),
    "coverage": (lambda record: compute_coverage(TIMES[record["id"]]), True),
    "current": (lambda record: None if is_silent(record) else record["players"]["current"], True),
}
"""What each sort key compares, and whether the greatest is first."""


@pytest.mark.parametrize("limit", [None, 7])
@pytest.mark.parametrize("sort", get_args(SortKey))
def test_servers_are_sorted_by_a_value_then_by_id(
    sort: SortKey, limit: int | None, snapshot: SnapshotFile
) -> None:
    found = list_servers(snapshot, FilterOptions(), sort=sort, limit=limit)

    read, is_descending = VALUES[sort]
    by_id = sorted(RECORDS, key=lambda record: record["id"])
    last = [record for record in by_id if read(record) in {None, ""}]
    first = [record for record in by_id if record not in last]
    first.sort(key=read, reverse=is_descending)  # stable, so ties stay in the order of ids
    assert [one.id for one in found.servers] == [one["id"] for one in first + last][:limit]
    assert found.matched == COUNT


def compute_coverage(times: Sequence[int]) -> float | None:
    """Return the coverage from the first observation to AS_OF."""
    rows = [(at, 1) for at in sorted(times)]
    coverage: float | None = compute_figures(rows, (None, AS_OF))["coverage"]
    return coverage if len(times) > 1 else None


def test_a_list_shows_how_servers_are_polled(snapshot: SnapshotFile) -> None:
    found = list_servers(snapshot, FilterOptions())

    for one in found.servers:
        times = sorted(TIMES[one.id])
        seconds = [(after - before) / 1000 for before, after in pairwise(times)]
        assert one.usual_interval_seconds == (median(seconds) if seconds else None)
        assert one.coverage == compute_coverage(times)
        assert one.sample_count == len(times)
        assert (one.first_observed_at, one.last_observed_at) == (
            (times[0], times[-1]) if times else (None, None)
        )
    assert {one.coverage for one in found.servers} > {None, 1.0}
