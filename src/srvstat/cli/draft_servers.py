"""`snapshot draft-servers`: write server records for the identifiers in observations."""

from srvstat.cli.output import Outcome, report
from srvstat.cli.source_options import (
    ColumnsOption,
    FormatOption,
    FromOption,
    GameOption,
    IdsOption,
    MappingOption,
    ObservationsOption,
    QueryOption,
    SourceOptions,
    TimeUnitOption,
    TimeZoneOption,
    WideOption,
    parse_sources,
)
from srvstat.render.text import format_count
from srvstat.snapshot.write.draft import draft_records
from srvstat.sources.servers import format_records
from srvstat.sources.source import check_stdin_once


def draft_servers(
    observations: ObservationsOption = None,
    format: FormatOption = None,
    from_: FromOption = None,
    query: QueryOption = None,
    columns: ColumnsOption = None,
    wide: WideOption = None,
    time_zone: TimeZoneOption = None,
    time_unit: TimeUnitOption = None,
    mapping: MappingOption = None,
    ids: IdsOption = None,
    game: GameOption = None,
) -> Outcome:
    """Draft a servers file.

    Prints a server record for each identifier in the observations. It can be built as it is, or be
    edited before.

    Example: srvstat snapshot draft-servers --observations week.csv --game game_a > servers.ndjson
    """
    check_stdin_once(observations or ())
    sources = parse_sources(
        SourceOptions(
            observations=observations,
            format=format,
            from_=from_,
            query=query,
            columns=columns,
            wide=wide,
            time_zone=time_zone,
            time_unit=time_unit,
            mapping=mapping,
            ids=ids,
            game=game,
        )
    )
    draft = draft_records(
        sources.observations,
        uses_slugs=sources.ids == "slug",
        game=sources.game,
        warn=lambda warning: report(f"warning: {warning}"),
    )
    if draft.rejected:
        report(f"warning: {format_count(draft.rejected, 'malformed row')} ignored")
    report(
        f"{format_count(draft.servers, 'server')}: change what you know better, and remove its"
        " name from completed"
    )
    return Outcome(format_records(draft.records))
