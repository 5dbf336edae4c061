"""What a notebook shows as a page or a picture, and saves to a file."""

import html
from os import PathLike, fsdecode

from srvstat.documents import analysis as documents
from srvstat.files.writing import write_atomically
from srvstat.render.report import render_report

_HEIGHT = 720
"""The height of a report in a notebook, in pixels."""


class Report(documents.Report):
    """The documents of a report, and its page."""

    def to_html(self) -> bytes:
        """Return the page, as `srvstat report` writes it."""
        return render_report(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page to a file, which is replaced. Raises OutputError."""
        write_atomically(fsdecode(path), self.to_html(), overwrite=True)

    def _repr_html_(self) -> str:
        # A frame keeps the styles, the scripts and the policy of the page inside.
        page = html.escape(self.to_html().decode())
        return (
            f'<iframe srcdoc="{page}" sandbox="allow-scripts" height="{_HEIGHT}"'
            ' style="width:100%;border:0"></iframe>'
        )
