"""`plot`: one picture of servers, as SVG or PNG."""

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Annotated, Any, NamedTuple, get_args
from zoneinfo import ZoneInfo

import typer

from srvstat.analysis.distribution import compute_distribution
from srvstat.analysis.drawing import bound_window, check_server_count
from srvstat.analysis.growth import compute_growth
from srvstat.analysis.peak_hours import compute_peak_hours
from srvstat.analysis.report import MOST_STEPS, choose_growth_step
from srvstat.analysis.selection import build_references, find_references
from srvstat.analysis.timeline import compute_timeline
from srvstat.analysis.windows import choose_window, find_zone
from srvstat.cli.analyzer_options import (
    FromOption,
    ServersArgument,
    ToOption,
    WindowRangeOption,
    build_window_query,
    report_missing_data,
)
from srvstat.cli.hints import add_hint
from srvstat.cli.options import ByOption, SnapshotOption, find_snapshot, parse_count
from srvstat.cli.output import Form, Outcome
from srvstat.cli.output_file import (
    STDOUT_NAME,
    OverwriteOption,
    check_output,
    check_snapshot_is_kept,
    describe_contents,
    write_output,
)
from srvstat.cli.peak_hours import ZoneOption
from srvstat.cli.show import show_error
from srvstat.contract import wire
from srvstat.contract.errors import ApiError, UsageError
from srvstat.contract.ranges import Window
from srvstat.documents.analysis import GrowthDocument
from srvstat.render.pictures.sheet import PictureDocument, draw_sheet
from srvstat.render.pictures.svg import Theme, encode_png, encode_svg
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.snapshot import Snapshot, open_snapshot

_THEMES: tuple[Theme, ...] = get_args(Theme)
_ENDINGS = (".svg", ".png")
_LEAST_WIDTH, _MOST_WIDTH = 320, 4_000
_DEFAULT_WIDTH = 960

_Compute = Callable[[Snapshot, list[ServerRow], Window, ZoneInfo], PictureDocument]


def _compute_growth(
    snapshot: Snapshot, servers: list[ServerRow], window: Window, zone: ZoneInfo
) -> GrowthDocument:
    step = choose_growth_step(bound_window(snapshot, servers, window))
    return compute_growth(snapshot, servers, window, step, zone)


_KINDS: Mapping[str, _Compute] = {
    "line": lambda file, servers, window, zone: compute_timeline(
        file, servers, window, MOST_STEPS, zone
    ),
    "heatmap": compute_peak_hours,
    "distribution": lambda file, servers, window, _: compute_distribution(file, servers, window),
    "growth": _compute_growth,
}


def _complete_kind(incomplete: str) -> list[str]:
    return [name for name in _KINDS if name.startswith(incomplete)]


def _complete_theme(incomplete: str) -> list[str]:
    return [name for name in _THEMES if name.startswith(incomplete)]


OutputOption = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE|-",
        help="The file to write, such as players.svg or players.png; - writes an SVG to standard"
        " output.",
    ),
]
KindOption = Annotated[
    str,
    typer.Option(
        metavar="|".join(_KINDS),
        help="What to draw: players over time, the hours of the week, how often each player count"
        " was observed, or the average of each day, week or month.",
        autocompletion=_complete_kind,
    ),
]
WidthOption = Annotated[
    str,
    typer.Option(metavar="N", help="The width in pixels, 320 to 4,000; a PNG has twice as many."),
]
ThemeOption = Annotated[
    str,
    typer.Option(
        metavar="|".join(_THEMES),
        help="Colors for a light or a dark background.",
        autocompletion=_complete_theme,
    ),
]


def plot(
    identifiers: ServersArgument = None,
    output: OutputOption = None,
    kind: KindOption = "line",
    by: ByOption = None,
    range: WindowRangeOption = None,
    start: FromOption = None,
    end: ToOption = None,
    tz: ZoneOption = "UTC",
    width: WidthOption = str(_DEFAULT_WIDTH),
    theme: ThemeOption = "light",
    snapshot: SnapshotOption = None,
    overwrite: OverwriteOption = False,
) -> Outcome:
    """Draw one to five servers as SVG or PNG.

    The picture has a title, its window and its source, for a document or a chat. The same command
    writes the same SVG for the same snapshot. PNG needs: pip install 'srvstat[png]'

    Example: srvstat plot srv-1 srv-2 --range 90d --tz Europe/Berlin -o players.svg
    """
    form = _choose_form(output, kind, width, theme)
    query = build_window_query(range, start, end, tz)
    zone = find_zone(tz)
    check_server_count(len(set(identifiers or ())))
    check_output(form.path, overwrite=overwrite)
    try:
        references = build_references(identifiers, by)
        with closing(open_snapshot(find_snapshot(snapshot))) as file, add_hint(file):
            check_snapshot_is_kept(form.path, file.path)
            window = choose_window(file, query)
            servers = list(find_references(file, references))
            report_missing_data(file, window, servers, tz)
            found = form.compute(file, servers, window, zone)
    except ApiError as error:
        return show_error(error, Form.TABLE)
    data = form.encode(draw_sheet(found, form.width, zone), form.theme)
    contents = describe_contents(len(servers), found.window, zone)
    return write_output(form.path, data, contents=contents, overwrite=overwrite)


class _Form(NamedTuple):
    """What to draw, and in which form."""

    path: str
    compute: _Compute
    encode: Callable[[Any, Theme], bytes]
    width: int
    theme: Theme


def _choose_form(output: str | None, kind: str, width: str, theme: str) -> _Form:
    """Check and parse the options of a picture.

    Raises UsageError.
    """
    if not output:
        raise UsageError("give -o FILE.svg or -o FILE.png")
    if kind not in _KINDS:
        raise UsageError(f"--kind: {wire.quote_value(kind)} is not one of {', '.join(_KINDS)}")
    chosen = next((one for one in _THEMES if one == theme), None)
    if chosen is None:
        raise UsageError(f"--theme: {wire.quote_value(theme)} is not one of {', '.join(_THEMES)}")
    pixels = parse_count("--width", width, least=_LEAST_WIDTH)
    if pixels > _MOST_WIDTH:
        raise UsageError(f"--width: {pixels:,} is more than {_MOST_WIDTH:,}")
    return _Form(output, _KINDS[kind], _choose_encoder(output), pixels, chosen)


def _choose_encoder(path: str) -> Callable[[Any, Theme], bytes]:
    """Return the function that encodes a picture for the ending of a file.

    Raises UsageError.
    """
    ending = os.path.splitext(path)[1].lower()
    if path == STDOUT_NAME or ending == ".svg":
        return encode_svg
    if ending != ".png":
        raise UsageError(f"{path}: not a picture; the name must end with {' or '.join(_ENDINGS)}")
    return encode_png
