"""Define the Picture and Report classes, for notebooks and files."""

import html
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike, fsdecode
from typing import Annotated, get_args
from xml.etree.ElementTree import Element
from zoneinfo import ZoneInfo

from srvstat.analysis import growth, pictures, questions, report, statistics
from srvstat.analysis.parameters import MarkOption, Parameter, check_choice, check_text
from srvstat.analysis.selection import Question
from srvstat.contract.errors import ParameterError, UsageError
from srvstat.documents.analysis import GrowthStepName, MarkPart, Timeline
from srvstat.documents.analysis import Report as ReportDocument
from srvstat.documents.document import describe
from srvstat.files.writing import write_atomically
from srvstat.render.pictures import Look, PictureDocument, draw_sheet
from srvstat.render.report import render_report
from srvstat.render.svg import Theme, encode_png, encode_svg
from srvstat.render.text import format_zoned_time

_HEIGHT = 720
"""The height of a report in a notebook, in pixels."""


class Report(ReportDocument):
    """A report about servers, with its data and its HTML page.

    `Snapshot.report` returns it, and notebooks display it.
    """

    def to_html(self) -> bytes:
        """Return the page as UTF-8 encoded HTML."""
        return render_report(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page to a file, replacing an existing file.

        Raises OutputError if the file can't be written.
        """
        write_atomically(fsdecode(path), self.to_html(), overwrite=True)

    def _repr_html_(self) -> str:
        # An iframe isolates the page's styles, scripts and content security policy from the
        # notebook.
        page = html.escape(self.to_html().decode())
        return (
            f'<iframe srcdoc="{page}" sandbox="allow-scripts" height="{_HEIGHT}"'
            ' style="width:100%;border:0"></iframe>'
        )


KINDS = ("players", "growth", "hours", "distribution", "share", "compare")
_OLD_KINDS = {"line": "players", "heatmap": "hours"}
_MOST_PIXELS = 8_000
"""The maximum width in pixels. A PNG has twice the resolution, at 4 bytes per pixel."""


@dataclass(frozen=True)
class PictureOptions(MarkOption):
    """The options that choose the content of a picture."""

    kind: Annotated[
        str,
        Parameter(
            "What to draw: players (over time), growth (the average of each day, week or month),"
            " hours (of the week), distribution (of player counts), share (each server's share of"
            " the players), or compare (with the window before).",
            "KIND",
            completes=KINDS,
        ),
    ] = "players"
    step: Annotated[
        str | None,
        Parameter(
            "The interval: for players and share, such as 15m, 1h, day or week; for growth, day,"
            " week or month [default: depends on the window].",
            "STEP",
        ),
    ] = None

    @property
    def name(self) -> str:
        """The kind of the picture. Deprecated names are replaced.

        Raises ParameterError if the kind is unknown.
        """
        return check_choice("kind", _OLD_KINDS.get(self.kind, self.kind), KINDS)

    def choose_question(self, marks: Sequence[MarkPart]) -> Callable[[Question], PictureDocument]:
        """Return the function that computes the picture's document.

        Raises ParameterError for a mark or a step that this kind of picture does not support.
        """
        name, step = self.name, self.step
        has_time = name in {"players", "share"}
        if marks and not has_time:
            raise ParameterError(f"{{mark}} can't be combined with {{kind}} {name}")
        if step is not None and not has_time and name != "growth":
            raise ParameterError(f"{{step}} can't be combined with {{kind}} {name}")
        if has_time:
            parsed = None if step is None else questions.parse_step(step)
            return partial(
                pictures.compute_timeline, max_steps=report.MOST_STEPS, marks=marks, step=parsed
            )
        if name == "growth" and step is not None:
            named = check_choice("step", step, get_args(GrowthStepName))
            return partial(growth.compute_growth, step=named)
        return _QUESTIONS[name]


_QUESTIONS: Mapping[str, Callable[[Question], PictureDocument]] = {
    "growth": growth.compute_growth,
    "hours": pictures.compute_peak_hours,
    "distribution": pictures.compute_distribution,
    "compare": partial(statistics.compute_stats, query=questions.ComparedQuery(versus="previous")),
}


@dataclass(frozen=True)
class LookOptions:
    """The options that choose the texts, size and colors of a picture."""

    panel = "Look"

    title: Annotated[
        str | None,
        Parameter("The title [default: what the picture shows, or the servers].", "TEXT"),
    ] = None
    subtitle: Annotated[
        str | None, Parameter("The line below the title [default: the window].", "TEXT")
    ] = None
    caption: Annotated[
        str | None,
        Parameter(
            "The line below the picture [default: the snapshot's name and end].",
            "TEXT",
            ("--caption", "--source"),
        ),
    ] = None
    width: Annotated[
        int, Parameter("The width in pixels; a PNG is twice as wide.", "N", least=320, most=4_000)
    ] = 960
    height: Annotated[
        int | None,
        Parameter("The height in pixels [default: fits the content].", "N", least=200, most=4_000),
    ] = None
    scale: Annotated[
        int,
        Parameter(
            "Enlarge the picture and its text, for example for a slide.", "N", least=1, most=8
        ),
    ] = 1
    theme: Annotated[
        Theme,
        Parameter("Colors for a light or a dark background; auto lets an SVG follow the browser."),
    ] = "light"

    def check(self, *, is_png: bool) -> None:
        """Check the texts, the size and the theme.

        Raises ParameterError for an invalid value.
        """
        check_choice("theme", self.theme, get_args(Theme))
        for name in ("title", "subtitle", "caption"):
            check_text(name, getattr(self, name))
        if self.width * self.scale > _MOST_PIXELS:
            raise ParameterError(
                f"{{scale}}: {{width}} times {{scale}} is more than {_MOST_PIXELS:,} pixels"
            )
        if is_png and self.theme == "auto":
            raise ParameterError(
                "{theme}: only an SVG can be auto; choose light or dark, or write an SVG"
            )


class Picture:
    """A picture. `Snapshot.plot` returns it, and notebooks display it as SVG."""

    def __init__(self, sheet: Element, look: LookOptions, subject: str) -> None:
        self._sheet = sheet
        self._look = look
        self._subject = subject

    def __repr__(self) -> str:
        return f"<Picture of {self._subject}>"

    def to_svg(self) -> bytes:
        """Return the picture as an SVG file."""
        return encode_svg(self._sheet, self._look.theme, self._look.scale)

    def to_png(self) -> bytes:
        """Return the picture as a PNG file. This needs `srvstat[png]`.

        Raises UsageError for the theme `auto`, and ImportError if `srvstat[png]` is not installed.
        """
        self._look.check(is_png=True)
        return encode_png(self._sheet, self._look.theme, self._look.scale)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture to a file whose name ends in .svg or .png, replacing an existing file.

        Raises UsageError for any other extension, OutputError if the file can't be written, and the
        errors of `to_png` for a .png file.
        """
        name = fsdecode(path)
        write_atomically(name, self.to_png() if is_png(name) else self.to_svg(), overwrite=True)

    def _repr_svg_(self) -> str:
        return self.to_svg().decode()


def is_png(path: str) -> bool:
    """Return whether the file name ends in .png.

    Raises UsageError if it ends in neither .png nor .svg.
    """
    ending = os.path.splitext(path)[1].lower()
    if ending not in {".svg", ".png"}:
        raise UsageError(f"{path}: unsupported picture format; use .svg or .png")
    return ending == ".png"


def draw_picture(
    document: PictureDocument, options: PictureOptions, look: LookOptions, path: str, zone: ZoneInfo
) -> Picture:
    """Draw a document. The caption names the snapshot at `path` by default.

    Raises UsageError for a `share` picture of a single server or of a total.
    """
    is_share = options.name == "share"
    if is_share and len(document.servers) == 1:
        raise ParameterError("{kind} share requires 2 to 5 servers and no {sum}")
    source = look.caption
    if source is None:
        file = os.path.basename(os.path.normpath(path))
        end = format_zoned_time(document.as_of, zone, "minutes")
        source = f"Source: {file}, which ends {end} · srvstat"
    shown = Look(
        look.width,
        look.height,
        look.title,
        look.subtitle,
        source,
        document.step if options.step and isinstance(document, Timeline) else None,
        "share" if is_share else None,
    )
    return Picture(draw_sheet(document, zone, shown), look, describe(document))
