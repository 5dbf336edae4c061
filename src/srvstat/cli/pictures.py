"""`report` and `plot`: an HTML report about servers, and one picture of them."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Literal, TypeVar
from zoneinfo import ZoneInfo

from srvstat.analysis.growth import compute_growth
from srvstat.analysis.parameters import MarkOption, Parameter, check_text
from srvstat.analysis.pictures import compute_distribution, compute_peak_hours, compute_timeline
from srvstat.analysis.questions import LongWindowQuery, WindowQuery, check_server_count, parse_marks
from srvstat.analysis.report import MOST_STEPS, build_report
from srvstat.analysis.selection import Question, SelectedServers
from srvstat.cli.analyzer import check_window, choose_servers, open_question, report_missing_marks
from srvstat.cli.options import OutputOption, OverwriteOption, SnapshotOption, check_ending
from srvstat.cli.output import JsonOption, Outcome, prepare_json
from srvstat.cli.output import report as report_lines
from srvstat.cli.process import allow_cleanup
from srvstat.contract.errors import ParameterError, UsageError
from srvstat.contract.requests import MAX_SERVERS
from srvstat.documents.analysis import MarkPart, Report
from srvstat.files.writing import check_destination, check_name, write_atomically
from srvstat.render.pictures import PictureDocument, draw_sheet
from srvstat.render.report import render_report
from srvstat.render.svg import Theme, encode_png, encode_svg
from srvstat.render.text import format_count, format_size, format_window

_STDOUT_NAME = "-"

_Document = TypeVar("_Document", bound=Report | PictureDocument)


def report(
    selected: SelectedServers,
    window: LongWindowQuery,
    output: Annotated[
        OutputOption, "The file to write, such as report.html; - is standard output."
    ] = None,
    title: Annotated[
        str | None,
        Parameter("The title of the report [default: from the names of the servers].", "TEXT"),
    ] = None,
    json: Annotated[
        JsonOption, "Write the data that the page shows, as JSON, to -o or else to standard output."
    ] = False,
    snapshot: SnapshotOption = None,
    overwrite: OverwriteOption = False,
) -> Outcome:
    """Write an HTML report of up to five servers.

    The file needs no network. It has a summary, statistics, players over time, the hours of the
    week, the distribution, growth, integrity, coverage and the source of the data. The same command
    writes the same bytes for the same snapshot.

    Example: srvstat report srv-1 srv-2 --range 90d --tz Europe/Berlin -o report.html
    """
    if output is None and not json:
        raise ParameterError("give -o FILE for the page, or {json} for the data that it shows")
    check_ending(output, *((".json",) if json else (".html", ".htm")))
    check_text("title", title)
    target = _STDOUT_NAME if output is None else output
    compute = partial(build_report, query=window, title=title)

    def encode(document: Report, _zone: ZoneInfo) -> bytes:
        if not json:
            return render_report(document)
        data = document.to_json()
        return (prepare_json(data) if target == _STDOUT_NAME else data) + b"\n"

    return _write_answer(target, selected, window, snapshot, compute, encode, overwrite=overwrite)


_Kind = Literal["line", "heatmap", "distribution", "growth"]

_KINDS: Mapping[_Kind, Callable[[Question], PictureDocument]] = {
    "line": partial(compute_timeline, most_steps=MOST_STEPS),
    "heatmap": compute_peak_hours,
    "distribution": compute_distribution,
    "growth": compute_growth,
}


def plot(
    selected: SelectedServers,
    window: WindowQuery,
    marked: MarkOption,
    output: Annotated[
        OutputOption,
        "The file to write, such as players.svg or players.png; - writes an SVG to standard"
        " output.",
    ] = None,
    kind: Annotated[
        _Kind,
        Parameter(
            "What to draw: players over time, the hours of the week, how often each player count"
            " was observed, or the average of each day, week or month."
        ),
    ] = "line",
    width: Annotated[
        int, Parameter("The width in pixels; a PNG has twice as many.", "N", least=320, most=4_000)
    ] = 960,
    theme: Annotated[Theme, Parameter("Colors for a light or a dark background.")] = "light",
    snapshot: SnapshotOption = None,
    overwrite: OverwriteOption = False,
) -> Outcome:
    """Draw one to five servers as SVG or PNG.

    The picture has a title, its window and its source, for a document or a chat. The same command
    writes the same SVG for the same snapshot. PNG needs: pip install 'srvstat[png]'

    Example: srvstat plot srv-1 srv-2 --range 90d --tz Europe/Berlin -o players.svg
    """
    if not output:
        raise UsageError("give -o FILE.svg or -o FILE.png")
    ending = os.path.splitext(output)[1].lower()
    is_svg = output == _STDOUT_NAME or ending == ".svg"
    if not is_svg and ending != ".png":
        raise UsageError(f"{output}: not a picture; the name must end with .svg or .png")
    encode = encode_svg if is_svg else encode_png
    marks = parse_marks(marked.mark, check_window(window))
    compute = _KINDS[kind]
    if marks and kind != "line":
        raise ParameterError("{mark}: only players over time have marks; leave it out")
    if marks:
        compute = partial(compute_timeline, most_steps=MOST_STEPS, marks=marks)

    def encode_sheet(document: PictureDocument, zone: ZoneInfo) -> bytes:
        return encode(draw_sheet(document, width, zone), theme)

    return _write_answer(
        output, selected, window, snapshot, compute, encode_sheet, marks, overwrite=overwrite
    )


def _write_answer(
    path: str,
    selected: SelectedServers,
    window: WindowQuery,
    snapshot: str | None,
    compute: Callable[[Question], _Document],
    encode: Callable[[_Document, ZoneInfo], bytes],
    marks: Sequence[MarkPart] = (),
    *,
    overwrite: bool,
) -> Outcome:
    """Write a document about up to five servers to a file, and say so; `-` is standard output.

    Whether the file may be written is checked before anything is computed.

    Raises UsageError if it may not, or is the snapshot to read; OutputError.
    """
    zone = check_window(window)
    selected = choose_servers(selected, most=MAX_SERVERS)
    is_file = path != _STDOUT_NAME
    if is_file:
        check_name("-o", path)
        check_destination(path, overwrite=overwrite)
    with open_question(snapshot, selected, window) as question:
        if is_file and os.path.realpath(path) == os.path.realpath(question.snapshot.path):
            raise UsageError(f"{path}: is the snapshot to read; name another file")
        check_server_count(len(list(question.servers)))
        report_missing_marks(marks, question.window, zone)
        document, count = compute(question), len(list(question.iter_rows()))
    data = encode(document, zone)
    if not is_file:
        return Outcome([data])
    with allow_cleanup():
        write_atomically(path, data, overwrite=overwrite)
    servers = format_count(count, "server")
    shown = format_window(document.window.from_, document.window.to, zone)
    report_lines(f"wrote {path}: {servers}, {shown} ({zone.key}), {format_size(len(data))}")
    return Outcome()
