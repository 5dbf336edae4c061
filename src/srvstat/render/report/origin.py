"""The sections on where a report comes from, and on what its words mean."""

from xml.etree.ElementTree import Element

from srvstat.documents.analysis import Report
from srvstat.render.local_time import format_local_window
from srvstat.render.report.comparison import FIRST_LAST
from srvstat.render.report.elements import build, build_fields, build_section
from srvstat.render.report.labels import Labels
from srvstat.render.text import NOTHING

_DEFINITIONS = (
    ("Observation", "One player count of a server at an instant."),
    ("Window", "The time that the report covers, without its first instant and with its last."),
    ("Current", "The count in the server's record, or else its last observation."),
    ("Average", "The sum of the counts divided by their number; all observations weigh the same."),
    ("Median", "The 50% quantile."),
    ("Quantile", "The count that a share of the observations does not exceed."),
    (
        "Change",
        (
            "The average of the window minus the average of the window of equal length before, in"
            " players and in percent. There is none if less than 80% of either window was observed."
        ),
    ),
    (
        FIRST_LAST,
        (
            "The first and the last count of the window. They are two moments, mostly at different"
            " times of day."
        ),
    ),
    (
        "Trend",
        (
            "The median slope between the averages of any two whole days (Theil and Sen). It is"
            " flat if it changes the average by less than 1% a week, and there is none if less than"
            " 80% of the window was observed."
        ),
    ),
    (
        "Whole, partial",
        (
            "A step, such as a day, is whole if at least 90% of it was observed, otherwise"
            " partial. A partial step does not determine a scale or a trend."
        ),
    ),
    ("Usual interval", "The median distance between successive observations."),
    ("Coverage", "The share of the window in which an observation lasts."),
    (NOTHING, "No value, because there are too few observations."),
)


def build_origin(report: Report, labels: Labels) -> Element:
    """Build the section on where the data and the page come from, and how to check them."""
    verify = build("code", "srvstat snapshot verify SNAPSHOT")
    root = build("code", report.root, class_="long")
    return build_section(
        "origin",
        "Source",
        build_fields(
            [
                ("Snapshot as of", labels.build_time(report.as_of)),
                ("Root", build("span", root, " (SHA-256 of the snapshot's content)")),
                ("Window", format_local_window(report.window, labels.zone)),
                ("Time zone", report.time_zone),
                ("Program", report.program),
                ("Command", build("code", report.command)),
                (
                    "To check",
                    build(
                        "span",
                        verify,
                        " prints the root of an intact snapshot. The"
                        " command above, run on this snapshot, writes this file again.",
                    ),
                ),
            ]
        ),
    )


def build_definitions() -> Element:
    """Build the section on the meaning of words."""
    return build_section("definitions", "Definitions", build_fields(_DEFINITIONS))
