"""`snapshot diff` finds exactly the differences that all rows of two snapshots show."""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import AS_OF, build_in, few_examples, server
from diff.fleets import Fleet, draw_two_fleets
from diff.naive_diff import describe_difference
from srvstat.contract import wire
from srvstat.snapshot.read.file import open_file
from srvstat.support import diff


@pytest.fixture(scope="module", autouse=True)
def _compare_each_block_alone() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(diff, "BLOCKS_AT_ONCE", 1)
        yield


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
    fleets = draw_two_fleets(seed)
    with tempfile.TemporaryDirectory() as directory:
        old, new = (
            build_fleet(directory, name, fleet)
            for name, fleet in (("old", fleets.old), ("new", fleets.new))
        )
        found = compare_files(old, new, fleets.at)
        expected = describe_difference(old, new, fleets.at)

        assert {name: found[name] for name in expected} == expected
        swapped = compare_files(new, old, fleets.at)
        servers = found["servers"]
        assert swapped["servers"] == {
            "added": servers["removed"],
            "removed": servers["added"],
            "changed": servers["changed"],
        }
        assert len(swapped["answers"]) == len(found["answers"])
        itself = compare_files(old, old, fleets.at)
        assert itself["servers"] == {"added": [], "removed": [], "changed": []}
        assert itself["answers"] == []
