"""The manifest of a sharded snapshot: its shards, and totals over all of them."""

from hashlib import sha256
from typing import Literal

from srvstat.contract import wire
from srvstat.contract.models import Members, Sha256, WholeNumber
from srvstat.documents.document import Instant, Part, SnapshotDocument

_LABEL = b"srvstat manifest\0"


class ManifestShard(Part):
    """A shard: its file beside the manifest, the root of its content, and what it contains."""

    file: str
    root: Sha256
    servers: WholeNumber
    observations: WholeNumber


class Manifest(SnapshotDocument):
    """The shards in the order of their numbers, and totals over all of them.

    `root` covers `as_of` and the roots of the shards, and so the whole content. `repeated`,
    `conflicting` and `rejected` count rows of the `sources`, as in a snapshot of one file. Without
    observations, the first and the last instant are None. `digest` covers all other members; see
    `seal_manifest`.
    """

    document: Literal["manifest"] = "manifest"
    version: Literal[1] = 1
    root: Sha256
    servers: WholeNumber
    observations: WholeNumber
    first_observed_at: Instant | None
    last_observed_at: Instant | None
    sources: Members[str]
    repeated: WholeNumber
    conflicting: WholeNumber
    rejected: WholeNumber
    shards: Members[ManifestShard]
    digest: str = ""

    def compute_digest(self) -> str:
        """Return the SHA-256 of the JSON without `digest`, after a label and a zero byte."""
        return sha256(_LABEL + wire.encode(self.model_dump(exclude={"digest"}))).hexdigest()


def seal_manifest(manifest: Manifest) -> Manifest:
    """Return a manifest with its digest computed."""
    return manifest.model_copy(update={"digest": manifest.compute_digest()})
