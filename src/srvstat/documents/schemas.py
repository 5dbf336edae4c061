"""List the documents by name, and describe them as JSON Schema."""

from collections.abc import Mapping
from typing import Any

from srvstat.contract import wire
from srvstat.documents.access_check import AccessCheck
from srvstat.documents.distribution import Distribution
from srvstat.documents.document import Document
from srvstat.documents.explanation import Explanation
from srvstat.documents.growth import GrowthDocument
from srvstat.documents.integrity import Integrity
from srvstat.documents.manifest import Manifest
from srvstat.documents.peak_hours import PeakHours
from srvstat.documents.recording import Recording
from srvstat.documents.replay import Replay
from srvstat.documents.report import Report
from srvstat.documents.servers import Servers
from srvstat.documents.snapshot_diff import SnapshotDiff
from srvstat.documents.snapshot_info import SnapshotInfo
from srvstat.documents.statistics import Stats, Top
from srvstat.documents.timeline import Timeline
from srvstat.documents.verification import Verification

DOCUMENTS: Mapping[str, type[Document]] = {
    model.model_fields["document"].default: model
    for model in (
        AccessCheck,
        SnapshotDiff,
        Distribution,
        Explanation,
        GrowthDocument,
        Integrity,
        Manifest,
        PeakHours,
        Recording,
        Replay,
        Report,
        Servers,
        SnapshotInfo,
        Stats,
        Timeline,
        Top,
        Verification,
    )
}
"""The model of each document, by its name."""


def encode_schema(name: str) -> bytes:
    """Return the JSON Schema (2020-12) of a document, as JSON without a newline."""
    schema: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return wire.encode(schema | DOCUMENTS[name].model_json_schema(mode="serialization"))
