"""Answers and documents as tables, by subject. Figures are rounded; JSON is exact."""

from collections.abc import Callable, Mapping
from typing import Any

from srvstat.documents.analysis import (
    Comparison,
    GrowthDocument,
    HistoryNotes,
    ObservationTable,
    PeakHours,
    Stats,
    StepTable,
    Top,
)
from srvstat.documents.integrity import Integrity
from srvstat.documents.servers import Servers, ServerTable, SnapshotInfo
from srvstat.documents.snapshot import DryRun, Verification
from srvstat.documents.support import AccessCheck, Explanation, Replay, SnapshotDiff
from srvstat.render.screen import Screen
from srvstat.render.tables.analysis import (
    render_growth,
    render_notes,
    render_observations,
    render_peak_hours,
    render_stats,
    render_steps,
)
from srvstat.render.tables.comparison import render_comparison
from srvstat.render.tables.integrity import render_integrity
from srvstat.render.tables.servers import (
    render_dry_run,
    render_info,
    render_server,
    render_servers,
    render_verification,
)
from srvstat.render.tables.support import (
    render_access,
    render_explanation,
    render_replay,
    render_snapshot_diff,
)

_RENDERERS: Mapping[type, Callable[[Any, Screen], str]] = {
    AccessCheck: render_access,
    Comparison: render_comparison,
    DryRun: render_dry_run,
    Explanation: render_explanation,
    GrowthDocument: render_growth,
    HistoryNotes: render_notes,
    ObservationTable: render_observations,
    Integrity: render_integrity,
    PeakHours: render_peak_hours,
    Replay: render_replay,
    Servers: render_servers,
    ServerTable: render_server,
    SnapshotDiff: render_snapshot_diff,
    SnapshotInfo: render_info,
    Stats: render_stats,
    StepTable: render_steps,
    Top: render_stats,
    Verification: render_verification,
}


def render_table(document: object, screen: Screen) -> str:
    """Render a document that has a table for a screen."""
    return _RENDERERS[type(document)](document, screen)
