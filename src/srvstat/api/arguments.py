"""Convert keyword arguments to the command line's parameter groups."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, get_type_hints
from zoneinfo import ZoneInfo

from srvstat.analysis.parameters import Parameter
from srvstat.analysis.questions import parse_edge
from srvstat.contract.errors import UsageError
from srvstat.contract.requests import Namespace

Time: TypeAlias = str | date
"""A time as text, as on the command line; a date; or an aware datetime or pandas Timestamp."""

_UTC = ZoneInfo("UTC")

_Group = TypeVar("_Group")
_Value = TypeVar("_Value")


class WindowArguments(TypedDict, total=False):
    """Arguments that choose the window, and the time zone of its dates, hours and steps."""

    range: str | None
    start: Time | None
    end: Time | None
    tz: str


class QuestionArguments(WindowArguments, total=False):
    """Window arguments, the namespace of identifiers, and whether to return the servers' total."""

    by: Namespace
    sum: bool


class FilterArguments(TypedDict, total=False):
    """Arguments that select servers by their properties."""

    game: str | None
    region: str | None
    tags: Iterable[str]
    offline: bool | None


class FigureArguments(TypedDict, total=False):
    """Additional statistics and the window to compare with."""

    quantiles: Iterable[float | str]
    above: int | None
    versus: str | tuple[Time, Time] | None
    around: Time | None
    until_last_seen: bool


class StatsArguments(QuestionArguments, FigureArguments, total=False):
    """The arguments of `stats`."""


class TopArguments(WindowArguments, FilterArguments, FigureArguments, total=False):
    """The arguments of `top`."""


class PlotArguments(QuestionArguments, total=False):
    """The arguments of `plot`. They match the options of `srvstat plot`."""

    kind: str
    step: str | None
    mark: Iterable[str] | Mapping[Time, str]
    title: str | None
    subtitle: str | None
    caption: str | None
    source: str | None
    width: int
    height: int | None
    scale: int
    theme: Literal["light", "dark", "auto"]


class Arguments:
    """Check and convert the keyword arguments of a call, and distribute them to parameter groups.

    Raises TypeError for an unknown argument or a value of the wrong type, and UsageError for an
    invalid value; the messages name the argument. Does not check `by` and flags such as `sum`.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._values = dict(given)

    def take(self, group: type[_Group]) -> _Group:
        """Create a parameter group from the arguments that belong to it, and remove them.

        `group` is a dataclass. Raises UsageError for an invalid value, and TypeError for a value of
        the wrong type.
        """
        hints = get_type_hints(group, include_extras=True)
        given = hints.keys() & self._values.keys()
        taken = {name: _convert(name, self._values.pop(name)) for name in given}
        for name, value in taken.items():
            (parameter,) = getattr(hints[name], "__metadata__", (Parameter(""),))
            if value is not None and parameter.least is not None:
                check_count(name, value, least=parameter.least, most=parameter.most)
        return group(**taken)

    def take_rest(self) -> dict[str, Any]:
        """Return the arguments that no group has taken."""
        for name in self._values.keys() - {"by", "sum", "limit"}:
            raise TypeError(f"unexpected keyword argument {name!r}")
        return {name: _convert(name, value) for name, value in self._values.items()}


def warn_of_old_name(name: str, value: _Value, new: str, *, level: int = 3) -> _Value:
    """Return the argument's value, and warn that 2.0 removes this name in favor of `new`."""
    if value is not None:
        text = f"{name}: is now {new}; srvstat 2.0 removes {name}"
        warnings.warn(text, DeprecationWarning, level)
    return value


def _check_text(name: str, value: Any) -> str:
    """Return the value if it is a string. Raises TypeError otherwise."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: must be a string, not {type(value).__name__}")
    return value


def check_count(name: str, value: Any, *, least: int, most: int | None = None) -> int:
    """Return the value of an argument that must be an integer from `least` to `most`.

    Raises TypeError if it is not an integer, UsageError if it is out of range.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name}: must be an integer, not {type(value).__name__}")
    if value < least:
        raise UsageError(f"{name}: must be at least {least}, not {value}")
    if most is not None and value > most:
        raise UsageError(f"{name}: must be at most {most}, not {value}")
    return value


def list_values(name: str, values: Iterable[_Value]) -> list[_Value]:
    """Return the values of an argument as a list.

    Raises TypeError for a single string, because iterating over it would give characters.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{name}: must be a list, not {type(values).__name__}")
    return list(values)


def check_texts(**arguments: Any) -> None:
    """Check that each argument is None or a string. Raises TypeError if not."""
    for name, value in arguments.items():
        _convert(name, value)


def format_time(name: str, value: Any) -> str:
    """Return a time as the text that the command line would take.

    Raises UsageError for a datetime without a time zone, and TypeError for any other type.
    """
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise UsageError(
                f"{name}: {value} has no time zone; add one, such as tzinfo=UTC, or give a date"
            )
        return value.astimezone(UTC).isoformat()
    if isinstance(value, str | date):
        return str(value)
    raise TypeError(f"{name}: must be a string, a date or a datetime")


def parse_time(name: str, value: Time | None, zone: ZoneInfo = _UTC) -> int | None:
    """Return a time in Unix milliseconds. A date means midnight in the zone.

    Raises UsageError for an invalid time, and TypeError for any other type.
    """
    return None if value is None else parse_edge(name, format_time(name, value), zone)


def _format_versus(name: str, value: Any) -> str:
    if isinstance(value, tuple):
        return "..".join(format_time(name, one) for one in value)
    return _check_text(name, value)


def _list_texts(name: str, values: Any) -> list[str]:
    texts: list[str] = list_values(name, values)
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{name}: must be a list of strings")
    return texts


def _list_marks(name: str, values: Any) -> list[str]:
    if isinstance(values, Mapping):
        values = [f"{format_time(name, at)}={label}" for at, label in values.items()]
    return _list_texts(name, values)


def _list_quantiles(name: str, values: Any) -> list[str]:
    # `str` writes small floats with an exponent, which the option parser rejects.
    return [
        f"{Decimal(str(one)):f}" if isinstance(one, float) else str(one)
        for one in list_values(name, values)
    ]


_CONVERTERS: Mapping[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(("start", "end", "around"), format_time),
    "limit": partial(check_count, least=1),
    "quantiles": _list_quantiles,
    "mark": _list_marks,
    "tags": _list_texts,
    "text": lambda name, value: [_check_text(name, value)],
    "versus": _format_versus,
}
"""The converters of arguments. Arguments neither here nor in `_KEPT` must be strings or None."""

_KEPT = {"by", "sum", "offline", "until_last_seen", "above", "width", "height", "scale"}


def _convert(name: str, value: Any) -> Any:
    if value is None or name in _KEPT:
        return value
    convert: Callable[[str, Any], Any] = _CONVERTERS.get(name, _check_text)
    return convert(name, value)
