"""The sources that a command line names."""

from srvstat.contract import wire
from srvstat.contract.errors import UsageError
from srvstat.sources.formats import FORMATS
from srvstat.sources.source import Source


def source_of(name: str, format: str | None) -> Source:
    """Return the source of a name, whose format is the one given where it does not say it.

    Raises UsageError.
    """
    if format is not None and format not in FORMATS:
        raise UsageError(f"--format: {wire.quoted(format)} is not one of {', '.join(FORMATS)}")
    return Source.of(name, format)


def servers_source_of(name: str, format: str | None) -> Source:
    """Return the source of server records, which are NDJSON whatever observations may be.

    Raises UsageError.
    """
    source = source_of(name, format and "ndjson")
    if source.format != "ndjson":
        raise UsageError(f"{source.title}: server records are NDJSON, not CSV")
    return source
