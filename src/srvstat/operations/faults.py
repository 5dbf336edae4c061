"""Parse simulated responses from `Prefer` headers and rule files."""

import re
from collections.abc import Collection
from functools import partial
from typing import Annotated, NamedTuple

from srvstat.contract import models
from srvstat.contract.errors import SourceError
from srvstat.contract.http import OperationId
from srvstat.contract.requests import ServerReference
from srvstat.contract.wire import quote_value
from srvstat.files.reading import open_input
from srvstat.files.toml import parse_toml

MAX_DELAY_SECONDS = 15
"""The longest simulated delay. It is shorter than the response deadline, after which the connection
would be closed.
"""

BREAKS = frozenset({"drop", "cut", "reset"})
"""The outcomes that break the connection."""

SUCCESS = "code=200"
_CODES = {200, *range(400, 600)}
_WORD = re.compile(
    r'[ \t]*(code|delay|drop|cut|reset)[ \t]*(?:=[ \t]*("?)([0-9]{1,5})\2[ \t]*)?(?:;.*)?',
    re.IGNORECASE,
)
_DELAY = re.compile(r"delay\s*=\W*([0-9]+)", re.IGNORECASE)
_MAX_BYTES = 1 << 20
_MESSAGES = {"bool_type": "must be true or false", "too_short": "empty"}


class Fault(NamedTuple):
    """A simulated response. None means no simulation."""

    outcome: str | None = None
    """One of BREAKS or a status such as `code=503`. `code=200` is the normal response."""
    delay: int | None = None
    """The delay in milliseconds."""


def parse_preferences(text: str) -> Fault:
    """Return the outcome and the delay that a `Prefer` header selects (RFC 7240).

    If there are several, the first outcome and the first delay apply.
    """
    outcomes, delays = [], []
    for part in text.split(","):
        name, _, digits = match.groups() if (match := _WORD.fullmatch(part)) else ("", "", None)
        number = None if digits is None else int(digits)
        if name.lower() in BREAKS and number is None:
            outcomes.append(name.lower())
        elif name.lower() == "code" and number in _CODES:
            outcomes.append(f"code={number}")
        elif name.lower() == "delay" and number is not None:
            delays.append(min(number, MAX_DELAY_SECONDS * 1_000))
    return Fault(next(iter(outcomes), None), next(iter(delays), None))


def _parse_answer(given: object) -> Fault:
    """Parse an answer of a rule: `ok`, `503`, `drop`, `delay=200` or `503, delay=200`."""
    words = str(given).replace(" ", "").split(",")
    known = [
        SUCCESS if word == "ok" else f"code={word}" if word.isdecimal() else word for word in words
    ]
    if any(int(digits) > MAX_DELAY_SECONDS * 1_000 for digits in _DELAY.findall(str(given))):
        longest = f"longer than {MAX_DELAY_SECONDS * 1_000:,} milliseconds"
        raise ValueError(f": {quote_value(given)} is {longest}; write a shorter delay")
    fault = parse_preferences(",".join(known))
    if ";" in str(given) or sum(part is not None for part in fault) < len(words):
        raise ValueError(
            f": {quote_value(given)} is not an answer; use ok, a status from 400 to 599, drop, cut,"
            " reset or delay=200, or a delay with one of the others: 503, delay=200"
        )
    return fault


class Call(NamedTuple):
    """A valid request to an operation."""

    operation: OperationId
    servers: Collection[ServerReference]
    key: str
    """The SHA-256 of the key."""
    plan: str | None


class Rule(models.ContractModel):
    """The consecutive answers to the requests that match all of the given properties.

    `server` is an identifier as sent in requests, alone or after `id:` or `cfxId:`.
    """

    operation: OperationId | None = None
    server: str | None = None
    plan: str | None = None
    sha256: models.Sha256 | None = None
    answers: Annotated[
        models.Members[Annotated[Fault, models.parsed_by(_parse_answer)]], models.NOT_EMPTY
    ]
    repeat: bool = False

    def includes(self, call: Call) -> bool:
        """Return whether the rule applies to a request."""
        names = (f"{one.by}:{one.identifier}" for one in call.servers)
        return (
            self.operation in (None, call.operation)
            and self.server in {None, *names, *(one.identifier for one in call.servers)}
            and self.plan in (None, call.plan)
            and self.sha256 in (None, call.key)
        )


class _RulesFile(models.ContractModel):
    rules: models.Members[Rule] = ()


def parse_rules(title: str, content: bytes) -> tuple[Rule, ...]:
    """Parse the rules in a file. Raises SourceError, with the line of the problem."""
    build = partial(models.validate, _RulesFile, messages=_MESSAGES)
    return parse_toml(title, content, build).rules


def read_rules(path: str) -> tuple[Rule, ...]:
    """Read the rules in a file. Raises SourceError if it is unreadable, too large or invalid."""
    with open_input(path) as file:
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise SourceError(f"{path}: more than {_MAX_BYTES:,} bytes; name a file of rules")
    return parse_rules(path, content)
