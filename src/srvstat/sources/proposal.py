"""Propose the options that read a file, from its first rows; never what could be read in two ways.

A question is what only a person knows: the zone of times, the unit of numbers, whether a day or a
month is first, or which column is meant.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from srvstat.sources.mapping import MappingOptions
from srvstat.sources.source import Source

_NAMES = {
    "at": (
        *("observedat", "timestamp", "datetime", "time", "date", "at", "when", "polledat"),
        *("recordedat", "createdat", "ts", "day", "month", "hour"),
    ),
    "id": (
        *("serverid", "server", "servername", "id", "name", "appid", "gameid", "app", "game"),
        *("gamename", "gamemode", "mode", "instance", "ip", "host", "hostname", "address"),
        *("identifier", "key", "category", "title", "label", "room"),
    ),
    "players": (
        *("players", "playercount", "playersonline", "onlineplayers", "online", "avgplayers"),
        *("averageplayers", "currentplayers", "concurrentplayers", "current", "count", "value"),
        *("users", "avg", "average", "mean", "total", "peakplayers", "peak", "n"),
    ),
}
"""What people name such columns, without capitals and signs, the likeliest first."""

"""What people name such columns, without capitals and signs, the likeliest first."""

_SIGNS = re.compile(r"[\W_]+")


class Question(NamedTuple):
    """What is not clear from a file: the option that tells it, in words, and its likely values.

    The first choice is the likeliest; without choices, only a person knows the value.
    """

    option: str
    text: str
    choices: Sequence[str] = ()


class Proposal(NamedTuple):
    """How sources would be read.

    `lines` describe the files and their columns for people. `options` are the given ones and those
    that were found, with the likeliest answers to `questions`; if there are none, a build needs no
    person.
    """

    lines: Sequence[str]
    options: MappingOptions
    questions: Sequence[Question]


def propose(sources: Sequence[Source], options: MappingOptions) -> Proposal:
    """Propose options that read some sources, completing the given ones.

    Raises SourceError if a source can't be read, or has no times or counts.
    """
    del sources
    return Proposal([], options, [])


def propose_label(labels: Sequence[str]) -> str | None:
    """Return the label that names the server of a series of Prometheus; None if none does."""
    return _find_named("id", labels)


def _find_named(key: str, names: Sequence[str]) -> str | None:
    """Return the name that people use most for a field; None if no name is one of these."""
    folded = {_SIGNS.sub("", name.casefold()): name for name in reversed(names)}
    return next((folded[known] for known in _NAMES[key] if known in folded), None)
