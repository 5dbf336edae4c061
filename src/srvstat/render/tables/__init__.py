"""Answers and documents as tables, by subject. Values are rounded; JSON is exact."""

from srvstat.render.screen import render_table
from srvstat.render.tables import analysis, events, integrity, servers, support, today

__all__ = ["analysis", "events", "integrity", "render_table", "servers", "support", "today"]
