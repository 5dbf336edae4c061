"""The commands `report` and `plot`: an HTML report about servers, and a picture of them."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, TypeVar
from zoneinfo import ZoneInfo

from srvstat.analysis.parameters import MarkOption, Parameter, check_text
from srvstat.analysis.questions import LongWindowQuery, WindowQuery, check_server_count, parse_marks
from srvstat.analysis.report import build_report
from srvstat.analysis.selection import Question, SelectedServers
from srvstat.api.pages import LookOptions, PictureOptions, draw_picture, is_png
from srvstat.cli.analyzer import check_window, choose_servers, open_question, report_missing_marks
from srvstat.cli.options import (
    OutputOption,
    OverwriteOption,
    SnapshotOption,
    check_ending,
    find_snapshot,
)
from srvstat.cli.output import JsonOption, Outcome, prepare_json
from srvstat.cli.output import report as report_lines
from srvstat.cli.process import allow_cleanup
from srvstat.contract.errors import ParameterError, UsageError
from srvstat.contract.requests import MAX_SERVERS
from srvstat.documents.analysis import MarkPart, Report
from srvstat.files.writing import check_destination, check_name, write_atomically
from srvstat.render.pictures import PictureDocument
from srvstat.render.report import render_report
from srvstat.render.text import format_count, format_size, format_window

_STDOUT_NAME = "-"

_Document = TypeVar("_Document", bound=Report | PictureDocument)


def report(
    selected: SelectedServers,
    window: LongWindowQuery,
    marked: MarkOption,
    output: Annotated[
        OutputOption, "The file to write, such as report.html; - is standard output."
    ] = None,
    title: Annotated[
        str | None,
        Parameter("The title of the report [default: the names of the servers].", "TEXT"),
    ] = None,
    json: Annotated[
        JsonOption, "Write the report's data as JSON, to -o or else to standard output."
    ] = False,
    snapshot: SnapshotOption = None,
    overwrite: OverwriteOption = False,
) -> Outcome:
    """Write an HTML report of up to five servers.

    The page works offline. It shows a summary, statistics, players over time, the hours of the
    week, the distribution, growth, integrity, coverage and the source of the data. The same command
    writes the same bytes for the same snapshot.

    Example: srvstat report harbor-city new-frontier --range 90d -o report.html
    """
    if output is None and not json:
        raise ParameterError("no output; add -o FILE.html, or {json} for the report's data")
    check_ending(output, *((".json",) if json else (".html", ".htm")))
    check_text("title", title)
    target = _STDOUT_NAME if output is None else output
    marks = parse_marks(marked.mark, check_window(window))
    compute = partial(build_report, query=window, title=title, marks=marked.mark or ())

    def encode(document: Report, _zone: ZoneInfo) -> bytes:
        if not json:
            return render_report(document)
        data = document.to_json()
        return (prepare_json(data) if target == _STDOUT_NAME else data) + b"\n"

    return _write_answer(
        target, selected, window, snapshot, compute, encode, marks, overwrite=overwrite
    )


def plot(
    selected: SelectedServers,
    window: WindowQuery,
    options: PictureOptions,
    look: LookOptions,
    output: Annotated[
        OutputOption,
        "The file to write, such as players.png or players.svg; - writes an SVG to standard"
        " output.",
    ] = None,
    snapshot: SnapshotOption = None,
    overwrite: OverwriteOption = False,
) -> Outcome:
    """Draw one to five servers as PNG or SVG.

    The picture names its window and source. Use PNG for Discord, SVG for a web page. The same
    command writes the same SVG for the same snapshot. PNG needs: pip install 'srvstat[png]'

    Example: srvstat plot harbor-city new-frontier --range 90d -o players.svg
    """
    if not output:
        raise UsageError("no output; add -o FILE.svg or -o FILE.png")
    is_raster = output != _STDOUT_NAME and is_png(output)
    look.check(is_png=is_raster)
    marks = parse_marks(options.mark, check_window(window))
    compute = options.choose_question(marks)

    def encode(document: PictureDocument, zone: ZoneInfo) -> bytes:
        picture = draw_picture(document, options, look, find_snapshot(snapshot), zone)
        return picture.to_png() if is_raster else picture.to_svg()

    return _write_answer(
        output, selected, window, snapshot, compute, encode, marks, overwrite=overwrite
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
    """Write a document about up to five servers to a file, and report it. `-` is standard output.

    Checks the output before computing anything.

    Raises UsageError if the file may not be written or is the snapshot to read, and OutputError if
    it can't be written.
    """
    zone = check_window(window)
    selected = choose_servers(selected, most=MAX_SERVERS)
    is_file = path != _STDOUT_NAME
    if is_file:
        check_name("-o", path)
        check_destination(path, overwrite=overwrite)
    with open_question(snapshot, selected, window) as question:
        if is_file and os.path.realpath(path) == os.path.realpath(question.snapshot.path):
            raise UsageError(f"{path}: is the input snapshot; choose another output")
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
