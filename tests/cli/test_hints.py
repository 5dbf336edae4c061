"""Suggestions for unknown servers."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from conftest import AS_OF, Build, server
from srvstat.cli import hints as suggestions
from srvstat.cli.hints import suggest_servers
from srvstat.snapshot.read import snapshot as reader
from srvstat.snapshot.read.connection import open_connection
from srvstat.snapshot.read.file import SnapshotFile, open_file
from srvstat.snapshot.rows import ServerRow

MANY = 3_000


class CountedFile(SnapshotFile):
    """A snapshot that counts the identifiers and the servers that are read."""

    read = 0
    read_servers = 0

    def iter_servers(self) -> Iterator[ServerRow]:
        """Count each server."""
        for row in super().iter_servers():
            self.read_servers += 1
            yield row

    def iter_identifiers(self, *arguments: Any, **options: Any) -> Iterator[str]:
        """Count each identifier."""
        for name in super().iter_identifiers(*arguments, **options):
            self.read += 1
            yield name


def test_a_hint_reads_few_identifiers_of_a_large_snapshot(build: Build) -> None:
    names = [f"{'SRV' if number % 2 else 'srv'}-{number:04}" for number in range(MANY)]
    snapshot = CountedFile(open_connection(build(map(server, names), [("srv-0000", AS_OF, 1)])))

    for missing, meant in (("srv-01000", "srv-0100"), ("srv-0101", "SRV-0101")):
        hint = suggest_servers(snapshot, missing, "id")

        assert hint is not None
        assert meant in hint
        assert snapshot.read < MANY / 2
        snapshot.read = 0
    snapshot.close()


def test_a_hint_reads_the_first_servers_once(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [server(f"a{number:03}", hostname=f"The {number}") for number in range(200)]
    snapshot = CountedFile(open_connection(build(records, [("a000", AS_OF, 1)])))
    monkeypatch.setattr(suggestions, "_MAX_SEARCHED_SERVERS", 100)

    assert suggest_servers(snapshot, "THE  7", "id") == 'did you mean id:a007 ("The 7")?'
    assert snapshot.read_servers == 100
    assert "a150" not in (suggest_servers(snapshot, "The 150", "id") or "")
    snapshot.close()


def test_the_identifier_of_a_source_is_looked_for_in_files_of_some_size_only(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [server("main-lobby", sourceId="MAIN-LOBBY.example"), server("b")]
    with closing(open_file(build(records, [("b", AS_OF, 1)]))) as snapshot:
        assert snapshot.find_source_id("main-lobby.EXAMPLE") == "main-lobby"
        monkeypatch.setattr(reader, "_MAX_SEARCHED_SERVERS", 1)
        assert snapshot.find_source_id("main-lobby.EXAMPLE") is None
