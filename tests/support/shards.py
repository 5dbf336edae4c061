"""Divide a snapshot into shards."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from conftest import csv, ndjson
from srvstat.cli.main import main
from srvstat.contract.time import BEFORE_ALL, LATEST, Window
from srvstat.documents.snapshot import Manifest, ManifestShard, seal_manifest
from srvstat.snapshot.digests import MANIFEST, compute_shards_root, find_shard, name_shard
from srvstat.snapshot.read.observations import read_observations
from srvstat.snapshot.read.snapshot import SnapshotFile, open_file
from srvstat.snapshot.rows import ServerRow
from srvstat.snapshot.write.server_rows import build_record
from srvstat.sources.servers import format_records


def write_shards(path: Path, folder: Path, count: int) -> Path:
    """Write the content of a snapshot file as a folder of shards, and return the folder."""
    folder.mkdir()
    with closing(open_file(str(path))) as snapshot:
        servers = list(snapshot.iter_servers())
        for number in range(count):
            chosen = [one for one in servers if find_shard(one.id, count) == number]
            _build_shard(snapshot, chosen, folder / name_shard(number))
        write_manifest(folder, snapshot, [name_shard(number) for number in range(count)])
    return folder


def _build_shard(snapshot: SnapshotFile, servers: Sequence[ServerRow], path: Path) -> None:
    records, observations = path.with_suffix(".ndjson"), path.with_suffix(".csv")
    records.write_bytes(b"".join(format_records(map(build_record, servers))) or ndjson([]))
    rows = [
        (server.id, at, players)
        for server in servers
        for at, players in zip(
            *map(list, read_observations(snapshot, server, Window(BEFORE_ALL, LATEST))), strict=True
        )
    ]
    observations.write_bytes(csv(rows))
    sources = [f"--servers={records}", f"--observations={observations}", "--allow-empty"]
    as_of = f"--as-of={snapshot.as_of}"
    assert main(["snapshot", "build", str(path), *sources, as_of, "--quiet"]) == 0
    records.unlink()
    observations.unlink()


def write_manifest(folder: Path, snapshot: SnapshotFile, names: Sequence[str]) -> None:
    """Write the manifest of shards that have the content of a snapshot."""
    shards = []
    for name in names:
        with closing(open_file(str(folder / name))) as file:
            row = file.file_row
            shards.append(
                ManifestShard(
                    file=name,
                    root=file.root,
                    servers=row.server_count,
                    observations=row.observation_count,
                )
            )
    row = snapshot.file_row
    manifest = Manifest(
        as_of=snapshot.as_of,
        root=compute_shards_root(snapshot.as_of, [shard.root for shard in shards]),
        servers=sum(shard.servers for shard in shards),
        shards=tuple(shards),
        observations=row.observation_count,
        first_observed_at=row.first_observed_at,
        last_observed_at=row.last_observed_at,
        sources=snapshot.sources,
        repeated=row.repeated,
        conflicting=row.conflicting,
        rejected=row.rejected,
    )
    (folder / MANIFEST).write_bytes(seal_manifest(manifest).to_json())
