"""Interpret the arguments of the Python API."""

import re
from collections.abc import Iterable

from srvstat.contract.errors import UsageError

_QUOTED_OR_OPTION = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|$)|--([a-z][a-z-]*)')
_PARAMETERS = {"from": "start", "to": "end", "quantile": "quantiles", "tag": "tags"}
"""The parameters that have other names than the options."""


def name_parameters(error: UsageError) -> UsageError:
    """Return an error whose message names parameters of Python instead of options.

    Quoted values stay as they are.
    """
    return type(error)(_QUOTED_OR_OPTION.sub(_name_parameter, error.reason))


def _name_parameter(match: re.Match[str]) -> str:
    option = match[1]
    return match[0] if option is None else _PARAMETERS.get(option, option.replace("-", "_"))


def list_texts(name: str, values: Iterable[str]) -> list[str]:
    """Return the strings of an argument.

    Raises TypeError for a single string, whose characters would be used otherwise.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{name}: must be a list of strings")
    return list(values)
