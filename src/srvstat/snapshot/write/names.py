"""Check the names of the files that a build or an update writes."""

import os
from collections.abc import Sequence

from srvstat.contract.errors import UsageError
from srvstat.files.atomic import check_name
from srvstat.files.reading import STDIN
from srvstat.snapshot.write.database import check_journal
from srvstat.sources.source import Source, check_stdin_once


def check_names(
    output: str, rejects: str | None, sources: Sequence[Source], *, name: str = "OUTPUT"
) -> None:
    """Refuse a snapshot that is a source, or that is also the file of the rejects.

    `name` is that of the snapshot's argument.

    Raises UsageError, OutputError.
    """
    check_stdin_once(source.name for source in sources)
    written = [check_name(name, output)]
    if rejects is not None:
        written.append(check_name("--rejects", rejects))
    for path, location in zip((output, rejects), written, strict=False):
        check_is_no_source(path, location, sources)
    if len(set(written)) < len(written):
        raise UsageError(f"{rejects}: is also the snapshot; name another file for the rejects")
    check_journal(output)


def check_is_no_source(path: str | None, location: str, sources: Sequence[Source]) -> None:
    """Refuse a file to write, with a real path, that is also a source.

    Raises UsageError.
    """
    if location in set(map(_locate, sources)):
        raise UsageError(f"{path}: is also a source; name another file")


def _locate(source: Source) -> str | None:
    """Return the real path of a source; None for standard input and for names that can't open."""
    if source.name == STDIN:
        return None
    try:
        return os.path.realpath(source.name)
    except (OSError, ValueError):  # such as a relative path in a directory that was removed
        return None
