"""`report` and `plot`: an HTML report about servers, and one picture of them."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, TypeVar, get_args
from zoneinfo import ZoneInfo

from srvstat.analysis.growth import compute_growth
from srvstat.analysis.parameters import MarkOption, Parameter, check_choice, check_text
from srvstat.analysis.pictures import compute_distribution, compute_peak_hours, compute_timeline
from srvstat.analysis.questions import (
    ComparedQuery,
    LongWindowQuery,
    WindowQuery,
    check_server_count,
    parse_marks,
    parse_step,
)
from srvstat.analysis.report import MOST_STEPS, build_report
from srvstat.analysis.selection import Question, SelectedServers
from srvstat.analysis.statistics import compute_stats
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
from srvstat.documents.analysis import GrowthStepName, MarkPart, Report, Timeline
from srvstat.files.writing import check_destination, check_name, write_atomically
from srvstat.render.pictures import Look, PictureDocument, draw_sheet
from srvstat.render.report import render_report
from srvstat.render.svg import Theme, encode_png, encode_svg
from srvstat.render.text import format_count, format_size, format_window, format_zoned_time

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


KINDS = ("players", "growth", "hours", "distribution", "share", "compare")
_OLD_KINDS = {"line": "players", "heatmap": "hours"}
_MOST_PIXELS = 8_000
"""The greatest width: a PNG, which has twice as many, needs 4 bytes for each."""


@dataclass(frozen=True)
class LookOptions:
    """How a picture looks, and what it says about itself."""

    title: Annotated[
        str | None, Parameter("The title [default: the finding, or the servers].", "TEXT")
    ] = None
    subtitle: Annotated[
        str | None, Parameter("The line below the title [default: the window].", "TEXT")
    ] = None
    source: Annotated[
        str | None,
        Parameter("The source below the picture [default: the snapshot and its end].", "TEXT"),
    ] = None
    width: Annotated[
        int, Parameter("The width in pixels; a PNG has twice as many.", "N", least=320, most=4_000)
    ] = 960
    height: Annotated[
        int | None,
        Parameter("The height in pixels [default: by content].", "N", least=200, most=4_000),
    ] = None
    scale: Annotated[
        int, Parameter("Enlarge the picture with its text, for a slide.", "N", least=1, most=8)
    ] = 1
    theme: Annotated[
        Theme,
        Parameter("Colors for a light or a dark background; with auto, an SVG follows the reader."),
    ] = "light"

    def check(self, *, is_png: bool) -> None:
        """Check the texts, the size and the theme. Raises ParameterError."""
        for name in ("title", "subtitle", "source"):
            check_text(name, getattr(self, name))
        if self.width * self.scale > _MOST_PIXELS:
            raise ParameterError(
                f"{{scale}}: {{width}} times {{scale}} is more than {_MOST_PIXELS:,} pixels"
            )
        if is_png and self.theme == "auto":
            raise ParameterError(
                "{theme}: only an SVG can be auto; choose light or dark, or write an SVG"
            )


def plot(
    selected: SelectedServers,
    window: WindowQuery,
    marked: MarkOption,
    look: LookOptions,
    output: Annotated[
        OutputOption,
        "The file to write: players.png for a chat such as Discord, players.svg for a web page; -"
        " writes an SVG to standard output.",
    ] = None,
    kind: Annotated[
        str,
        Parameter(
            "What to draw: players over time, the average of each day, week or month, the hours of"
            " the week, how often each player count was observed, each server's share of their"
            " players, or the averages beside those of the window before.",
            "|".join(KINDS),
            completes=KINDS,
        ),
    ] = "players",
    step: Annotated[
        str | None,
        Parameter(
            "The length of a step of players and share, such as 15m, 1h, day or week; of growth,"
            " day, week or month [default: by the window].",
            "STEP",
        ),
    ] = None,
    snapshot: SnapshotOption = None,
    overwrite: OverwriteOption = False,
) -> Outcome:
    """Draw one to five servers as PNG or SVG.

    The picture has a title, its window and its source: a PNG for Discord, an SVG for a web page.
    The same command writes the same SVG for the same snapshot. PNG needs: pip install
    'srvstat[png]'

    Example: srvstat plot srv-1 srv-2 --range 90d --tz Europe/Berlin -o players.svg
    """
    if not output:
        raise UsageError("give -o FILE.svg or -o FILE.png")
    ending = os.path.splitext(output)[1].lower()
    is_svg = output == _STDOUT_NAME or ending == ".svg"
    if not is_svg and ending != ".png":
        raise UsageError(f"{output}: not a picture; the name must end with .svg or .png")
    look.check(is_png=not is_svg)
    chosen = check_choice("kind", _OLD_KINDS.get(kind, kind), KINDS)
    marks = parse_marks(marked.mark, check_window(window))
    compute = _choose_question(chosen, step, marks)

    def encode_sheet(document: PictureDocument, zone: ZoneInfo) -> bytes:
        shown = Look(
            look.width,
            look.height,
            look.title,
            look.subtitle,
            _name_source(document, look, snapshot, zone),
            None if step is None or chosen == "growth" else parse_step(step).name,
            "share" if chosen == "share" else None,
        )
        encode = encode_svg if is_svg else encode_png
        return encode(draw_sheet(document, zone, shown), look.theme, look.scale)

    return _write_answer(
        output, selected, window, snapshot, compute, encode_sheet, marks, overwrite=overwrite
    )


def _choose_question(
    kind: str, step: str | None, marks: Sequence[MarkPart]
) -> Callable[[Question], PictureDocument]:
    """Return what computes the document of a picture.

    Raises ParameterError for options that this kind of picture does not have.
    """
    has_time = kind in {"players", "share"}
    if marks and not has_time:
        raise ParameterError(f"{{mark}}: a picture of {kind} has no marks; leave it out")
    if step is not None and not has_time and kind != "growth":
        raise ParameterError(f"{{step}}: a picture of {kind} has no steps; leave it out")
    match kind:
        case "growth":
            name = None if step is None else check_choice("step", step, get_args(GrowthStepName))
            return partial(compute_growth, step=name)
        case "hours":
            return compute_peak_hours
        case "distribution":
            return compute_distribution
        case "compare":
            return partial(compute_stats, query=ComparedQuery(versus="previous"))
    parsed = None if step is None else parse_step(step)
    compute = partial(compute_timeline, most_steps=MOST_STEPS, marks=marks, step=parsed)
    return partial(_compute_shares, compute) if kind == "share" else compute


def _compute_shares(compute: Callable[[Question], Timeline], question: Question) -> Timeline:
    if question.is_sum or len(list(question.servers)) < 2:  # noqa: PLR2004 - one has all players
        raise UsageError("share: needs two to five servers, without their sum")
    return compute(question)


def _name_source(
    document: PictureDocument, look: LookOptions, snapshot: str | None, zone: ZoneInfo
) -> str:
    """Return the line below a picture, which names the data."""
    if look.source is not None:
        return look.source
    file = os.path.basename(os.path.normpath(find_snapshot(snapshot)))
    end = format_zoned_time(document.as_of, zone, "minutes")
    return f"Source: {file}, which ends {end} · srvstat"


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
