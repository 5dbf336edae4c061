"""Name the environment variable of an option, not the option, where its value is invalid."""

import os
import re
from collections.abc import Callable, Iterator
from functools import wraps
from typing import ParamSpec, TypeVar, cast

import typer

from srvstat.contract.errors import UsageError
from srvstat.contract.wire import quote_value

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def name_variables(command: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Decorate a command with a parameter `ctx`: its usage errors name variables that were used.

    The reason of a UsageError is `place: problem`. In the place, the variable replaces each option
    whose value comes from it.
    """

    @wraps(command)
    def run(*positional: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        try:
            return command(*positional, **named)
        except UsageError as error:
            place, colon, problem = error.reason.partition(": ")
            for flag, variable in _list_used_variables(cast("typer.Context", named["ctx"])):
                place = re.sub(rf"(?<!\S){flag}(?!\S)", variable, place)
            raise UsageError(f"{place}{colon}{problem}") from None

    return run


def has_flag(ctx: typer.Context, name: str) -> bool:
    """Return whether the command line has the option of a parameter."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def describe_error(error: typer.TyperException) -> str:
    """Return the message of an error that Typer found, with the variable that caused it, if any."""
    if isinstance(error, typer.BadParameter) and error.ctx and error.param:
        for flag, variable in _list_used_variables(cast("typer.Context", error.ctx)):
            # Typer interprets only Booleans; commands do the rest.
            if flag in error.param.opts:
                value = quote_value(os.environ[variable])
                return f"{variable}: {value} is not a Boolean; use 1 or 0"
    return error.format_message().replace("Value error, ", "")  # of pydantic


def _list_used_variables(ctx: typer.Context) -> Iterator[tuple[str, str]]:
    """Yield the name of each option whose value comes from the environment, and its variable."""
    for parameter in ctx.command.params:
        source = parameter.name and ctx.get_parameter_source(parameter.name)
        if source and source.name == "ENVIRONMENT":
            yield parameter.opts[0], str(parameter.envvar)
