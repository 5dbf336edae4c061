"""`report` and `plot`: an HTML report about servers, and one picture of them."""

import os
from collections.abc import Callable, Mapping, Sequence
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
    marked: MarkOption,
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


KINDS = ("players", "growth", "hours", "distribution", "share", "compare")
_OLD_KINDS = {"line": "players", "heatmap": "hours"}
_MOST_PIXELS = 8_000
"""The greatest width: a PNG, which has twice as many, needs 4 bytes for each."""


@dataclass(frozen=True)
class PictureOptions(MarkOption):
    """What a picture shows."""

    kind: Annotated[
        str,
        Parameter(
            "What to draw: players over time, the average of each day, week or month, the hours of"
            " the week, how often each player count was observed, each server's share of their"
            " players, or the averages beside those of the window before.",
            "|".join(KINDS),
            completes=KINDS,
        ),
    ] = "players"
    step: Annotated[
        str | None,
        Parameter(
            "The length of a step of players and share, such as 15m, 1h, day or week; of growth,"
            " day, week or month [default: by the window].",
            "STEP",
        ),
    ] = None

    @property
    def name(self) -> str:
        """The kind of the picture. Raises ParameterError."""
        return check_choice("kind", _OLD_KINDS.get(self.kind, self.kind), KINDS)

    def choose_question(self, marks: Sequence[MarkPart]) -> Callable[[Question], PictureDocument]:
        """Return what computes the document of the picture.

        Raises ParameterError for options that this kind of picture does not have.
        """
        name, step = self.name, self.step
        has_time = name in {"players", "share"}
        if marks and not has_time:
            raise ParameterError(f"{{mark}}: a picture of {name} has no marks; leave it out")
        if step is not None and not has_time and name != "growth":
            raise ParameterError(f"{{step}}: a picture of {name} has no steps; leave it out")
        if has_time:
            parsed = None if step is None else parse_step(step)
            return partial(compute_timeline, most_steps=MOST_STEPS, marks=marks, step=parsed)
        if name == "growth" and step is not None:
            named = check_choice("step", step, get_args(GrowthStepName))
            return partial(compute_growth, step=named)
        return _QUESTIONS[name]


_QUESTIONS: Mapping[str, Callable[[Question], PictureDocument]] = {
    "growth": compute_growth,
    "hours": compute_peak_hours,
    "distribution": compute_distribution,
    "compare": partial(compute_stats, query=ComparedQuery(versus="previous")),
}


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
    options: PictureOptions,
    look: LookOptions,
    output: Annotated[
        OutputOption,
        "The file to write: players.png for a chat such as Discord, players.svg for a web page; -"
        " writes an SVG to standard output.",
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
    is_png = _is_png(output)
    look.check(is_png=is_png)
    marks = parse_marks(options.mark, check_window(window))
    compute = options.choose_question(marks)
    is_share = options.name == "share"

    def encode_sheet(document: PictureDocument, zone: ZoneInfo) -> bytes:
        if is_share and len(document.servers) == 1:
            raise UsageError("share: needs two to five servers, without their sum")
        shown = Look(
            look.width,
            look.height,
            look.title,
            look.subtitle,
            _name_source(document, look, snapshot, zone),
            document.step if options.step and isinstance(document, Timeline) else None,
            "share" if is_share else None,
        )
        encode = encode_png if is_png else encode_svg
        return encode(draw_sheet(document, zone, shown), look.theme, look.scale)

    return _write_answer(
        str(output), selected, window, snapshot, compute, encode_sheet, marks, overwrite=overwrite
    )


def _is_png(output: str | None) -> bool:
    """Return whether a picture is a PNG, and not an SVG. Raises UsageError for another name."""
    if not output:
        raise UsageError("give -o FILE.svg or -o FILE.png")
    ending = os.path.splitext(output)[1].lower()
    if ending not in {".svg", ".png"} and output != _STDOUT_NAME:
        raise UsageError(f"{output}: not a picture; the name must end with .svg or .png")
    return ending == ".png"


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
