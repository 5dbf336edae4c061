"""Derive the summaries of a snapshot as schema.sql describes them, independently of our code."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby, pairwise
from statistics import median
from typing import Any, NamedTuple

from conftest import DAY
from snapshot.described_numbers import pack_numbers
from srvstat.snapshot.format.digest import digest_row

SUMMARY_KEYS = {
    "summary_index": "server",
    "summaries": "server_block",
    "interval_counts": "server_block",
    "intervals": "server_band",
}

_Rows = list[tuple[Any, ...]]


class _Interval(NamedTuple):
    end: int
    length: int
    players: int


def describe_summaries(
    key: int, pairs: Sequence[tuple[int, int]], found: dict[str, _Rows]
) -> tuple[int | None, int | None, bytes]:
    """Add the rows of a server, and return its last columns of `servers`."""
    intervals = [
        _Interval(later, later - earlier, players)
        for (earlier, players), (later, _) in pairwise(pairs)
    ]
    lengths = [each.length for each in intervals]
    if not lengths:
        return None, None, b""
    usual = median(map(Fraction, lengths))
    covered = sum(min(Fraction(2 * each), 6 * usual) for each in lengths)
    if len(pairs) < 64:
        return int(2 * usual), int(covered), b""
    days = [list(of_day) for _, of_day in groupby(pairs, key=lambda pair: _find_day(pair[0]))]
    blocks = [days[at : at + 64] for at in range(0, len(days), 64)]
    rows = [
        _describe_block(key * 10_000 + number, block, intervals, usual)
        for number, block in enumerate(blocks)
    ]
    groups = describe_interval_bands(lengths, len(days))
    counts = _describe_counts(key, blocks, intervals, groups)
    members = _describe_members(key, lengths, groups)
    edges = [_find_day(day[0][0]) for block in blocks for day in (block[0], block[-1])]
    of_bands = b"".join(
        digest_row("intervals", members[band]) if band in members else bytes(16)
        for band in range(len(groups))
    )
    index = (
        key,
        pack_numbers(edges),
        b"".join(digest_row("summaries", row) for row in rows),
        b"".join(digest_row("interval_counts", row) for row in counts),
        len(groups),
        pack_numbers([start for start, _ in groups]),
        of_bands if any(is_wide for _, is_wide in groups) else b"",
    )
    found["summary_index"].append(index)
    found["summaries"] += rows
    found["interval_counts"] += counts
    found["intervals"] += members.values()
    return int(2 * usual), int(covered), digest_row("summary_index", index)


def _find_day(instant: int) -> int:
    """Return the number of the UTC day at whose start a summary day ends."""
    return (instant + DAY - 1) // DAY


def _describe_block(
    key: int,
    days: Sequence[Sequence[tuple[int, int]]],
    intervals: Sequence[_Interval],
    usual: Fraction,
) -> tuple[Any, ...]:
    numbers = [_find_day(day[0][0]) for day in days]
    values = [[players for _, players in day] for day in days]
    times = [
        [at - (number - 1) * DAY for at, _ in day]
        for number, day in zip(numbers, days, strict=True)
    ]
    pairs = [list(zip(at, players, strict=True)) for at, players in zip(times, values, strict=True)]
    peaks = [_find_times(each, max(players)) for each, players in zip(pairs, values, strict=True)]
    lowests = [_find_times(each, min(players)) for each, players in zip(pairs, values, strict=True)]
    weighted = [
        sum(each.length * each.players for each in intervals if _find_day(each.end) == number)
        for number in numbers
    ]
    long = [
        each for each in intervals if 2 * each.length > 5 * usual and _find_day(each.end) in numbers
    ]
    columns = [
        numbers,
        list(map(len, values)),
        list(map(sum, values)),
        [each[0] for each in values],
        [each[-1] for each in values],
        list(map(max, values)),
        list(map(min, values)),
        [each[0] for each in times],
        [each[-1] for each in times],
        [each[0] for each in peaks],
        [each[-1] for each in peaks],
        [each[0] for each in lowests],
        [each[-1] for each in lowests],
        weighted,
    ]
    return (
        *(key, len(days)),
        *map(_pack_wide, columns),
        len(long),
        pack_numbers([each.end - (numbers[0] - 1) * DAY for each in long]),
        pack_numbers([each.length for each in long]),
        pack_numbers([each.players for each in long]),
    )


def _find_times(pairs: Sequence[tuple[int, int]], value: int) -> list[int]:
    return [at for at, players in pairs if players == value]


def _pack_wide(numbers: Sequence[int]) -> bytes:
    if max(numbers) < 2**64:
        return pack_numbers(numbers)
    return b"".join(number.to_bytes(16, "little") for number in numbers)


def describe_interval_bands(lengths: Sequence[int], days: int) -> list[tuple[int, bool]]:
    """Return the least interval of each band, and whether the band may have several."""
    wanted = sorted([2, len(lengths) // days // 4, 16])[1]
    if len(set(lengths)) <= 2 * wanted:
        return [(length, False) for length in sorted(set(lengths))]
    sample = sorted(lengths[:: len(lengths) // 2_048 + 1])
    middle = [
        sample[len(sample) * (3 * wanted + 2 * at) // (8 * wanted)] for at in range(wanted + 1)
    ]
    frequent = {value for value in middle if middle.count(value) > 1}
    starts = {0, *middle, 2 * middle[-1], *(value + 1 for value in frequent)}
    return [(start, True) for start in sorted(starts)]


def _describe_counts(
    key: int,
    blocks: Sequence[Sequence[Sequence[tuple[int, int]]]],
    intervals: Sequence[_Interval],
    groups: Sequence[tuple[int, bool]],
) -> _Rows:
    """Count the intervals below the end of each band that end up to each day."""
    limits = [start for start, _ in groups[1:]] + [max(each.length for each in intervals) + 1]
    rows: _Rows = []
    before = [0] * len(groups)
    for number, block in enumerate(blocks):
        ends = [_find_day(day[0][0]) * DAY for day in block]
        up_to = [
            [sum(each.length < limit and each.end <= end for each in intervals) for end in ends]
            for limit in limits
        ]
        counts = [
            count - was for was, of_band in zip(before, up_to, strict=True) for count in of_band
        ]
        rows.append((key * 10_000 + number, pack_numbers(before), pack_numbers(counts)))
        before = [of_band[-1] for of_band in up_to]
    return rows


def _describe_members(
    key: int, lengths: Sequence[int], groups: Sequence[tuple[int, bool]]
) -> dict[int, tuple[Any, ...]]:
    rows = {}
    for band in range(1, len(groups) - 2):
        (start, is_wide), (end, _) = groups[band : band + 2]
        members = [length - start for length in lengths if start <= length < end]
        if is_wide and any(members):
            row = (key * 1_000_000 + band, len(members), pack_numbers(members))
            rows[band] = row
    return rows
