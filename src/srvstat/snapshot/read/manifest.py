"""Read the manifest of a sharded snapshot, and verify it by its digests."""

import os
import stat
from typing import Any

from srvstat.contract import wire
from srvstat.contract.errors import SnapshotError
from srvstat.contract.instants import InstantError, parse_instant
from srvstat.contract.models import InvalidValueError, validate
from srvstat.documents.snapshot import Manifest
from srvstat.files.errors import convert_errors
from srvstat.snapshot.format.rows import FileRow
from srvstat.snapshot.format.shards import MANIFEST, MAX_SHARDS, compute_shards_root, name_shard

REMEDY = "copy the whole directory again, or write it with `srvstat fleet --snapshots`"

_MAX_BYTES = 1 << 24
"""No build writes a longer manifest."""

_INSTANTS = ("asOf", "firstObservedAt", "lastObservedAt")


class _ManifestError(ValueError):
    """The manifest is not one that a build writes. The message gives the reason."""


def read_manifest(folder: str) -> Manifest:
    """Return the verified manifest in a folder.

    Raises SnapshotError.
    """
    path = os.path.join(folder, MANIFEST)
    with convert_errors(path, SnapshotError):
        try:
            data = _read_file(path)
        except FileNotFoundError:
            raise SnapshotError(
                f"{folder}: a directory without {MANIFEST}, not a snapshot; name a snapshot file,"
                " or a directory from `srvstat fleet --snapshots`"
            ) from None
    try:
        manifest = _parse(data)
        _check(manifest)
    except (wire.JsonError, InvalidValueError, InstantError, _ManifestError) as error:
        raise SnapshotError(f"{path}: damaged ({error}); {REMEDY}") from None
    except UnicodeEncodeError:
        raise SnapshotError(f"{path}: damaged (a lone surrogate); {REMEDY}") from None
    return manifest


def build_file_row(manifest: Manifest) -> FileRow:
    """Return what a manifest has of the row of a file; an update needs more."""
    return FileRow(
        as_of=manifest.as_of,
        server_count=manifest.servers,
        observation_count=manifest.observations,
        first_observed_at=manifest.first_observed_at,
        last_observed_at=manifest.last_observed_at,
        sources=wire.encode(manifest.sources).decode(),
        repeated=manifest.repeated,
        conflicting=manifest.conflicting,
        rejected=manifest.rejected,
        is_open=0,
        parent_root=None,
        covered_from=None,
        bucket_digests=b"",
        root=bytes.fromhex(manifest.root),
        digest=bytes.fromhex(manifest.digest),
    )


def _read_file(path: str) -> bytes:
    """Return the content of a regular file.

    Raises OSError, SnapshotError.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):  # opening a FIFO would wait for a writer
        raise SnapshotError(f"{path}: not a regular file; {REMEDY}")
    with open(path, "rb") as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise SnapshotError(f"{path}: damaged (more than {_MAX_BYTES:,} bytes); {REMEDY}")
    return data


def _parse(data: bytes) -> Manifest:
    """Parse a manifest.

    Raises JsonError, InvalidValueError, InstantError, _ManifestError.
    """
    value: Any = wire.decode(data)
    if not isinstance(value, dict):
        raise _ManifestError("not an object")
    for name in _INSTANTS:
        given = value.get(name)
        if isinstance(given, str):
            value[name] = parse_instant(given)
        elif given is not None:
            raise _ManifestError(f"{name}: not a time")
    return validate(Manifest, value, {}, by_alias=True)


def _check(manifest: Manifest) -> None:
    """Compare a manifest with its digests, and its totals with those of its shards.

    Raises _ManifestError; UnicodeEncodeError for a text that is not Unicode.
    """
    shards = manifest.shards
    if manifest.digest != manifest.compute_digest():
        raise _ManifestError("another digest")
    if not 1 <= len(shards) <= MAX_SHARDS:
        raise _ManifestError(f"{len(shards):,} shards, not 1 to {MAX_SHARDS:,}")
    for number, shard in enumerate(shards):
        if shard.file != name_shard(number):
            raise _ManifestError(f"shards[{number}].file: not {name_shard(number)}")
    if manifest.root != compute_shards_root(manifest.as_of, [shard.root for shard in shards]):
        raise _ManifestError("another root than that of its shards")
    totals = manifest.servers, manifest.observations
    if totals != (sum(one.servers for one in shards), sum(one.observations for one in shards)):
        raise _ManifestError("other totals than those of its shards")
