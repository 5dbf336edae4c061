"""`report` and `plot`: an HTML report about servers, and one picture of them."""

import os
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from srvstat.analysis.growth import compute_growth
from srvstat.analysis.parameters import Parameter
from srvstat.analysis.pictures import compute_distribution, compute_peak_hours, compute_timeline
from srvstat.analysis.report import (
    MOST_STEPS,
    build_report,
    check_title,
    choose_growth_step,
    describe_origin,
)
from srvstat.analysis.selection import NamedServers
from srvstat.analysis.windows import LongWindowQuery, WindowQuery, bound_window, check_server_count
from srvstat.cli import output_file
from srvstat.cli.analyzer import check_window, open_question
from srvstat.cli.options import OutputOption, OverwriteOption, SnapshotOption
from srvstat.cli.output import Form, JsonOption, Outcome, show, show_error
from srvstat.contract.errors import ApiError, ParameterError, UsageError
from srvstat.contract.time import Window
from srvstat.documents.analysis import GrowthDocument
from srvstat.render.pictures import PictureDocument, draw_sheet
from srvstat.render.report import render_report
from srvstat.render.svg import Theme, encode_png, encode_svg
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.snapshot.rows import ServerRow

_ENDINGS = (".svg", ".png")

_Compute = Callable[[Snapshot, list[ServerRow], Window, ZoneInfo], PictureDocument]


def report(
    named: NamedServers,
    window: LongWindowQuery,
    output: Annotated[
        OutputOption, "The file to write, such as report.html; - is standard output."
    ] = None,
    title: Annotated[
        str | None,
        Parameter("The title of the report [default: from the names of the servers].", "TEXT"),
    ] = None,
    json: Annotated[
        JsonOption,
        "Write the data that the page shows, as JSON, to -o or else to standard output.",
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
    output_file.check_ending(output, *((".json",) if json else (".html", ".htm")))
    zone = check_window(window)
    check_title(title)
    check_server_count(len(set(named.identifiers or ())))
    target = output_file.STDOUT_NAME if output is None else output
    output_file.check_output(target, overwrite=overwrite)
    try:
        with open_question(snapshot, named, window) as (file, found, interval):
            output_file.check_snapshot_is_kept(target, file.path)
            chosen = list(found)
            origin = describe_origin(chosen, window, title)
            document = build_report(file, chosen, interval, zone, origin)
    except ApiError as error:
        return show_error(error, Form.JSON if json else Form.TABLE)
    if json and target == output_file.STDOUT_NAME:
        return show(document, Form.JSON)
    data = document.to_json() + b"\n" if json else render_report(document)
    contents = output_file.describe_contents(len(chosen), document.window, zone)
    return output_file.write_output(target, data, contents=contents, overwrite=overwrite)


def _compute_growth(
    snapshot: Snapshot, servers: list[ServerRow], window: Window, zone: ZoneInfo
) -> GrowthDocument:
    step = choose_growth_step(bound_window(snapshot, servers, window))
    return compute_growth(snapshot, servers, window, step, zone)


_Kind = Literal["line", "heatmap", "distribution", "growth"]

_KINDS: Mapping[_Kind, _Compute] = {
    "line": lambda file, servers, window, zone: compute_timeline(
        file, servers, window, MOST_STEPS, zone
    ),
    "heatmap": compute_peak_hours,
    "distribution": lambda file, servers, window, _: compute_distribution(file, servers, window),
    "growth": _compute_growth,
}


def plot(
    named: NamedServers,
    window: WindowQuery,
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
        int,
        Parameter("The width in pixels; a PNG has twice as many.", "N", least=320, most=4_000),
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
    encode = _choose_encoder(output)
    zone = check_window(window)
    check_server_count(len(set(named.identifiers or ())))
    output_file.check_output(output, overwrite=overwrite)
    with open_question(snapshot, named, window) as (file, found, interval):
        output_file.check_snapshot_is_kept(output, file.path)
        drawn = list(found)
        document = _KINDS[kind](file, drawn, interval, zone)
    data = encode(draw_sheet(document, width, zone), theme)
    contents = output_file.describe_contents(len(drawn), document.window, zone)
    return output_file.write_output(output, data, contents=contents, overwrite=overwrite)


def _choose_encoder(path: str) -> Callable[[Any, Theme], bytes]:
    """Return the function that encodes a picture for the ending of a file.

    Raises UsageError.
    """
    ending = os.path.splitext(path)[1].lower()
    if path == output_file.STDOUT_NAME or ending == ".svg":
        return encode_svg
    if ending != ".png":
        raise UsageError(f"{path}: not a picture; the name must end with {' or '.join(_ENDINGS)}")
    return encode_png
