"""`snapshot draft-servers`: write server records for the identifiers in observations."""

from srvstat.cli.output import Outcome, report
from srvstat.cli.source_options import SourceOptions, parse_sources, take_source_options
from srvstat.render.text import format_count
from srvstat.snapshot.write.draft import draft_records
from srvstat.sources.servers import format_records


@take_source_options("servers", "save_mapping")
def draft_servers(options: SourceOptions) -> Outcome:
    """Draft a servers file.

    Prints a server record for each identifier in the observations. Build with the records as they
    are, or edit them first.

    Example: srvstat snapshot draft-servers --observations week.csv --game game_a > servers.ndjson
    """
    sources = parse_sources(options, reads_servers=False)
    draft = draft_records(
        sources.observations,
        uses_slugs=sources.ids == "slug",
        game=sources.game,
        warn=lambda warning: report(f"warning: {warning}"),
    )
    if draft.rejected:
        ignored = format_count(draft.rejected, "malformed row")
        report(f"warning: {ignored} ignored: {draft.reason}")
    report(
        f"{format_count(draft.servers, 'server')}; if you change a field, remove its name from"
        " completed"
    )
    return Outcome(format_records(draft.records))
