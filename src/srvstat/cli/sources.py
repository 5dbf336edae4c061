"""The sources that a command line names."""

from srvstat.contract import wire
from srvstat.contract.errors import UsageError
from srvstat.sources.registry import FORMATS
from srvstat.sources.source import Source


def parse_source(name: str, format: str | None) -> Source:
    """Return the source with a name; `format` is used if its ending is not that of a format.

    Raises UsageError.
    """
    _check_name(name)
    if format is not None and format not in FORMATS:
        raise UsageError(f"--format: {wire.quote_value(format)} is not one of {', '.join(FORMATS)}")
    return Source.from_name(name, format)


def parse_servers_source(name: str) -> Source:
    """Return the source of server records, which are always NDJSON.

    Raises UsageError.
    """
    _check_name(name)
    return Source(name, "ndjson")


def _check_name(name: str) -> None:
    if not name:
        raise UsageError("the name of an input file is empty; name a file, or - for standard input")
