"""Convert Arrow columns of times and player counts to 64-bit integers."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import compute as pc

from srvstat.contract.instants import LATEST, OUTSIDE_YEARS, YEAR_2001, InstantError
from srvstat.sources.batch import MAX_PLAYERS, RowError
from srvstat.sources.mapping import ColumnMapping
from srvstat.sources.values import ValueParser, convert_local_time

_MAX_INTEGER = (1 << 63) - 1
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


class Values(NamedTuple):
    """The values of a column as 64-bit integers, which are null where a value is not valid.

    `is_empty` is true for rows without any value, which are null, too.
    """

    integers: pa.Array
    is_empty: pa.Array


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is one of text."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def is_number(kind: pa.DataType) -> bool:
    """Return whether a type is one of integers, decimals or floating-point numbers."""
    return bool(
        pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind)
    )


def is_calendar(kind: pa.DataType) -> bool:
    """Return whether a type is one of timestamps or dates."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def has_no_zone(kind: pa.DataType) -> bool:
    """Return whether a type is one of local times."""
    return bool(is_calendar(kind) and (pa.types.is_date(kind) or kind.tz is None))


def describe_values(kind: pa.DataType) -> str | None:
    """Return what the values of a type are, for messages; None for a column of nulls."""
    if is_calendar(kind):
        return "times without a zone" if has_no_zone(kind) else "times with a zone"
    if is_number(kind):
        return "numbers"
    return None if pa.types.is_null(kind) else "text"


class ColumnConverter:
    """Converts columns to integers in the form that a mapping declares."""

    def __init__(self, mapping: ColumnMapping) -> None:
        self._mapping = mapping
        self._parser = ValueParser(mapping)

    def convert_instants(self, column: pa.Array) -> Values:
        """Convert times to Unix milliseconds; digits beyond milliseconds are cut."""
        if is_calendar(column.type):
            return Values(self._convert_calendar(column), column.is_null())
        if pa.types.is_integer(column.type):
            unit = self._mapping.time_unit
            instants = _scale(column.cast(pa.int64(), safe=False), unit or "ms")
            is_early = pc.less(instants, YEAR_2001)
            if unit != "s" and pc.any(is_early).as_py():
                early = _map_distinct(_keep_if(is_early, instants), self._parse_instant)
                instants = pc.if_else(is_early, early.integers, instants)
            return Values(instants, column.is_null())
        return _map_distinct(column, self._parse_instant)

    def convert_counts(self, column: pa.Array) -> Values:
        """Convert player counts."""
        if pa.types.is_integer(column.type):
            return Values(
                _keep_between(column.cast(pa.int64(), safe=False), MAX_PLAYERS), column.is_null()
            )
        return _map_distinct(column, self._parse_count)

    def explain_instant(self, cell: pa.Array) -> str:
        """Return why the only value of a column is no instant."""
        value = cell[0]
        if not value.is_valid:
            return "missing"
        try:
            if has_no_zone(cell.type):
                # Local times outside the years are found first, so the zone is not needed.
                local = _scale_calendar(cell)[0].as_py()
                zone = self._mapping.time_zone
                if local is not None and zone is not None:
                    convert_local_time(local, zone)
            elif not is_calendar(cell.type):
                self._parse_instant(value.as_py())
        except InstantError as error:
            return str(error)
        return OUTSIDE_YEARS

    def _convert_calendar(self, column: pa.Array) -> pa.Array:
        local = _scale_calendar(column)
        zone = self._mapping.time_zone
        if zone in {None, "UTC"} or not has_no_zone(column.type):
            return local
        return _map_distinct(local, lambda at: convert_local_time(at, zone)).integers

    def _parse_instant(self, value: Any) -> int:
        return self._parser.parse_instant(_format_number(value))

    def _parse_count(self, value: Any) -> int | None:
        return self._parser.parse_count(_format_number(value))


def _scale_calendar(column: pa.Array) -> pa.Array:
    """Return the milliseconds of times on their own clock; null if outside the years."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s" if column.type == pa.date32() else "ms"))
    return _scale(column.cast(pa.int64()), column.type.unit)


def _scale(integers: pa.Array, unit: str) -> pa.Array:
    """Convert integers of a unit to milliseconds; those outside the years become null."""
    per_second = _PER_SECOND[unit]
    latest = (LATEST + 1) * per_second // 1000 - 1
    kept = _keep_between(integers, min(latest, _MAX_INTEGER))
    if per_second < _PER_SECOND["ms"]:
        return pc.multiply(kept, 1000)
    return kept if unit == "ms" else pc.divide(kept, per_second // 1000)


def _keep_between(integers: pa.Array, greatest: int) -> pa.Array:
    """Replace integers below 0 or above the greatest by null."""
    ends = pc.min_max(integers).as_py()
    if ends["min"] is None or (ends["min"] >= 0 and ends["max"] <= greatest):
        return integers
    is_kept = pc.and_(pc.greater_equal(integers, 0), pc.less_equal(integers, greatest))
    return _keep_if(is_kept, integers)


def _keep_if(is_kept: pa.Array, integers: pa.Array) -> pa.Array:
    return pc.if_else(is_kept, integers, pa.scalar(None, pa.int64()))


def format_cell(value: pa.Scalar) -> str:
    """Return the text of a value, empty for null, for messages."""
    if not value.is_valid:
        return ""
    try:
        return str(value)
    except (ArithmeticError, LookupError, ValueError):
        # Python has no such date, no such zone, or no nanoseconds.
        return str(value.value)


def _map_distinct(column: pa.Array, convert: Callable[[Any], int | None]) -> Values:
    """Convert each distinct value of a column once; None is an empty one."""
    if pa.types.is_decimal32(column.type) or pa.types.is_decimal64(column.type):
        # These can't be encoded.
        column = column.cast(pa.decimal128(column.type.precision, column.type.scale))
    coded = column.dictionary_encode()
    integers: list[int | None] = []
    is_empty: list[bool] = []
    for value in coded.dictionary.to_pylist():
        try:
            integers.append(convert(value))
            is_empty.append(integers[-1] is None)
        except (InstantError, RowError):
            integers.append(None)
            is_empty.append(False)
    return Values(
        pa.array(integers, pa.int64()).take(coded.indices),
        pc.fill_null(pa.array(is_empty, pa.bool_()).take(coded.indices), fill_value=True),
    )


def _format_number(value: Any) -> str:
    """Return the decimal text of a number, without an exponent; other values as they are.

    Numbers have no zeros after the point, which could be read as thousands.
    """
    if isinstance(value, float):
        value = Decimal(repr(value + 0.0))  # without the sign of -0.0
    if isinstance(value, Decimal) and value == value.to_integral_value():
        value = value.to_integral_value()
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
