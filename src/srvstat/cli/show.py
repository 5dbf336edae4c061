"""Show an answer or a document as JSON or as a table."""

import os
import shutil
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from srvstat.cli.output import ROW_FORMS, STDOUT, Form, Outcome, is_ascii_only, prepare_json, report
from srvstat.contract.errors import ApiError
from srvstat.contract.responses import ErrorResponse, Response

if TYPE_CHECKING:
    from srvstat.render.screen import Screen

_MIN_WIDTH = 20


def show(document: Any, form: Form, *, exit_code: int = 0, chart: Any = None) -> Outcome:
    """Return the outcome of a command that shows a document or an answer of the API.

    As JSON, `document` needs a method `to_json` or, if it is long, `iter_json`. As a table, it must
    be a `TableDocument`, and in the forms of rows a `RowDocument`. `chart` is a `ChartDocument`,
    drawn above the table.
    """
    if form is Form.JSON:
        if hasattr(document, "iter_json"):
            return Outcome(_prepare_pieces(document.iter_json()), exit_code)
        return Outcome([encode_line(document)], exit_code)
    if form in ROW_FORMS:
        from srvstat.render.rows import encode_rows  # noqa: PLC0415 - answers have no rows

        is_terminal = os.isatty(STDOUT)
        return Outcome(encode_rows(document, form.value, for_terminal=is_terminal), exit_code)
    return Outcome(list(_render_tables([document], chart)), exit_code)


def show_tables(documents: Iterable[Any], *, chart: Any = None) -> Outcome:
    """Return the outcome of a command that shows tables one below the other.

    They are computed while they are written, each a `TableDocument`. `chart` is as in `show`.
    """
    return Outcome(_render_tables(documents, chart))


def create_screen() -> "Screen":
    """Return the properties of standard output."""
    # Importing Rich takes 40 ms, a quarter of the time of a JSON answer.
    from srvstat.render.screen import Screen  # noqa: PLC0415

    is_terminal = os.isatty(STDOUT)
    return Screen(
        width=max(shutil.get_terminal_size().columns, _MIN_WIDTH) if is_terminal else None,
        color=_is_colored(is_terminal=is_terminal),
        ascii_only=is_ascii_only(),
    )


def count_chart_values() -> int:
    """Return how many values a chart shows side by side."""
    from srvstat.render.panels import count_values  # noqa: PLC0415 - see create_screen

    return count_values(create_screen())


def _render_tables(documents: Iterable[Any], chart: Any) -> Iterator[bytes]:
    from srvstat.render.tables import render_table  # noqa: PLC0415 - see create_screen

    screen = create_screen()
    blank_line = b""
    if chart is not None:
        from srvstat.render.charts import render_chart  # noqa: PLC0415 - only charts need it

        yield render_chart(chart, screen).encode("utf-8")
        blank_line = b"\n"
    for document in documents:
        yield blank_line + render_table(document, screen).encode("utf-8")
        blank_line = b"\n"


def show_error(error: ApiError, form: Form) -> Outcome:
    """Return the outcome of a command whose answer is an error of the API."""
    if form is Form.JSON:
        report(error.reason)
        return show(ErrorResponse.from_error(error), form, exit_code=error.exit_code)
    report(f"error: {error.code}: {error.message}", error.reason)
    return Outcome(exit_code=error.exit_code)


def encode_line(answer: Response) -> bytes:
    """Return an answer as a line of JSON for standard output."""
    return prepare_json(answer.to_json()) + b"\n"


def _prepare_pieces(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield prepare_json(piece)
    yield b"\n"


def _is_colored(*, is_terminal: bool) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal and os.environ.get("TERM") not in (None, "", "dumb", "unknown")
