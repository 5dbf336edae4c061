"""The table of integrity: a mark for each server and rule, then the evidence of suspect results."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from rich.console import RenderableType
from rich.text import Text

from srvstat.documents import integrity as rules
from srvstat.documents.integrity import AnyRule, Integrity, ServerIntegrity
from srvstat.render.screen import (
    Fields,
    Renderers,
    Screen,
    ServerCells,
    build_fields_grid,
    build_server_table,
    escape_server,
)
from srvstat.render.text import (
    format_clock,
    format_count,
    format_share,
    format_span_length,
    format_window,
)


class RuleWords(NamedTuple):
    """The heading of a rule in a table, its name in a sentence, and what it looks for."""

    header: str
    name: str
    meaning: str


RULES = {
    "flatLine": RuleWords("flat", "Flat line", "a count that does not change for a long time"),
    "floor": RuleWords("floor", "Floor", "a count that many observations have and few go below"),
    "jitter": RuleWords("jitter", "Jitter", "counts that go up and down at random"),
    "missingValues": RuleWords(
        "missing", "Missing values", "numbers that are left out at regular distances"
    ),
    "stepChange": RuleWords(
        "step", "Step change", "a level that changes from one week to the next"
    ),
    "noDailyCycle": RuleWords(
        "cycle", "No daily cycle", "counts that do not depend on the hour of the day"
    ),
    "aboveMaximum": RuleWords(
        "max", "Above maximum", "counts above the maximum in the server's record"
    ),
    "gaps": RuleWords("gaps", "Gaps", "observations that are missing"),
}
_MAX_SERVERS = 100
_MAX_DETAILS = 20
MEANING = (
    "These results describe numbers. They prove nothing about a server or its owner, and they are"
    " not probabilities."
)


def render_integrity(integrity: Integrity, screen: Screen) -> str:
    """Render the marks of all servers, the evidence of suspect results, and what they mean."""
    suspects = [server for server in integrity.servers if _list_suspect(server)]
    parts: list[RenderableType] = []
    if integrity.servers:
        lines = [_build_cells(server, screen) for server in integrity.servers[:_MAX_SERVERS]]
        parts += [*build_server_table([words.header for words in RULES.values()], lines, screen)]
        parts += [*_build_rest(len(integrity.servers) - _MAX_SERVERS), Text()]
    for server in suspects[:_MAX_DETAILS]:
        parts += _build_details(server, integrity.time_zone, screen)
    if rest := _build_rest(len(suspects) - _MAX_DETAILS, " with suspect results"):
        parts += [*rest, Text()]
    found = {rule.rule: rule for one in suspects[:_MAX_DETAILS] for rule in _list_suspect(one)}
    causes = [
        (words.header, " ".join(found[rule].innocent_causes))
        for rule, words in RULES.items()
        if rule in found
    ]
    if causes:
        parts += [Text("innocent causes", "bold"), build_fields_grid(causes, screen), Text()]
    parts += [build_fields_grid(_list_notes(integrity, screen), screen), Text()]
    return screen.render(*parts, Text(MEANING))


def _list_suspect(server: ServerIntegrity) -> list[AnyRule]:
    return [rule for rule in server.rules if rule.result == "suspect"]


def _build_cells(server: ServerIntegrity, screen: Screen) -> ServerCells:
    # A dot in ASCII: the middle dot would become a hyphen, which is another mark.
    marks = {
        "pass": Text("." if screen.ascii_only else "·"),
        "suspect": Text("!", "bold yellow"),
        "notEvaluated": Text("-", "dim"),
    }
    names = (server.hostname, server.server_id, server.cfx_id)
    figures = tuple(marks[one.result] for one in server.rules)
    return escape_server(screen, names, figures)


def _build_rest(count: int, condition: str = "") -> list[RenderableType]:
    if count <= 0:
        return []
    servers = format_count(count, "more server")
    return [Text(f"and {servers}{condition}; --json lists all")]


def _build_details(server: ServerIntegrity, zone: str, screen: Screen) -> Iterator[RenderableType]:
    """Yield the evidence of a server's suspect results."""
    hostname = screen.escape_name(server.hostname)
    yield screen.escape(server.server_id, "bold").append("  ").append_text(hostname)
    fields = [
        (RULES[rule.rule].header, describe_evidence(rule, zone)) for rule in _list_suspect(server)
    ]
    yield build_fields_grid(fields, screen)
    yield Text()


def _list_notes(integrity: Integrity, screen: Screen) -> Fields:
    zone = ZoneInfo(integrity.time_zone)
    passed = "." if screen.ascii_only else "·"
    fields: list[tuple[str, str | Text]] = [
        ("marks", f"{passed} pass, ! suspect, - not evaluated"),
        ("window", format_window(integrity.window.from_, integrity.window.to, zone)),
        ("times", zone.key),
    ]
    if len(integrity.servers) == 1:
        evaluated = integrity.servers[0].rules
        fields += [
            (RULES[one.rule].header, f"not evaluated: {one.reason}")
            for one in evaluated
            if one.reason
        ]
    return fields


def describe_evidence(rule: AnyRule, zone: str) -> str:
    """Describe the evidence of a rule that was evaluated, with times and hours of a zone."""
    return _DESCRIBERS[type(rule.evidence)](rule.evidence, rule.threshold, ZoneInfo(zone))


