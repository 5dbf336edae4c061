"""Render a report as one HTML page."""

from xml.etree import ElementTree as ET

from srvstat.documents.report import Report
from srvstat.render.text import escape_text


def render_report(report: Report) -> bytes:
    """Return the page of a report."""
    page = ET.Element("html", lang="en")
    ET.SubElement(ET.SubElement(page, "body"), "h1").text = escape_text(report.title)
    return f"<!DOCTYPE html>\n{ET.tostring(page, encoding='unicode', method='html')}".encode()
