"""Derive a server's `blocks` rows from its observations, and decode them again.

Builds, updates, bundles and shards store what `derive` returns; `snapshot verify` compares it with
the stored rows. There are no daily or hourly totals: reading whole blocks with numpy is as fast,
and code that computes a statistic from arrays reads like its definition.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from srvstat.contract.arrays import Numbers, sum_exactly
from srvstat.contract.time import LATEST
from srvstat.contract.wire import MAX_SAFE_INTEGER
from srvstat.snapshot import rows

_STEPS = np.arange(rows.BLOCK_SIZE) // rows.MARK_STEP
_FEW = 16
"""The number of times whose GCD is computed first. If it is 1, the GCD of all times is 1 too."""


class Observations(NamedTuple):
    """Observations in ascending order of time (Unix milliseconds), as arrays of equal length."""

    instants: Numbers
    players: Numbers


NOTHING = Observations(np.empty(0, np.int64), np.empty(0, np.int64))


def join(parts: Sequence[Observations]) -> Observations:
    """Return successive observations as one pair of arrays."""
    return Observations(*map(np.concatenate, zip(*parts, strict=True))) if parts else NOTHING


class Kept(NamedTuple):
    """Running totals of a server's earlier blocks."""

    first_observed_at: int | None
    last_players: int | None
    player_sum: int
    counts: Numbers
    """`counts[v]`: the number of observations with at most `v` players, for each `v` below
    COUNTED.
    """
    ends: list[int]
    peaks: list[int]
    digests: bytes


def keep_blocks(row: rows.ServerRow, block: rows.Block) -> Kept:
    """Return the running totals before a block, which was read with its counts."""
    number = block.number
    counts = np.zeros(rows.COUNTED, np.int64)
    stored = _unpack(block.counts_before or b"", rows.choose_width(number * rows.BLOCK_SIZE))
    counts[: len(stored)] = stored
    counts[len(stored) :] = stored[-1] if len(stored) else 0
    return Kept(
        row.first_observed_at if number else None,
        block.players_before,
        int.from_bytes(block.sum_before, "little"),
        counts,
        [*rows.read_block_ends(row)[:number]],
        [*rows.read_block_peaks(row)[:number]],
        row.block_digests[: number * rows.DIGEST_BYTES],
    )


KEPT_NOTHING = Kept(None, None, 0, np.zeros(rows.COUNTED, np.int64), [], [], b"")


def derive(
    server: rows.ServerRow,
    observations: Observations,
    take: Callable[[rows.Block], object],
    kept: Kept = KEPT_NOTHING,
) -> rows.ServerRow:
    """Call `take` with each block of a server, and return its row with the derived columns.

    `kept`: the running totals of earlier blocks; the observations then start with the next block.
    """
    first, last_players, total, counts, ends, peaks, kept_digests = kept
    ends, peaks, digests = [*ends], [*peaks], bytearray(kept_digests)
    count = rows.BLOCK_SIZE * len(ends) + len(observations.instants)
    for start in range(0, len(observations.instants), rows.BLOCK_SIZE):
        instants, players = (column[start : start + rows.BLOCK_SIZE] for column in observations)
        if first is None:
            first = int(instants[0])
        times = instants - instants[0]
        unit = math.gcd(*times[:_FEW].tolist())
        unit = 1 if unit == 1 else int(np.gcd.reduce(times)) or 1
        peak = int(players.max())
        counts_before = _pack_counts(counts, rows.BLOCK_SIZE * len(ends))
        marks, counts = _count(players, peak, counts)
        block = rows.Block(
            server_block=server.get_block_key(len(ends)),
            observation_count=len(times),
            first_observed_at=int(instants[0]),
            time_unit=unit,
            times=_pack(
                times if unit == 1 else times // unit, rows.choose_width(int(times[-1]) // unit)
            ),
            players=_pack(players, rows.choose_width(peak)),
            players_before=last_players,
            sum_before=rows.pack_sum(total),
            mark_sums=_pack_mark_sums(players),
            counts_digest=rows.digest_counts(counts_before, marks),
            counts_before=counts_before,
            marks=marks,
        )
        take(block)
        last_players = int(players[-1])
        total += sum_exactly(players)
        ends.append(int(instants[-1]))
        peaks.append(peak)
        digests += rows.digest_row("blocks", block)
    return server._replace(
        observation_count=count,
        first_observed_at=first,
        last_observed_at=ends[-1] if ends else None,
        last_players=last_players,
        player_sum=rows.pack_sum(total),
        counts=_pack_counts(counts, count),
        block_ends=_pack(np.array(ends, np.int64), rows.END_WIDTH),
        block_peaks=_pack(np.array(peaks, np.int64), rows.choose_width(max(peaks, default=0))),
        block_digests=bytes(digests),
    )


