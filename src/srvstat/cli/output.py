"""Write to standard output and standard error, and show a response in the chosen form."""

import os
import select
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from srvstat.analysis.parameters import Parameter, Without
from srvstat.cli.process import allow_cleanup
from srvstat.contract import wire
from srvstat.contract.errors import ApiError, OutputError, ParameterError
from srvstat.contract.responses import ErrorResponse, Response
from srvstat.files.paths import describe_error
from srvstat.render.text import escape_non_ascii, escape_text

if TYPE_CHECKING:
    from srvstat.render.screen import Screen

STDOUT, STDERR = 1, 2

_MIN_WIDTH = 20


class Outcome(NamedTuple):
    """The result of a command: its output in pieces, and its exit code.

    Pieces may be computed while they are written, so iterating over them can raise any error.
    """

    pieces: Iterable[bytes] = ()
    exit_code: int = 0


class ReaderGoneError(Exception):
    """Standard output was closed by its reader (for example, head).

    Not an OSError, because this is not a failure.
    """


class Form(Enum):
    """The form of an output."""

    JSON = "json"
    TABLE = "table"
    CSV = "csv"
    NDJSON = "ndjson"
    MARKDOWN = "markdown"
    PARQUET = "parquet"


ROW_FORMS = (Form.CSV, Form.NDJSON, Form.MARKDOWN, Form.PARQUET)
"""The forms of documents that are tables of rows."""


JsonOption = Annotated[bool, Parameter("Print JSON [default unless on a terminal].")]


@dataclass(frozen=True)
class FormOptions:
    """Options that choose the form of an output."""

    panel = "Output"

    json: JsonOption = False
    table: Annotated[bool, Parameter("Print a table; the default on a terminal.")] = False
    format: Annotated[
        Literal["json", "table", "csv", "ndjson", "markdown", "parquet"] | None,
        Parameter("Print this format."),
    ] = None
    chart: Annotated[bool, Parameter("Draw a chart above the table.")] = False

    def choose(self) -> Form:
        """Return the chosen form. The default is a table on a terminal, and JSON elsewhere.

        A chart implies a table.

        Raises ParameterError for more than one form, and for Parquet on a terminal.
        """
        if self.chart and (self.json or self.format is not None):
            raise ParameterError("{chart} can't be combined with {json} or {format}")
        if self.json and self.table:
            raise ParameterError("{json} and {table} can't be combined")
        if self.format is not None:
            if self.json or self.table:
                raise ParameterError("{format} can't be combined with {json} or {table}")
            if self.format == "parquet" and os.isatty(STDOUT):
                raise ParameterError("{format} parquet is binary; redirect it: > file.parquet")
            return Form(self.format)
        is_table = self.table or self.chart or (os.isatty(STDOUT) and not self.json)
        return Form.TABLE if is_table else Form.JSON


@dataclass(frozen=True)
class HistoryForm(FormOptions):
    """Options that choose the form of a history, whose chart replaces the table."""

    chart: Annotated[bool, Parameter("Draw a chart instead of the rows.")] = False


PlainForm = Annotated[FormOptions, Without("format", "chart")]
RowForm = Annotated[FormOptions, Without("chart")]
ChartForm = Annotated[FormOptions, Without("format")]


def prepare_json(part: bytes) -> bytes:
    """Return a part of a JSON text, escaped if standard output is a terminal."""
    return wire.escape_for_terminal(part) if os.isatty(STDOUT) else part


def write(data: bytes) -> None:
    """Write all bytes to standard output.

    Python's own streams lose data silently when unbuffered on a full disk, and print nothing to a
    closed standard output.

    Raises OutputError if writing fails, and ReaderGoneError if the reader has closed the pipe.
    """
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(STDOUT, rest) :]
        except BlockingIOError:
            select.select([], [STDOUT], [])
        except BrokenPipeError:
            raise ReaderGoneError from None
        except OSError as error:
            raise OutputError(f"standard output: {describe_error(error)}") from None


def report(*lines: str, end: str = "\n") -> None:
    """Write lines to standard error, escaped so that each remains one line, with `end` after each.

    Ignores failures.
    """
    text = "".join(f"{escape_text(line)}{end}" for line in lines)
    if is_ascii_only():
        text = escape_non_ascii(text)
    # Not through sys.stderr, because flushing its buffer would fail again and change the exit code
    # to 120.
    with suppress(OSError):
        os.write(STDERR, text.encode("utf-8"))


