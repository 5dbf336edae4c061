"""Open and query a snapshot: a file or a folder of shards."""

import os
import stat
from collections.abc import Iterable, Iterator
from heapq import merge
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from srvstat.contract import wire
from srvstat.contract.errors import SnapshotError
from srvstat.contract.models import validate
from srvstat.contract.requests import Namespace, ServerReference
from srvstat.files.paths import Identity, compute_identity, convert_errors, identify_file
from srvstat.snapshot.read.file import SnapshotBase, SnapshotFile, open_file
from srvstat.snapshot.rows import (
    MANIFEST,
    MAX_SHARDS,
    FileRow,
    ServerRow,
    compute_shards_root,
    find_shard,
    name_shard,
)

if TYPE_CHECKING:
    from srvstat.documents.snapshot import Manifest, ManifestShard

Snapshot: TypeAlias = "SnapshotFile | ShardedSnapshot"


def open_snapshot(path: str) -> Snapshot:
    """Open a snapshot file, or a folder with a manifest of shards, for reading.

    Raises SnapshotError with a one-line reason that names the problem and a remedy, and shows
    nothing of the observations.
    """
    if not path or not os.path.isdir(path):
        return open_file(path)
    return ShardedSnapshot(path, _read_manifest(path))


def identify_snapshot(path: str) -> Identity:
    """Return the identity of the file at a path, or of the manifest in a folder."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(status.st_mode):
        return identify_file(os.path.join(path, MANIFEST))
    return compute_identity(status)


REMEDY = "copy the whole directory again, or write it with `srvstat fleet --snapshots`"

_MAX_BYTES = 1 << 24
"""The maximum size of a manifest, in bytes."""


def _read_manifest(folder: str) -> "Manifest":
    """Return the verified manifest of a folder.

    Raises SnapshotError if it is missing or damaged.
    """
    path = os.path.join(folder, MANIFEST)
    with convert_errors(path, SnapshotError):
        try:
            status = os.stat(path)
            # Opening a FIFO would wait for a writer.
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_BYTES:
                raise SnapshotError(f"{path}: not a file of at most {_MAX_BYTES:,} bytes; {REMEDY}")
            with open(path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            raise SnapshotError(
                f"{folder}: a directory without {MANIFEST}, not a snapshot; name a snapshot file,"
                " or a directory from `srvstat fleet --snapshots`"
            ) from None
    try:
        manifest = _parse(data)
        _check(manifest)
    except ValueError as error:
        raise SnapshotError(f"{path}: damaged ({error}); {REMEDY}") from None
    return manifest


def _parse(data: bytes) -> "Manifest":
    """Parse a manifest. Raises ValueError if it is malformed."""
    # Imported here because queries of a single file do not need the model, which takes 20 ms.
    from srvstat.documents.snapshot import Manifest  # noqa: PLC0415

    value: Any = wire.decode(data)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return validate(Manifest, value, {}, by_alias=True)


def _check(manifest: "Manifest") -> None:
    """Compare a manifest with its checksum, and its totals with its shards.

    Raises ValueError if a value differs or a text is not Unicode.
    """
    shards = manifest.shards
    if manifest.digest != manifest.compute_digest():
        raise ValueError("wrong checksum")
    if not 1 <= len(shards) <= MAX_SHARDS:
        raise ValueError(f"{len(shards):,} shards, not 1 to {MAX_SHARDS:,}")
    is_consistent = (
        [shard.file for shard in shards] == [name_shard(number) for number in range(len(shards))]
        and manifest.root == compute_shards_root(manifest.as_of, [shard.root for shard in shards])
        and manifest.servers == sum(shard.servers for shard in shards)
        and manifest.observations == sum(shard.observations for shard in shards)
    )
    if not is_consistent:
        raise ValueError("does not match its shards")


class ShardedSnapshot(SnapshotBase):
    """An open folder of shards. `open_snapshot` opens one.

    It gives the same responses as a file with all servers; only the root differs. Each shard is
    opened on first use, compared with the manifest, and remains open.
    """

    def __init__(self, folder: str, manifest: "Manifest") -> None:
        # An update needs more columns, but only a file can be updated.
        file_row = FileRow(
            as_of=manifest.as_of,
            server_count=manifest.servers,
            observation_count=manifest.observations,
            first_observed_at=manifest.first_observed_at,
            last_observed_at=manifest.last_observed_at,
            sources=wire.encode(manifest.sources).decode(),
            repeated=manifest.repeated,
            conflicting=manifest.conflicting,
            rejected=manifest.rejected,
            root=bytes.fromhex(manifest.root),
            digest=bytes.fromhex(manifest.digest),
        )
        super().__init__(folder, file_row)
        self.shards: tuple[ManifestShard, ...] = manifest.shards
        """The shards, ordered by number."""
        self._files: dict[int, SnapshotFile] = {}

    def close(self) -> None:
        """Close the shards that are open."""
        for file in self._files.values():
            file.close()

    def iter_files(self) -> Iterator[SnapshotFile]:
        """Yield the file of each shard, ordered by number."""
        return map(self._get_shard, range(len(self.shards)))

    def get_file(self, server: ServerRow) -> SnapshotFile:
        """Return the file that contains a server."""
        return self._get_shard(self._find_shard(server.id))

    def find_servers(self, references: Iterable[ServerReference]) -> list[ServerRow | None]:
        """Return the server of each reference, or None for an unknown server. Compares exactly.

        An id is looked up in its shard only, a cfxId in all shards.
        """
        wanted = list(references)
        shard_of = {
            at: self._find_shard(one.identifier) for at, one in enumerate(wanted) if one.by == "id"
        }
        found: list[ServerRow | None] = [None] * len(wanted)
        has_all = len(shard_of) == len(wanted)
        for number in dict.fromkeys(shard_of.values()) if has_all else range(len(self.shards)):
            missing = (at for at, server in enumerate(found) if server is None)
            asked = [at for at in missing if shard_of.get(at, number) == number]
            if asked:
                servers = self._get_shard(number).find_servers([wanted[at] for at in asked])
                for at, server in zip(asked, servers, strict=True):
                    found[at] = server and self._check_place(server, number)
        return found

    def has_identifier(self, by: Namespace, identifier: str) -> bool:
        """Check whether a server has an identifier."""
        if by == "id":
            return self._get_shard(self._find_shard(identifier)).has_identifier(by, identifier)
        return any(file.has_identifier(by, identifier) for file in self.iter_files())

    def iter_servers(self) -> Iterator[ServerRow]:
        """Yield all servers in the order of their ids."""
        return merge(*map(self._iter_servers_of, range(len(self.shards))), key=attrgetter("id"))

    def _iter_servers_of(self, number: int) -> Iterator[ServerRow]:
        for server in self._get_shard(number).iter_servers():
            yield self._check_place(server, number)

    def iter_identifiers(
        self, by: Namespace, start: str = "", *, backwards: bool = False
    ) -> Iterator[str]:
        """Yield unverified identifiers of a namespace, as `SnapshotFile.iter_identifiers` does."""
        names = [
            file.iter_identifiers(by, start, backwards=backwards) for file in self.iter_files()
        ]
        return merge(*names, reverse=backwards)

    def _find_shard(self, server_id: str) -> int:
        return find_shard(server_id, len(self.shards))

    def _check_place(self, server: ServerRow, number: int) -> ServerRow:
        """Return a server that was read from a shard.

        Raises SnapshotError if the server belongs in another shard.
        """
        right = self._find_shard(server.id)
        if right != number:
            raise SnapshotError(
                f"{self._build_path(number)}: {server.title} belongs in"
                f" {self.shards[right].file}; {REMEDY}"
            )
        return server

    def _build_path(self, number: int) -> str:
        return os.path.join(self.path, self.shards[number].file)

    def _get_shard(self, number: int) -> SnapshotFile:
        """Return the file of a shard, opened and compared with the manifest.

        Raises SnapshotError if it is missing, damaged or not the listed file.
        """
        if number not in self._files:
            path = self._build_path(number)
            if not os.path.exists(path):
                raise SnapshotError(f"{path}: missing, but {MANIFEST} lists it; {REMEDY}")
            file = open_file(path, sharing=len(self.shards))
            try:
                self._check_shard(file, self.shards[number])
            except BaseException:
                file.close()
                raise
            self._files[number] = file
        return self._files[number]

    def _check_shard(self, file: SnapshotFile, listed: "ManifestShard") -> None:
        row = file.file_row
        found = file.root, row.server_count, row.observation_count, file.as_of, file.parent_root
        if found != (listed.root, listed.servers, listed.observations, self.as_of, None):
            raise SnapshotError(
                f"{file.path}: not the file that {MANIFEST} lists: its content differs; try again"
                f" if the directory was just replaced, else {REMEDY}"
            )
