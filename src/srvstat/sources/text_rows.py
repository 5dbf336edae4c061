"""Parse rows of text, in the strict forms of our own input files or in those of a mapping."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from srvstat.contract.instants import InstantError, parse_instant
from srvstat.sources.batch import (
    COUNT_RULE,
    IDENTIFIER,
    IDENTIFIER_RULE,
    MAX_PLAYERS,
    NO_COUNT,
    Batch,
    Reject,
    RowError,
)
from srvstat.sources.source import Block, Source
from srvstat.sources.values import ValueParser, parse_number

DIGITS_ONLY = "in digits only"
"""How the reason for a count ends in the strict forms."""

_INTEGER = re.compile(r"[0-9]+")
_PLAYERS = re.compile(r"0|[1-9][0-9]{0,15}")


class Row(NamedTuple):
    """The three fields of a row, as text."""

    server_id: str
    observed_at: str
    players: str


class WideRow(NamedTuple):
    """The time of a row, and the player count of each server; both as text."""

    observed_at: str
    players: Sequence[tuple[str, str]]


def parse_values(row: Row) -> tuple[int, int]:
    """Return the instant and the player count of a row in the strict forms.

    Raises RowError for a malformed field.
    """
    try:
        is_integer = _INTEGER.fullmatch(row.observed_at)
        observed_at = (parse_number if is_integer else parse_instant)(row.observed_at)
    except InstantError as error:
        raise RowError(f"observedAt: {error}", row.observed_at) from None
    if not _PLAYERS.fullmatch(row.players) or int(row.players) > MAX_PLAYERS:
        raise RowError(f"players: {COUNT_RULE}, {DIGITS_ONLY}", row.players)
    return observed_at, int(row.players)


def parse_records(
    source: Source,
    block: Block,
    records: Iterable[tuple[int, str]],
    split_record: Callable[[str], Row],
) -> Batch:
    """Parse the records of a block one by one, and keep the block's text if it has observations.

    Each record comes with the number of its first line; empty records are skipped. `split_record`
    returns the fields of a record or raises RowError.
    """
    parse_row = _choose_row_parser(source)
    found: list[tuple[str, int, int, int]] = []
    rejects: list[Reject] = []
    without_count = 0
    for line, text in records:
        record = text.removesuffix("\r")
        if not record:
            continue
        try:
            row = split_record(record)
            instant, count = parse_row(row)
        except RowError as error:
            rejects.append(Reject(line, str(error), record, error.value))
            continue
        if count is None:
            without_count += 1
            continue
        found.append((row.server_id, instant, count, line))
    find_text = source.keep_text(block) if found else None
    skipped = {NO_COUNT: without_count} if without_count else {}
    return Batch(*_split_columns(found), rejects, find_text, skipped)


def parse_wide_records(
    source: Source,
    records: Iterable[tuple[int, str]],
    split_record: Callable[[str], WideRow],
) -> Batch:
    """Parse records with the player counts of many servers one by one.

    Empty counts are not rows. A malformed count rejects only itself, a malformed time all counts of
    its record.
    The other parameters are those of `parse_records`.
    """
    values = ValueParser(source.mapping)
    found: list[tuple[str, int, int, int]] = []
    rejects: list[Reject] = []
    for line, text in records:
        record = text.removesuffix("\r")
        if not record:
            continue
        lost = 1
        try:
            row = split_record(record)
            lost = sum(bool(written.strip()) for _, written in row.players) or 1
            instant = _parse_instant(values, row.observed_at)
        except RowError as error:
            rejects.append(Reject(line, str(error), record, error.value, rows=lost))
            continue
        for server_id, written in row.players:
            try:
                count = values.parse_count(written)
            except RowError as error:
                cell = f"{server_id},{row.observed_at},{written}"
                rejects.append(Reject(line, str(error), cell, error.value, server_id))
            else:
                if count is not None:
                    found.append((server_id, instant, count, line))
    return Batch(*_split_columns(found), rejects)


def _split_columns(
    rows: list[tuple[str, int, int, int]],
) -> tuple[Sequence[str], Sequence[int], Sequence[int], Sequence[int]]:
    server_ids, instants, players, lines = zip(*rows, strict=True) if rows else ((), (), (), ())
    return server_ids, instants, players, lines


def _choose_row_parser(source: Source) -> Callable[[Row], tuple[int, int | None]]:
    """Return the function that parses the instant and the player count of a row.

    The count is None if it is empty. The function raises RowError for a malformed field.
    """
    if source.mapping.is_strict:
        return parse_values if source.accepts_any_id else _parse_strictly
    values = ValueParser(source.mapping)
    return lambda row: (_parse_instant(values, row.observed_at), values.parse_count(row.players))


def _parse_strictly(row: Row) -> tuple[int, int]:
    if not IDENTIFIER.fullmatch(row.server_id):
        raise RowError(f"serverId: {IDENTIFIER_RULE}", row.server_id)
    return parse_values(row)


def _parse_instant(values: ValueParser, text: str) -> int:
    try:
        return values.parse_instant(text)
    except InstantError as error:
        raise RowError(f"observedAt: {error}", text) from None