def is_ascii_only() -> bool:
    """Return whether the locale is limited to ASCII.

    Python reads the C locale as UTF-8, so only the environment shows the user's choice.
    """
    names = (os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    return next(filter(None, names), "") in ("C", "POSIX")


@contextmanager
def show_progress(
    open_bar: Callable[[Any], AbstractContextManager[Callable[..., None]]], *, quiet: bool
) -> Iterator[Callable[..., None]]:
    """Show a progress bar on a terminal while the block runs. An interrupted block can clean up.

    `open_bar`: called with the module `render.progress`; returns the bar.
    """
    if quiet or not os.isatty(STDERR) or os.environ.get("TERM") == "dumb":
        with allow_cleanup():
            yield lambda *_: None
        return
    # Imported only for a bar, because Rich takes 30 ms. Nothing may be imported after
    # allow_cleanup.
    from srvstat.render import progress  # noqa: PLC0415

    with allow_cleanup(), open_bar(progress) as advance:
        yield advance


def show(
    document: Any,
    form: Form,
    *,
    exit_code: int = 0,
    chart: Any = None,
    screen: "Screen | None" = None,
) -> Outcome:
    """Return the outcome of a command that shows a document or an API response.

    - `document`: an object with `to_json` or `iter_json` for JSON, with a renderer in
      `render/tables` for a table, or a `RowDocument` for the row forms.
    - `chart`: a document that `render/charts.py` draws above the table, or instead of the table if
      a terminal is too small for both.
    - `screen`: the screen to which the command has fitted the chart.
    """
    if form is Form.JSON:
        if hasattr(document, "iter_json"):
            return Outcome(chain(map(prepare_json, document.iter_json()), [b"\n"]), exit_code)
        return Outcome([encode_line(document)], exit_code)
    if form in ROW_FORMS:
        from srvstat.documents.rows import encode_rows  # noqa: PLC0415 - answers have no rows

        is_terminal = os.isatty(STDOUT)
        return Outcome(encode_rows(document, form.value, for_terminal=is_terminal), exit_code)
    return Outcome(list(_render_tables([document], chart, screen)), exit_code)


def show_tables(documents: Iterable[Any]) -> Outcome:
    """Return the outcome of a command that shows several tables, one below the other.

    They are computed while they are written.
    """
    return Outcome(_render_tables(documents))


def create_screen() -> "Screen":
    """Return the properties of standard output."""
    # Importing Rich takes 40 ms, a quarter of the time of a JSON response.
    from srvstat.render.screen import UNLIMITED, Screen  # noqa: PLC0415

    is_terminal = os.isatty(STDOUT)
    size = shutil.get_terminal_size()
    return Screen(
        width=max(size.columns, _MIN_WIDTH) if is_terminal else UNLIMITED,
        height=size.lines if is_terminal else None,
        color=is_colored(is_terminal=is_terminal),
        ascii_only=is_ascii_only(),
    )


def count_chart_values(screen: "Screen") -> int:
    """Return the number of values that a chart shows side by side."""
    from srvstat.render.charts import count_values  # noqa: PLC0415 - see create_screen

    return count_values(screen)


def _render_tables(
    documents: Iterable[Any], chart: Any = None, screen: "Screen | None" = None
) -> Iterator[bytes]:
    from srvstat.render.tables import render_table  # noqa: PLC0415 - see create_screen

    screen = screen or create_screen()
    texts: Iterable[str] = (render_table(document, screen) for document in documents)
    if chart is not None:
        from srvstat.render.charts import render_chart  # noqa: PLC0415 - only charts need it

        drawn = render_chart(chart, screen)
        texts = [drawn, *texts]
        # The total includes the blank line between them and the prompt.
        if screen.height and sum(one.count("\n") for one in texts) + 2 > screen.height:
            texts = [drawn]
    for position, text in enumerate(texts):
        yield (f"\n{text}" if position else text).encode("utf-8")


def show_error(error: ApiError, form: Form) -> Outcome:
    """Return the outcome of a command whose response is an API error."""
    if form is Form.JSON:
        report(error.reason)
        return show(ErrorResponse.from_error(error), form, exit_code=error.exit_code)
    report(f"error: {error.code}: {error.message}", error.reason)
    return Outcome(exit_code=error.exit_code)


def encode_line(answer: Response) -> bytes:
    """Return a response as a line of JSON for standard output."""
    return prepare_json(answer.to_json()) + b"\n"


def is_colored(*, is_terminal: bool) -> bool:
    """Return whether to use colors, according to NO_COLOR, FORCE_COLOR and TERM."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal and os.environ.get("TERM") not in (None, "", "dumb", "unknown")
