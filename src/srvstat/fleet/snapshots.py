"""Write the snapshot of a fleet as a folder of shards, which are built in parallel."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress

from srvstat.contract.errors import EngineError, UsageError
from srvstat.documents.snapshot import Manifest, ManifestShard, seal_manifest
from srvstat.files.atomic import write_file
from srvstat.files.paths import convert_write_errors
from srvstat.fleet.engine import Engine, Progress, Resolved
from srvstat.fleet.job import Fleet
from srvstat.snapshot.digests import (
    MANIFEST,
    compute_shards_root,
    find_shard,
    name_shard,
)
from srvstat.snapshot.rows import FileRow, find_observed_span
from srvstat.snapshot.write.build import Shard, build_shard
from srvstat.snapshot.write.processes import WorkerError, do_jobs
from srvstat.sources.values import is_utf8

_ROWS = "rows"
"""The folder of the resolved rows, which is removed when all shards are built."""

_PASSES = 2
"""How often a build reports a row: when it reads it, and when it stores it."""


class ShardedDraft:
    """A folder to fill with the shards of a fleet, and its name for messages."""

    def __init__(self, folder: str, title: str, shards: int) -> None:
        """Raise UsageError for a path that an engine can't write to."""
        if not is_utf8(folder):
            raise UsageError(f"--snapshots {title}: the whole path must be UTF-8; name another one")
        self._folder = folder
        self._title = title
        self._shards = shards

    def write_rows(self, engine: Engine, fleet: Fleet) -> Resolved:
        """Write the observations of the fleet by shard. The engine is not needed afterwards.

        Raises SourceError, EngineError.
        """
        shards = [find_shard(server_id, self._shards) for server_id in fleet.servers.ids]
        servers = fleet.servers._replace(shards=shards)
        return engine.write_rows(servers, fleet.as_of, os.path.join(self._folder, _ROWS))

    def build(
        self,
        fleet: Fleet,
        resolved: Resolved,
        sources: Sequence[str],
        *,
        processes: int,
        progress: Progress,
    ) -> Manifest:
        """Build the shards from their rows, then write the manifest; return it.

        `sources` are the names of sources that the shards and the manifest store.

        Raises OutputError; EngineError if a process fails.
        """
        built: dict[int, FileRow] = {}
        done = 0

        def report(rows: int) -> None:
            nonlocal done
            done += rows
            share = done / (_PASSES * resolved.kept or 1)
            progress("building", min(1, share), f"{len(built)} of {self._shards} shards")

        report(0)
        try:
            shards = self._iter_shards(fleet, sources)
            for shard, row in do_jobs(build_shard, shards, processes=processes, report=report):
                built[shard.number] = row
                report(0)
        except WorkerError as error:
            raise EngineError(
                f"{self._title}: {error}; if memory ran out, use more --shards or fewer --threads"
            ) from None
        rows = [built[number] for number in range(self._shards)]
        manifest = _build_manifest(fleet, resolved, sources, rows)
        if manifest.observations != resolved.kept:
            raise EngineError(
                f"{self._title}: the engine kept {resolved.kept:,} observations, but the shards"
                f" have {manifest.observations:,}; please report this"
            )
        with convert_write_errors(self._title), suppress(FileNotFoundError):
            shutil.rmtree(os.path.join(self._folder, _ROWS))
        path = os.path.join(self._folder, MANIFEST)
        write_file(path, [manifest.to_json(), b"\n"], title=self._title)
        return manifest

    def _iter_shards(self, fleet: Fleet, sources: Sequence[str]) -> Iterator[Shard]:
        members: list[list[int]] = [[] for _ in range(self._shards)]
        for number, server_id in enumerate(fleet.servers.ids):
            members[find_shard(server_id, self._shards)].append(number)
        for shard, numbers in enumerate(members):
            name = name_shard(shard)
            yield Shard(
                number=shard,
                path=os.path.join(self._folder, name),
                title=os.path.join(self._title, name),
                records=[fleet.records[number] for number in numbers],
                rows=os.path.join(self._folder, _ROWS, f"shard={shard}"),
                as_of=fleet.as_of,
                sources=sources,
            )


def _build_manifest(
    fleet: Fleet, resolved: Resolved, sources: Sequence[str], rows: Sequence[FileRow]
) -> Manifest:
    """Return the manifest of shards, given the rows of their files in order."""
    roots = [row.root.hex() for row in rows]
    first_observed_at, last_observed_at = find_observed_span(rows)
    manifest = Manifest(
        as_of=fleet.as_of,
        root=compute_shards_root(fleet.as_of, roots),
        servers=sum(row.server_count for row in rows),
        observations=sum(row.observation_count for row in rows),
        first_observed_at=first_observed_at,
        last_observed_at=last_observed_at,
        sources=tuple(sources),
        repeated=resolved.repeated,
        conflicting=resolved.conflicting,
        rejected=sum(reason.rows for reason in fleet.reasons),
        shards=tuple(
            ManifestShard(
                file=name_shard(number),
                root=row.root.hex(),
                servers=row.server_count,
                observations=row.observation_count,
            )
            for number, row in enumerate(rows)
        ),
    )
    return seal_manifest(manifest)
