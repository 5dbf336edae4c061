"""Turn decoded JSON of any structure into rows of text.

An object becomes a row whose columns are the paths of its scalars, such as `stats.online.now`. The
columns of an array of scalars are numbered from 1. An array, or an object used as a map, becomes a
table with a row for each value. The surrounding scalars become additional columns; a map's keys
become the column `key` or `time`. If an object contains several tables, the table with the wanted
columns is read or, for a sample, the table that looks most like times and counts.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

from srvstat.contract.windows import DAY_MS
from srvstat.contract.wire import quote_value
from srvstat.sources.mapping import ColumnMapping

Row = dict[str, str]

_PROBE = 20
_MAX_POSITIONS = 4
"""The maximum length of a scalar array that becomes columns."""
_MAX_KEYS = 200
_MAX_DEPTH = 8

_TIME = re.compile(
    r"(?:19|2[0-9])[0-9]{2}(?P<sign>[-/.]?)(?:0?[1-9]|1[0-2])(?P=sign)(?:0?[1-9]|[12][0-9]|3[01])(?![0-9]).*"
    r"|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{2,4}(?![0-9]).*|[A-Z][a-z]{2,8},? [A-Z0-9].*[0-9]{4}.*"
    r"|[12][0-9]{9}(?:[0-9]{3}|[0-9]{6})?(?:\.[0-9]*)?"
)
_NUMBER = re.compile(r"-?[0-9]+(?:[.,' ][0-9]+)*(?:[eE][-+]?[0-9]+)?")
_COUNT_NAMES = {"players", "playercount", "online", "count", "users", "value", "current", "n"}
_WRAPPERS = {
    *("data", "result", "results", "response", "records", "rows", "items", "series", "values"),
    *("points", "datapoints", "history", "list", "entries", "payload", "body", "content", "hits"),
    *("players", "counts", "observations", "samples", "metrics", "stats", "servers", "games"),
    *("hourly", "daily", "chart", "frames", "meta", "metadata", "info", "d"),
}
"""Keys that describe their content rather than name a server."""

_STARTS, _STEPS = ("start", "from", "begin", "pointStart"), ("step", "interval", "pointInterval")


class FlattenError(ValueError):
    """A value can't be turned into rows unambiguously."""


def find_items(document: Any) -> Sequence[Any]:
    """Return the values that become rows: the values of an array or map, or the document itself."""
    if isinstance(document, list):
        return document
    return (isinstance(document, dict) and _list_map(document)) or [document]


def _repeat_entity(items: Sequence[Any]) -> Sequence[Any]:
    """Repeat the entity's name, which Home Assistant writes in the first state only."""
    if not isinstance(items[0], dict) or "entity_id" not in items[0]:
        return items
    entity = {"entity_id": items[0]["entity_id"]}
    return [entity | item if isinstance(item, dict) else item for item in items]


def expand(
    items: Sequence[Any],
    mapping: ColumnMapping,
    wanted: Collection[str] | None = None,
    depth: int = _MAX_DEPTH,
) -> list[tuple[int, Row]]:
    """Return the rows of items, each with its item's index.

    - `wanted`: the columns to find, or None for a sample.
    - `depth`: how deep tables may be nested.

    Raises FlattenError if a table can't be read unambiguously.
    """
    found = [_find_plain(item) or _flatten(item, mapping) for item in items]
    if wanted is None and any(
        "key" in each[0] for _, parts in found for each in parts.values() if each
    ):
        mapping = replace(mapping, id="key")
        found = [_flatten(item, mapping) for item in items]
    paths = dict.fromkeys(path for _, parts in found if parts for path in parts)
    if not paths or not depth:
        return [*enumerate(row for row, _ in found)]
    own = {name for row, _ in found for name in row}
    missing = None if wanted is None else {*wanted} - own
    chosen = _choose_parts(found, [*paths], mapping, missing, depth - 1)
    rows: list[tuple[int, Row]] = []
    for at, (row, parts) in enumerate(found):
        known = [path for path in chosen if path in parts]
        if not known:
            rows.append((at, row))
        for path in known:
            outer = {name: text for name, text in row.items() if not _is_below(name, path)}
            if len(chosen) > 1:
                outer["key"] = path
            for _, inner in expand(parts[path], mapping, _strip(missing, path), depth - 1):
                if outer:
                    named = {_rename(name, own, path): text for name, text in inner.items()}
                rows.append((at, outer | named if outer else inner))
    return rows


