"""The evidence of the rules of integrity, each in one or two sentences with its threshold."""

from collections.abc import Callable, Mapping
from typing import Any
from zoneinfo import ZoneInfo

from srvstat.documents.integrity import (
    AnyRule,
    DailyCycleEvidence,
    DailyCycleThreshold,
    FlatLineEvidence,
    FlatLineThreshold,
    FloorEvidence,
    FloorThreshold,
    GapsEvidence,
    GapsThreshold,
    JitterEvidence,
    JitterThreshold,
    MaximumEvidence,
    MaximumThreshold,
    MissingValuesEvidence,
    MissingValuesThreshold,
    StepChangeEvidence,
    StepChangeThreshold,
)
from srvstat.render.local_time import format_clock
from srvstat.render.text import format_count, format_share, format_span_length


def describe_evidence(rule: AnyRule, zone: str) -> str:
    """Describe the evidence of a rule that was evaluated, with times and hours of a zone."""
    return _DESCRIBERS[type(rule.evidence)](rule.evidence, rule.threshold, ZoneInfo(zone))


def _describe_flat_line(
    found: FlatLineEvidence, threshold: FlatLineThreshold, zone: ZoneInfo
) -> str:
    return (
        f"{format_count(found.longest_run, 'observation')} in a row have"
        f" {format_count(found.players, 'player')}:"
        f" {_format_interval(found.from_, found.to, zone)}."
        f" Suspect: at least {threshold.longest_run} observations over at least"
        f" {threshold.hours} hours."
    )


def _describe_floor(found: FloorEvidence, threshold: FloorThreshold, _zone: ZoneInfo) -> str:
    return (
        f"{format_share(found.share)} of the counts above 0 are exactly {found.players:,}, and at"
        f" most 1% are lower. Suspect: {format_share(threshold.share)} or more, of a"
        f" count of at least {threshold.players}."
    )


def _describe_jitter(found: JitterEvidence, threshold: JitterThreshold, _zone: ZoneInfo) -> str:
    return (
        f"Changes are often followed by opposite changes: their correlation is"
        f" {found.correlation:.2f} over {format_count(found.pairs, 'pair')}. Suspect: at most"
        f" {threshold.correlation:.2f}."
    )


def _describe_missing_values(
    found: MissingValuesEvidence, threshold: MissingValuesThreshold, _zone: ZoneInfo
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
    found: StepChangeEvidence, threshold: StepChangeThreshold, zone: ZoneInfo
) -> str:
    return (
        f"The median of 7 days goes from {_format_median(found.median_before)} to"
        f" {_format_median(found.median_after)} at {format_clock(found.at, zone)}: a ratio of"
        f" {found.ratio:,.1f}, with 5 players added to both. Suspect: at least"
        f" {threshold.ratio:,.1f}."
    )


def _describe_daily_cycle(
    found: DailyCycleEvidence, threshold: DailyCycleThreshold, zone: ZoneInfo
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


def _describe_maximum(found: MaximumEvidence, threshold: MaximumThreshold, zone: ZoneInfo) -> str:
    times = ""
    if found.first_at is not None and found.last_at is not None:
        first, last = format_clock(found.first_at, zone), format_clock(found.last_at, zone)
        times = f" at {first}" if first == last else f" from {first} to {last}"
    return (
        f"{format_count(found.observations, 'observation')}{times} above the maximum of"
        f" {found.maximum_players:,} in the record; the peak is {found.peak_players:,}."
        f" Suspect: at least {threshold.observations}."
    )


def _describe_gaps(found: GapsEvidence, threshold: GapsThreshold, zone: ZoneInfo) -> str:
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
    FlatLineEvidence: _describe_flat_line,
    FloorEvidence: _describe_floor,
    JitterEvidence: _describe_jitter,
    MissingValuesEvidence: _describe_missing_values,
    StepChangeEvidence: _describe_step_change,
    DailyCycleEvidence: _describe_daily_cycle,
    MaximumEvidence: _describe_maximum,
    GapsEvidence: _describe_gaps,
}