def _count(players: Numbers, peak: int, counts: Numbers) -> tuple[bytes, Numbers]:
    """Return a block's marks and the updated counts. `counts` includes all earlier blocks."""
    values, steps = players, _STEPS[: len(players)]
    number = int(steps[-1]) + 1
    if peak >= rows.COUNTED:
        is_counted = players < rows.COUNTED
        values, steps = players[is_counted], steps[is_counted]
        if not len(values):
            return b"", counts
        peak = int(values.max())
    width = peak + 1
    cells = np.bincount(steps * width + values, minlength=number * width)
    table = cells.reshape(number, width).cumsum(1)
    for step in range(1, number):  # faster than numpy's sums over rows
        table[step] += table[step - 1]
    after = counts + table[-1, -1]
    after[:width] = counts[:width] + table[-1]
    return _pack(table[:-1].ravel(), rows.MARK_WIDTH), after


def _pack_mark_sums(players: Numbers) -> bytes:
    sums = (
        sum_exactly(players[:end]) for end in range(rows.MARK_STEP, len(players), rows.MARK_STEP)
    )
    return b"".join(total.to_bytes(rows.SUM_WIDTH, "little") for total in sums)


def _pack_counts(counts: Numbers, observations: int) -> bytes:
    """Pack counts up to the highest counted value.

    The width follows from the number of observations.
    """
    length = int(np.searchsorted(counts, counts[-1])) + 1 if counts[-1] else 0
    return _pack(counts[:length], rows.choose_width(observations))


def _pack(numbers: Numbers, width: int) -> bytes:
    return numbers.astype(f"<u{width}").tobytes()


def _unpack(packed: bytes, width: int) -> npt.NDArray[Any]:
    return np.frombuffer(packed, f"<u{width}")


def decode_blocks(server: rows.ServerRow, blocks: Iterable[rows.Block]) -> Iterator[Observations]:
    """Yield the observations of a server's successive blocks.

    Raises ForgedRowError for impossible values; numpy raises ValueError.
    """
    ends = rows.read_block_ends(server)
    last = -1
    for block in blocks:
        if block.first_observed_at <= last:
            raise rows.ForgedRowError("not ascending")
        last = ends[block.number]
        yield _decode(block, last)


def _decode(block: rows.Block, end: int) -> Observations:
    """Return a block's observations. The last observation is at `end`."""
    count, start, unit = block.observation_count, block.first_observed_at, block.time_unit
    times = _unpack(block.times, rows.find_width(block.times, count))
    players = _unpack(block.players, rows.find_width(block.players, count))
    is_ascending = times[0] == 0 and np.count_nonzero(times[1:] > times[:-1]) == count - 1
    is_in_time = unit > 0 and start >= 0 and start + int(times[-1]) * unit == end <= LATEST
    is_safe = players.itemsize < rows.SUM_WIDTH or int(players.max()) <= MAX_SAFE_INTEGER
    if not (is_ascending and is_in_time and is_safe):
        raise rows.ForgedRowError("not the observations of a block")
    instants = times.astype(np.int64)
    instants *= unit
    instants += start
    return Observations(instants, players.astype(np.int64))
