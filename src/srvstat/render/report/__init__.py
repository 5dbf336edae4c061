"""Render a report as one HTML page, which needs no other file and no network."""

from srvstat.render.report.page import render_report

__all__ = ["render_report"]