def cut(value: Any, most: int) -> Any:
    """Return about the first `most` rows of a value, shared out evenly among its arrays and maps.

    Raises FlattenError if the value is nested too deeply.
    """
    try:
        return _cut(value, most)
    except RecursionError:
        raise FlattenError("nested too deeply") from None


def _cut(value: Any, most: int) -> Any:
    if not _is_container(value):
        return value
    below = max(most // max(len(value), 1), _PROBE)
    if isinstance(value, list):
        return [_cut(each, below) for each in value[:most]]
    return {key: _cut(each, below) for key, each in islice(value.items(), most)}


def split(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Split items into chunks of about `size` items, counting the items of their arrays."""
    start = count = 0
    for end, item in enumerate(items, 1):
        members = item.values() if isinstance(item, dict) else ()
        count += 1 + sum(len(each) for each in members if _is_container(each))
        if count >= size or end == len(items):
            yield items[start:end]
            start, count = end, 0


def find_row(value: Any, mapping: ColumnMapping) -> Row | None:
    """Return the only row of a value, or None if the value contains a table.

    Raises FlattenError if a table can't be read unambiguously.
    """
    row, parts = _flatten(value, mapping)
    return None if parts else row


class _Flat(NamedTuple):
    """The columns of a row, and the items of the tables within it, by path."""

    row: Row
    parts: dict[str, Sequence[Any]]


_NO_PARTS: dict[str, Sequence[Any]] = {}
_POSITIONS = [*map(str, range(1, 101))]


def _find_plain(item: Any) -> _Flat | None:
    """Return an item that contains only text, or else None. A fast path for the common case."""
    kind = type(item)
    if kind is dict and {*map(type, item.values())} == {str}:
        return _Flat(item, _NO_PARTS)
    if kind is list and {*map(type, item)} == {str} and len(item) <= len(_POSITIONS):
        return _Flat(dict(zip(_POSITIONS, item, strict=False)), _NO_PARTS)
    return None


def _flatten(item: Any, mapping: ColumnMapping) -> _Flat:
    found = _Flat({}, {})
    if isinstance(item, dict):
        _add_object(found, item, "", mapping)
    elif isinstance(item, list) and not _is_row(item):
        found.parts[""] = _repeat_entity(item)
    else:
        for position, value in enumerate(item if isinstance(item, list) else [item], 1):
            found.row[str(position)] = _format(value)
    return found


def _add_object(found: _Flat, value: Mapping[str, Any], path: str, mapping: ColumnMapping) -> None:
    """Add an object's members to a row.

    A literal key that contains a point takes precedence over a path.
    """
    columns = _list_columns(value)
    if columns:
        found.parts[path] = columns.items
    for key, member in value.items():
        name = f"{path}.{key}" if path and key else path or key
        if columns and key in columns.keys:
            continue
        if isinstance(member, dict):
            items = _list_map(member, 1 if "key" in mapping.names else 2) if member else []
            if items is not None:
                found.parts[name] = items
            if not items or ("time" not in items[0] and len(items) <= _MAX_KEYS):
                _add_object(found, member, name, mapping)
        elif isinstance(member, list) and (not _is_row(member) or not member):
            found.parts[name] = member
        elif isinstance(member, list):
            named = {f"{name}.{at}": _format(each) for at, each in enumerate(member, 1)}
            found.row.update(named if len(member) <= _MAX_POSITIONS else {})
        elif not path or name not in found.row:
            found.row[name] = _format(member)


def _list_map(value: Mapping[str, Any], least: int = 1) -> Sequence[Any] | None:
    """Return the members of a map as objects that include their key, or None if it is not a map.

    In a map, all keys are times, or there are at least `least` members of the same form.
    """
    values = [*value.values()]
    if not values:
        return None
    if all(map(is_time, value)):
        return [
            {"time": key, "": each if _is_container(each) else {"value": each}}
            for key, each in value.items()
        ]
    kinds = {type(each) for each in values}
    if kinds not in ({dict}, {list}) or not _WRAPPERS.isdisjoint(map(str.casefold, value)):
        return None
    if kinds == {list}:
        is_map = not any(map(_is_row, values)) and len(values) >= least
    else:
        is_map = all(all(map(is_time, each)) and each for each in values) or (
            len(values) >= least
            and bool(set.intersection(*map(set, values)))
            and _find_indexed(value) == {}
        )
    name = "key2" if any("key" in each for each in values) else "key"
    return [{name: key, "": each} for key, each in value.items()] if is_map else None


class _Columns(NamedTuple):
    """The rows of an object that is itself a table, and the keys that the table occupies."""

    items: Sequence[Any]
    keys: Collection[str]


def _list_columns(value: Mapping[str, Any]) -> _Columns | None:
    """Return the table in an object: column names with rows, arrays as columns, or equal steps.

    Raises FlattenError if the columns have different lengths, or if the steps are ambiguous.
    """
    names = value.get("columns")
    key = next((key for key in ("values", "rows", "data") if isinstance(value.get(key), list)), "")
    if isinstance(names, list) and names and key and all(map(_is_row, value[key])):
        texts = [*map(_name_column, names)]
        items = [dict(zip(texts, row, strict=False)) for row in value[key]]
        return _Columns(items, {"columns", key})
    lists = {key: each for key, each in value.items() if _is_row(each) and each}
    lists |= _find_indexed(value)
    start, step = (
        next((key for key in keys if key in value and not _is_container(value[key])), None)
        for keys in (_STARTS, _STEPS)
    )
    if start is not None and step is not None:
        return _list_steps(value, lists, start, step)
    times = [key for key, each in lists.items() if is_time(each[0])]
    if not times or len(lists) < 2:  # noqa: PLR2004 - times and counts
        return None
    _check_lengths(lists, times[0])
    return _Columns(_transpose(lists), {*lists})


def _list_steps(
    value: Mapping[str, Any], lists: dict[str, Sequence[Any]], start: str, step: str
) -> _Columns | None:
    """Return the rows of counts at equal steps from a start time."""
    counts = {
        key: each
        for key, each in lists.items()
        if all(one is None or is_number(_format(one)) for one in each[:_PROBE])
    }
    keys = {start, step, *counts}
    for key, each in () if counts else value.items():
        if isinstance(each, dict) and each and all(map(_is_row, each.values())):
            counts, keys = each, {start, step, key}
        elif isinstance(each, list) and each and {*map(type, each)} == {dict}:
            shared = {start: value[start], step: value[step]}
            return _Columns([shared | one for one in each], {start, step, key})
    if not counts:
        return None
    count = _check_lengths(counts, next(iter(counts)))
    times = _list_times(_format(value[start]), _format(value[step]), count)
    return _Columns(_transpose({"time": times, **counts}), keys)


def _list_times(start: str, step: str, count: int) -> list[str]:
    """Return `count` times at equal steps: numbers in one unit, or ISO 8601 plus seconds.

    Raises FlattenError if the start or the step is ambiguous.
    """
    with suppress(ValueError, OverflowError):
        number = int(step)
        if is_time(start) and start.isdigit() and len(start) != len("YYYYMMDD"):
            return [str(int(start) + number * at) for at in range(count)]
        first = datetime.fromisoformat(start)
        # The step must be in seconds. Whole seconds given in milliseconds are rejected, because no
        # multiple of 1,000 divides 86,400.
        if first.tzinfo is not None and number and DAY_MS // 1000 % number == 0:
            return [str(first + timedelta(seconds=number * at)) for at in range(count)]
    raise FlattenError(
        f"the start {quote_value(start)} and the step {quote_value(step)} are not numbers of one"
        " unit, nor a time with its zone and the seconds of a step"
    )


def _check_lengths(lists: Mapping[str, Sequence[Any]], first: str) -> int:
    """Return the common length of some arrays.

    Raises FlattenError if the lengths differ.
    """
    for key, each in lists.items():
        if len(each) != len(lists[first]):
            raise FlattenError(
                f"{quote_value(first)} has {len(lists[first]):,} values, but {quote_value(key)} has"
                f" {len(each):,}"
            )
    return len(lists[first])


def _transpose(lists: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def _find_indexed(value: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
    """Return the columns that pandas writes as objects keyed by row number."""
    return {
        key: [*each.values()]
        for key, each in value.items()
        if isinstance(each, dict) and each and [*each] == [*map(str, range(len(each)))]
    }


def _choose_parts(
    found: Sequence[_Flat],
    paths: Sequence[str],
    mapping: ColumnMapping,
    missing: Collection[str] | None,
    depth: int,
) -> list[str]:
    """Return the paths of the tables to read: the best table, and others with the same columns."""
    if missing is not None and not missing:
        return []
    own = [row for row, _ in found[:_PROBE]]
    names = {name for row in own for name in row}
    has_time, has_number = _look(own)
    probes: dict[str, list[Row]] = {}
    scores: dict[str, tuple[int, int]] = {}
    for path in paths:
        parts = [parts[path] for _, parts in found if parts.get(path)][:_PROBE]
        below = _strip(missing, path)
        rows = [row for part in parts for _, row in expand(part[:_PROBE], mapping, below, depth)]
        probes[path] = rows
        inner = {name for row in rows for name in row}
        size = sum(map(len, parts))
        if missing is not None:
            score = len({_rename(name, names, path) for name in inner} & {*missing})
        else:
            times, numbers = _look(rows)
            is_count = any(name.lower().rpartition(".")[2] in _COUNT_NAMES for name in inner)
            score = 3 * (times and numbers) + 2 * (numbers and (not has_number or is_count))
            score = score if score or has_time else 1
        scores[path] = score, size
    best = max(paths, key=lambda path: scores[path])
    if not scores[best][0]:
        return []
    columns = {name for row in probes[best] for name in row}
    return [
        path
        for path in paths
        if path == best or (columns and {name for row in probes[path] for name in row} == columns)
    ]


def _look(rows: Sequence[Row]) -> tuple[bool, bool]:
    """Return whether any value is a time, and whether any value is a number that is not a time."""
    values = [value for row in rows for value in row.values()]
    times = [value for value in values if is_time(value)]
    return bool(times), any(is_number(value) and not is_time(value) for value in values)


def _rename(name: str, outer: Collection[str], path: str) -> str:
    """Return the name of a table's column in a row that also has the columns around the table."""
    if name not in outer or _is_below(name, path):
        return name
    return f"{path}.{name}" if path else f"{name}2"


def _strip(names: Collection[str] | None, path: str) -> Collection[str] | None:
    """Return the names that a table's columns may have had before they were renamed."""
    if names is None:
        return None
    return {*names, *(name.removeprefix(f"{path}.").removesuffix("2") for name in names)}


def _is_below(name: str, path: str) -> bool:
    return bool(path) and name.startswith(f"{path}.")


def _name_column(value: Any) -> str:
    """Return the name of a column, which Grafana writes as an object."""
    return (
        _format(value.get("text", value.get("name"))) if isinstance(value, dict) else _format(value)
    )


def _is_container(value: Any) -> bool:
    return isinstance(value, dict | list)


def _is_row(value: Any) -> bool:
    """Return whether a value is an array of scalars."""
    return isinstance(value, list) and not any(map(_is_container, value))


def is_time(value: Any) -> bool:
    """Return whether a text looks like a date or a Unix time."""
    return isinstance(value, str) and _TIME.fullmatch(value) is not None


def is_number(text: str) -> bool:
    """Return whether a text looks like a number."""
    return _NUMBER.fullmatch(text) is not None


def _format(value: Any) -> str:
    """Return the text of a scalar. Numbers are already text."""
    if isinstance(value, str):
        return value
    return "" if value is None else str(value).lower()
