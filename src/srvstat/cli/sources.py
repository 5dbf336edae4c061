"""The sources that a command line names."""

from srvstat.contract import wire
from srvstat.contract.errors import UsageError
from srvstat.sources.formats import FORMATS
from srvstat.sources.source import Source


def parse_source(name: str, format: str | None) -> Source:
    """Return the source of a name, whose format is the one given where it does not say it.

    Raises UsageError.
    """
    _check_name(name)
    if format is not None and format not in FORMATS:
        raise UsageError(f"--format: {wire.quote_value(format)} is not one of {', '.join(FORMATS)}")
    return Source.of(name, format)


def parse_servers_source(name: str) -> Source:
    """Return the source of server records, which are NDJSON whatever their file is called.

    Raises UsageError.
    """
    _check_name(name)
    return Source(name, "ndjson")


def _check_name(name: str) -> None:
    if not name:
        raise UsageError("the name of an input file is empty; name a file, or - for standard input")
