"""The table of integrity: a mark per server and rule, then the evidence of suspect results."""

from typing import NamedTuple
from zoneinfo import ZoneInfo

from rich.console import RenderableType
from rich.text import Text

from srvstat.documents import integrity as rules
from srvstat.documents.integrity import AnyRule, Integrity, ServerIntegrity
from srvstat.render import figures, layout, text
from srvstat.render.layout import build_server_table, escape_server
from srvstat.render.screen import Screen, build_fields_grid, render_table
from srvstat.render.text import format_clock, format_count, format_share


class RuleWords(NamedTuple):
    """The words for a rule.

    - `header`: its heading in a table.
    - `name`: its name.
    - `meaning`: what it looks for.
    - `suspect`: which values are suspect, as a template for the rule's threshold.
    """

    header: str
    name: str
    meaning: str
    suspect: str


RULES = {
    "flatLine": RuleWords(
        "flat",
        "Flat line",
        "a count that does not change for a long time",
        "at least {0.longest_run} observations over at least {0.hours} hours",
    ),
    "floor": RuleWords(
        "floor",
        "Floor",
        "a count that many observations have and few go below",
        "{0.share:.0%} or more, of a count of at least {0.players}",
    ),
    "jitter": RuleWords(
        "jitter", "Jitter", "counts that go up and down at random", "at most {0.correlation:.2f}"
    ),
    "missingValues": RuleWords(
        "missing",
        "Missing values",
        "numbers that are missing at regular intervals",
        "at least {0.share:.0%} in {0.holes} or more holes,"
        " with at least {0.regular:.0%} of the spacings regular",
    ),
    "stepChange": RuleWords(
        "step",
        "Step change",
        "a level that changes from one week to the next",
        "at least {0.ratio:,.1f}",
    ),
    "noDailyCycle": RuleWords(
        "cycle",
        "No daily cycle",
        "counts that do not depend on the hour of the day",
        "a difference of at most {0.share:.0%}",
    ),
    "aboveMaximum": RuleWords(
        "max",
        "Above maximum",
        "counts above the maximum in the server's record",
        "at least {0.observations}",
    ),
    "gaps": RuleWords("gaps", "Gaps", "observations that are missing", "below {0.coverage:.0%}"),
}
_MAX_SERVERS = 100
_MAX_DETAILS = 20
MEANING = (
    "These results describe numbers. They prove nothing about a server or its owner, and they are"
    " not probabilities."
)
_MEANING = "The results describe numbers; they prove nothing about a server or its owner"


@render_table.register
def render_integrity(integrity: Integrity, screen: Screen) -> str:
    """Render the marks of all servers, the evidence of suspect results, and what they mean."""
    marks = {
        "pass": Text("✓", "dim"),
        "suspect": Text("!", "bold"),
        "notEvaluated": Text(text.NOTHING, "dim"),
    }
    suspects = [server for server in integrity.servers if _list_suspect(server)]
    lines = [
        escape_server(screen, server, [marks[one.result] for one in server.rules])
        for server in integrity.servers[:_MAX_SERVERS]
    ]
    table = build_server_table([words.header for words in RULES.values()], lines, screen)
    zone = ZoneInfo(integrity.time_zone)
    title = layout.build_title(figures.format_title_window(integrity.window, zone))
    blocks = [
        [title, *table, *layout.build_rest(len(integrity.servers) - _MAX_SERVERS, "more server")]
    ]
    if len(integrity.servers) == 1:
        blocks.append(_list_reasons(integrity.servers[0]))
    causes: dict[str, str] = {}
    for server in suspects[:_MAX_DETAILS]:
        found = {RULES[rule.rule].header: rule for rule in _list_suspect(server)}
        causes |= {header: " ".join(rule.innocent_causes) for header, rule in found.items()}
        evidence = [(header, describe_evidence(rule, zone)) for header, rule in found.items()]
        head = layout.build_head(server, screen)
        blocks.append([head, build_fields_grid(evidence, screen)])
    nouns = (f"more {noun} with suspect results" for noun in ("server", "servers"))
    blocks.append([*layout.build_rest(len(suspects) - _MAX_DETAILS, *nouns)])
    if causes:
        headers = [words.header for words in RULES.values() if words.header in causes]
        grid = build_fields_grid([(header, causes[header]) for header in headers], screen)
        blocks.append([Text("benign explanations", "bold"), grid])
    return screen.render_blocks(*blocks, layout.build_footer([_MEANING], screen))


