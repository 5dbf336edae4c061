"""Interpret the arguments of the Python API."""

import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

from srvstat.analysis.selection import (
    FilterOptions,
    ServerFilter,
    build_references,
    find_matches,
    find_references,
)
from srvstat.analysis.statistics import parse_quantile
from srvstat.analysis.windows import WindowQuery
from srvstat.contract.errors import UsageError
from srvstat.contract.ranges import DEFAULT_RANGE
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.snapshot import Snapshot

_Value = TypeVar("_Value")

_QUOTED_OR_OPTION = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|$)|--([a-z][a-z-]*)')
_PARAMETERS = {"from": "start", "to": "end", "quantile": "quantiles", "tag": "tags"}
"""The parameters that have other names than the options."""


def name_parameters(error: UsageError) -> UsageError:
    """Return an error whose message names parameters of Python instead of options.

    Quoted values stay unchanged.
    """
    return type(error)(_QUOTED_OR_OPTION.sub(_name_parameter, error.reason))


def _name_parameter(match: re.Match[str]) -> str:
    option = match[1]
    return match[0] if option is None else _PARAMETERS.get(option, option.replace("-", "_"))


def list_values(name: str, values: Iterable[_Value]) -> list[_Value]:
    """Return the values of an argument.

    Raises TypeError for a single string, whose characters would be used otherwise.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{name}: must be a list")
    return list(values)


def check_texts(**arguments: Any) -> None:
    """Check that arguments are None or strings.

    Raises TypeError, which names the argument.
    """
    for name, value in arguments.items():
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name}: must be a string")


def build_query(
    range: str | None, start: str | None, end: str | None, tz: str, default: str = DEFAULT_RANGE
) -> WindowQuery:
    """Return the query of a window.

    Raises TypeError.
    """
    check_texts(range=range, start=start, end=end, tz=tz)
    return WindowQuery(range, start, end, tz, default)


def list_identifiers(values: Iterable[str] | None) -> list[str] | None:
    """Return the identifiers of an argument; None for all servers.

    Raises TypeError for a single string.
    """
    return None if values is None else list_values("identifiers", values)


def parse_quantiles(decimals: Iterable[float | str]) -> list[Fraction]:
    """Return the exact values of the texts of quantiles.

    Raises UsageError.
    """
    # The text of a small float has an exponent.
    return [
        parse_quantile(f"{Decimal(str(one)):f}" if isinstance(one, float) else str(one))
        for one in decimals
    ]


def build_filter(
    as_of: int,
    tags: list[str],
    *,
    offline: bool | None,
    seen_within: str | None,
    **texts: str | None,
) -> ServerFilter:
    """Return a filter of servers; `texts` are `text`, `game` and `region`.

    Raises UsageError, TypeError.
    """
    check_texts(seen_within=seen_within, **texts)
    if not all(isinstance(tag, str) for tag in tags):
        raise TypeError("tags: must be a list of strings")
    options = FilterOptions(tags=tags, offline=offline, seen_within=seen_within, **texts)
    return options.build_filter(as_of)


def find_servers(file: Snapshot, identifiers: list[str] | None, by: str) -> Iterable[ServerRow]:
    """Return the servers of identifiers, each once; all servers for None.

    Raises InvalidRequestError, ServerNotFoundError, NotInBundleError, SnapshotError.
    """
    if identifiers is None:
        return find_matches(file, ServerFilter())
    return find_references(file, build_references(identifiers, by))


def check_count(name: str, value: Any, *, least: int) -> None:
    """Check that an argument is None or a number from `least` on.

    Raises TypeError, UsageError.
    """
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name}: must be an integer")
    if value < least:
        raise UsageError(f"{name}: {value} is less than {least}")
