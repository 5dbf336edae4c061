"""Hints and warnings on standard error."""

from collections.abc import Iterator
from typing import Any

import pytest

from conftest import AS_OF, Build, Cli, server
from srvstat.analysis.suggestions import suggest_servers
from srvstat.contract.requests import build_server_reference
from srvstat.snapshot.read.connection import open_connection
from srvstat.snapshot.read.reader import SnapshotFile

MANY = 3_000


class CountedFile(SnapshotFile):
    """A snapshot that counts the identifiers that are read."""

    read = 0

    def iter_identifiers(self, *arguments: Any, **options: Any) -> Iterator[str]:
        """Count each identifier."""
        for name in super().iter_identifiers(*arguments, **options):
            self.read += 1
            yield name


def test_a_hint_reads_few_identifiers_of_a_large_snapshot(build: Build) -> None:
    names = [f"{'SRV' if number % 2 else 'srv'}-{number:04}" for number in range(MANY)]
    snapshot = CountedFile(open_connection(build(map(server, names), [("srv-0000", AS_OF, 1)])))

    for missing, meant in (("srv-01000", "srv-0100"), ("srv-0101", "SRV-0101")):
        hint = suggest_servers(snapshot, build_server_reference(missing))

        assert hint is not None
        assert meant in hint
        assert snapshot.read < MANY / 2
        snapshot.read = 0
    snapshot.close()


def test_a_hint_reads_every_identifier_of_a_small_snapshot(build: Build) -> None:
    names = [f"{letter}-server" for letter in "abcdefghijklmnopqrstuvwxyz"]
    snapshot = CountedFile(open_connection(build(map(server, names), [("a-server", AS_OF, 1)])))

    assert suggest_servers(snapshot, build_server_reference("zz-server")) is not None
    assert suggest_servers(snapshot, build_server_reference("aaa")) is None
    assert snapshot.read >= 2 * len(names)
    snapshot.close()


@pytest.mark.parametrize(
    ("at", "warning"),
    [
        ("1744243200", "1970-01-21 04:30:43.200 UTC"),
        ("978307199999", "2000-12-31 23:59:59.999 UTC"),
        ("978307200000", None),
        ("1970-01-21T04:30Z", None),
    ],
)
def test_an_instant_in_seconds_is_answered_with_a_warning(
    cli: Cli, demo_snapshot: str, at: str, warning: str | None
) -> None:
    ran = cli("compare", "harbor-city", "old-guard", "--at", at, "-s", demo_snapshot)

    assert ran.exit_code == 0
    assert ran.stderr == (
        f"warning: --at {at} is {warning}; are these seconds? They are read as milliseconds\n"
        if warning
        else ""
    )