def _list_suspect(server: ServerIntegrity) -> list[AnyRule]:
    return [rule for rule in server.rules if rule.result == "suspect"]


def _list_reasons(server: ServerIntegrity) -> list[RenderableType]:
    """Return the reasons why rules were not evaluated."""
    return [
        Text(f"{RULES[rule.rule].header} not evaluated: {rule.reason}")
        for rule in server.rules
        if rule.reason
    ]


def describe_evidence(rule: AnyRule, zone: ZoneInfo) -> str:
    """Describe the evidence of an evaluated rule, and which values would be suspect."""
    suspect = RULES[rule.rule].suspect.format(rule.threshold)
    return f"{_describe_figures(rule, zone)} Suspect: {suspect}."


def _describe_figures(rule: AnyRule, zone: ZoneInfo) -> str:
    match rule.evidence:
        case rules.FlatLineEvidence() as found:
            words = (
                f"{format_count(found.longest_run, 'observation')} in a row have"
                f" {format_count(found.players, 'player')}:"
                f" {_format_interval(found.from_, found.to, zone)}."
            )
        case rules.FloorEvidence() as found:
            words = (
                f"{format_share(found.share)} of the counts above 0 are exactly"
                f" {found.players:,}, and at most 1% are lower."
            )
        case rules.JitterEvidence() as found:
            words = (
                f"Changes are often followed by opposite changes: their correlation is"
                f" {found.correlation:.2f} over {format_count(found.pairs, 'pair')}."
            )
        case rules.MissingValuesEvidence() as found:
            first = ", ".join(f"{one:,}" for one in found.first)
            words = (
                f"{found.missing:,} of the numbers from {found.from_:,} to {found.to:,} never occur"
                f" ({format_share(found.share)}), first {first}."
            )
            if found.spacing is not None and found.regular is not None:
                words += (
                    f" {format_share(found.regular)} of the spacings between the starts of holes"
                    f" are {found.spacing:,} or {found.spacing + 1:,}."
                )
        case rules.StepChangeEvidence() as found:
            words = (
                f"The median of 7 days goes from {_format_median(found.median_before)} to"
                f" {_format_median(found.median_after)} at {format_clock(found.at, zone)}: a ratio"
                f" of {found.ratio:,.1f}, with 5 players added to both."
            )
        case rules.DailyCycleEvidence() as found:
            words = _describe_daily_cycle(found, zone)
        case rules.MaximumEvidence() as found:
            words = _describe_maximum(found, zone)
        case rules.GapsEvidence() as found:
            words = _describe_gaps(found, zone)
    return words


def _describe_daily_cycle(found: rules.DailyCycleEvidence, zone: ZoneInfo) -> str:
    lowest, highest = map(_format_median, (found.lowest_players, found.highest_players))
    if found.lowest_players == found.highest_players:
        return f"All hours of the day ({zone.key}) have a median of {lowest}."
    return (
        f"The medians of the hours of the day ({zone.key}) go from {lowest} at"
        f" {found.lowest_hour}:00 to {highest} at {found.highest_hour}:00, a difference of"
        f" {format_share(found.share)} of the typical {_format_median(found.typical_players)}."
    )


def _describe_maximum(found: rules.MaximumEvidence, zone: ZoneInfo) -> str:
    times = ""
    if found.first_at is not None and found.last_at is not None:
        first, last = format_clock(found.first_at, zone), format_clock(found.last_at, zone)
        times = f" at {first}" if first == last else f" from {first} to {last}"
    return (
        f"{format_count(found.observations, 'observation')}{times} above the maximum of"
        f" {found.maximum_players:,} in the record; the peak is {found.peak_players:,}."
    )


def _describe_gaps(found: rules.GapsEvidence, zone: ZoneInfo) -> str:
    words = f"Observations cover {format_share(found.coverage)} of the time since the first one."
    if found.longest:
        gap = found.longest[0]
        which = "only gap" if found.gap_count == 1 else f"longest of {found.gap_count:,} gaps"
        words += f" The {which}: {_format_interval(gap.from_, gap.to, zone)}."
    return words


def _format_interval(first: int, last: int, zone: ZoneInfo) -> str:
    length = text.format_span_length(last - first)
    return f"{format_clock(first, zone)} to {format_clock(last, zone)}, {length}"


def _format_median(players: float) -> str:
    return f"{players:,.2f}".removesuffix("0").removesuffix(".0")
