"""`snapshot draft-servers`: write server records for the identifiers in observations."""

from srvstat.cli.output import Outcome, report
from srvstat.cli.source_options import (
    FormatOption,
    FromOption,
    ObservationsOption,
    SourceOptions,
    parse_sources,
)
from srvstat.render.text import format_count
from srvstat.sources.observations import collect_server_ids
from srvstat.sources.servers import draft_records
from srvstat.sources.source import check_stdin_once


def draft_servers(
    observations: ObservationsOption = None,
    format: FormatOption = None,
    from_: FromOption = None,
) -> Outcome:
    """Draft a servers file to fill in.

    Prints a server record for each identifier in the observations.

    Example: srvstat snapshot draft-servers --observations week.csv.gz > servers.ndjson
    """
    check_stdin_once(observations or ())
    sources = parse_sources(SourceOptions(observations=observations, format=format, from_=from_))
    seen, rejected = collect_server_ids(
        sources.observations, warn=lambda warning: report(f"warning: {warning}")
    )
    if rejected:
        report(f"warning: {format_count(rejected, 'malformed row')} ignored")
    report(
        f"{format_count(len(seen), 'server')}: replace each null; an optional field can be removed"
    )
    return Outcome(draft_records(seen))
