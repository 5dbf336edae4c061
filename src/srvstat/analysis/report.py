"""Collect the data of a report: the document `report`."""

import shlex
from collections.abc import Sequence

from srvstat.analysis import growth, integrity, pictures, questions, statistics
from srvstat.analysis.selection import Question
from srvstat.analysis.series import get_name
from srvstat.contract import __version__
from srvstat.documents.analysis import Report
from srvstat.documents.document import remove_color_codes

MOST_STEPS = 9_000
"""The maximum number of steps; enough for the hours of a year."""

QUANTILES = ["0.05", "0.25", "0.75", "0.95"]
"""The quantiles in the statistics of a report."""

_MOST_NAMES = 2
"""The maximum number of servers that the default title names."""

_OUTPUT = "report.html"
"""The output file in a report's command, which names no snapshot either.

Paths differ between machines, while the same report must have the same bytes everywhere. The
report's root identifies the snapshot.
"""


def build_report(
    question: Question,
    query: questions.WindowQuery,
    title: str | None = None,
    marks: Sequence[str] = (),
) -> Report:
    """Return the documents of a report about servers, in their order.

    - `title`: by default, names the servers, or states their number if there are more than two.
    - `marks`: texts for `parse_marks`.

    The statistics include the previous window, unless there is none or a bundle does not cover it.

    Raises UsageError for invalid marks and for too many steps, and SnapshotError if data are
    damaged.
    """
    labels = map(get_name, question.servers)
    names = [remove_color_codes(one.hostname) or str(one.server_id) for one in labels]
    shown = " and ".join(names) if len(names) <= _MOST_NAMES else f"{len(names)} servers"
    grown = growth.compute_growth(question)
    compared = questions.ComparedQuery(versus="previous" if grown.previous_window else None)
    # Each part reads the observations itself, because sharing them would save little.
    return Report(
        **question.describe(),
        title=f"Players of {shown}" if title is None else title,
        program=f"srvstat {__version__}",
        command=shlex.join(_list_words(question, query, title, marks)),
        stats=statistics.compute_stats(question, statistics.FigureOptions(QUANTILES), compared),
        timeline=pictures.compute_timeline(
            question, MOST_STEPS, questions.parse_marks(marks, question.zone)
        ),
        peak_hours=pictures.compute_peak_hours(question),
        distribution=pictures.compute_distribution(question),
        growth=grown,
        integrity=integrity.check_integrity(question),
    )


def _list_words(
    question: Question, query: questions.WindowQuery, title: str | None, marks: Sequence[str]
) -> list[str]:
    """Return the words of the command that repeats a report from the same snapshot."""
    words = ["srvstat", "report"]
    # With its namespace, an identifier that starts with a hyphen is not read as an option.
    ids = (one.id for one in question.iter_rows())
    words += [f"id:{one}" if one.startswith("-") else one for one in ids]
    words += ["--sum"] if question.is_sum else []
    if query.start is None:
        words += ["--range", query.default if query.range is None else query.range]
    else:
        words += ["--from", query.start]
    if query.end is not None:
        words += ["--to", query.end]
    if query.tz != "UTC":
        words += ["--tz", query.tz]
    if title is not None:
        words += ["--title", title]
    for mark in marks:
        words += ["--mark", mark]
    return [*words, "-o", _OUTPUT]