def _describe_flat_line(
    found: rules.FlatLineEvidence, threshold: rules.FlatLineThreshold, zone: ZoneInfo
) -> str:
    return (
        f"{format_count(found.longest_run, 'observation')} in a row have"
        f" {format_count(found.players, 'player')}:"
        f" {_format_interval(found.from_, found.to, zone)}."
        f" Suspect: at least {threshold.longest_run} observations over at least"
        f" {threshold.hours} hours."
    )


def _describe_floor(
    found: rules.FloorEvidence, threshold: rules.FloorThreshold, _zone: ZoneInfo
) -> str:
    return (
        f"{format_share(found.share)} of the counts above 0 are exactly {found.players:,}, and at"
        f" most 1% are lower. Suspect: {format_share(threshold.share)} or more, of a"
        f" count of at least {threshold.players}."
    )


def _describe_jitter(
    found: rules.JitterEvidence, threshold: rules.JitterThreshold, _zone: ZoneInfo
) -> str:
    return (
        f"Changes are often followed by opposite changes: their correlation is"
        f" {found.correlation:.2f} over {format_count(found.pairs, 'pair')}. Suspect: at most"
        f" {threshold.correlation:.2f}."
    )


def _describe_missing_values(
    found: rules.MissingValuesEvidence, threshold: rules.MissingValuesThreshold, _zone: ZoneInfo
) -> str:
    first = ", ".join(f"{one:,}" for one in found.first)
    spacing = ""
    if found.spacing is not None and found.regular is not None:
        spacing = (
            f" {format_share(found.regular)} of the distances between the starts of holes are"
            f" {found.spacing:,} or {found.spacing + 1:,}."
        )
    return (
        f"{found.missing:,} of the numbers from {found.from_:,} to {found.to:,} never occur"
        f" ({format_share(found.share)}), first {first}.{spacing} Suspect: at least"
        f" {format_share(threshold.share)} in {threshold.holes} or more holes, with at least"
        f" {format_share(threshold.regular)} of the distances regular."
    )


def _describe_step_change(
    found: rules.StepChangeEvidence, threshold: rules.StepChangeThreshold, zone: ZoneInfo
) -> str:
    return (
        f"The median of 7 days goes from {_format_median(found.median_before)} to"
        f" {_format_median(found.median_after)} at {format_clock(found.at, zone)}: a ratio of"
        f" {found.ratio:,.1f}, with 5 players added to both. Suspect: at least"
        f" {threshold.ratio:,.1f}."
    )


def _describe_daily_cycle(
    found: rules.DailyCycleEvidence, threshold: rules.DailyCycleThreshold, zone: ZoneInfo
) -> str:
    lowest, highest = map(_format_median, (found.lowest_players, found.highest_players))
    suspect = f"Suspect: a difference of at most {format_share(threshold.share)}."
    if found.lowest_players == found.highest_players:
        return f"All hours of the day ({zone.key}) have a median of {lowest}. {suspect}"
    share, typical = format_share(found.share), _format_median(found.typical_players)
    return (
        f"The medians of the hours of the day ({zone.key}) go from {lowest} at"
        f" {found.lowest_hour}:00 to {highest} at {found.highest_hour}:00, a difference of"
        f" {share} of the typical {typical}. {suspect}"
    )


def _describe_maximum(
    found: rules.MaximumEvidence, threshold: rules.MaximumThreshold, zone: ZoneInfo
) -> str:
    times = ""
    if found.first_at is not None and found.last_at is not None:
        first, last = format_clock(found.first_at, zone), format_clock(found.last_at, zone)
        times = f" at {first}" if first == last else f" from {first} to {last}"
    return (
        f"{format_count(found.observations, 'observation')}{times} above the maximum of"
        f" {found.maximum_players:,} in the record; the peak is {found.peak_players:,}."
        f" Suspect: at least {threshold.observations}."
    )


def _describe_gaps(
    found: rules.GapsEvidence, threshold: rules.GapsThreshold, zone: ZoneInfo
) -> str:
    longest = ""
    if found.longest:
        gap = found.longest[0]
        which = "only gap" if found.gap_count == 1 else f"longest of {found.gap_count:,} gaps"
        longest = f" The {which}: {_format_interval(gap.from_, gap.to, zone)}."
    return (
        f"Observations cover {format_share(found.coverage)} of the time since the first one."
        f"{longest} Suspect: below {format_share(threshold.coverage)}."
    )


def _format_interval(first: int, last: int, zone: ZoneInfo) -> str:
    length = format_span_length(last - first)
    return f"{format_clock(first, zone)} to {format_clock(last, zone)}, {length}"


def _format_median(players: float) -> str:
    return f"{players:,.2f}".removesuffix("0").removesuffix(".0")


_DESCRIBERS: Mapping[type, Callable[[Any, Any, ZoneInfo], str]] = {
    rules.FlatLineEvidence: _describe_flat_line,
    rules.FloorEvidence: _describe_floor,
    rules.JitterEvidence: _describe_jitter,
    rules.MissingValuesEvidence: _describe_missing_values,
    rules.StepChangeEvidence: _describe_step_change,
    rules.DailyCycleEvidence: _describe_daily_cycle,
    rules.MaximumEvidence: _describe_maximum,
    rules.GapsEvidence: _describe_gaps,
}


RENDERERS: Renderers = {
    Integrity: render_integrity,
}
