"""Hints for unknown servers, and what they cost."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

from conftest import AS_OF, Build, server
from srvstat.cli.hints import suggest_servers
from srvstat.snapshot.read.connection import open_connection
from srvstat.snapshot.read.file import SnapshotFile, open_file
from srvstat.snapshot.rows import ServerRow
from support.snapshots import forge


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


def test_a_hint_reads_few_identifiers_and_the_first_servers_once(build: Build) -> None:
    names = [f"{'SRV' if number % 2 else 'srv'}-{number:05}" for number in range(10_100)]
    records = [server(name, hostname=f"The {number}") for number, name in enumerate(names)]
    snapshot = CountedFile(open_connection(build(records, [("srv-00000", AS_OF, 1)])))

    for missing, meant in (("srv-010000", "srv-01000"), ("srv-00101", "SRV-00101")):
        snapshot.read = snapshot.read_servers = 0
        hint = suggest_servers(snapshot, missing, "id")

        assert hint is not None
        assert meant in hint
        assert snapshot.read < len(names) / 5
        assert snapshot.read_servers == 10_000
    assert suggest_servers(snapshot, "THE  7", "id") == 'did you mean id:SRV-00007 ("The 7")?'
    assert "10050" not in (suggest_servers(snapshot, "The 10050", "id") or "")
    snapshot.close()


def test_the_identifier_of_a_source_is_looked_for_in_files_of_some_size_only(build: Build) -> None:
    records = [server("main-lobby", sourceId="MAIN-LOBBY.example"), server("b")]
    path = build(records, [("b", AS_OF, 1)])
    with closing(open_file(path)) as snapshot:
        assert snapshot.find_source_id("main-lobby.EXAMPLE") == "main-lobby"
    forge(
        path,
        "UPDATE servers SET project_description = printf('%.*c', 300000, 'x');"
        " UPDATE snapshot SET server_count = 50001;",
    )
    with closing(open_file(path)) as snapshot:
        assert snapshot.find_source_id("main-lobby.EXAMPLE") is None
