"""Propose the options that read a file, from its first rows; never what could be read in two ways.

A question is what only a person knows: the zone of times, the unit of numbers, whether a day or a
month is first, or which column is meant.
"""

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from srvstat.contract import wire
from srvstat.contract.errors import SourceError
from srvstat.sources import registry
from srvstat.sources.csv import HEADER
from srvstat.sources.mapping import (
    THOUSANDS,
    ColumnMapping,
    MappingOptions,
    build_options,
    format_columns,
    list_names,
    list_options,
    parse_columns,
)
from srvstat.sources.source import Batch, EncodingError, Source
from srvstat.sources.table import Sample, Table, convert_table, find_columns
from srvstat.sources.values import EMPTY, MAX_PLAYERS, RowError

_NAMES = {
    "at": (
        *("observedat", "timestamp", "datetime", "time", "date", "at", "when", "polledat"),
        *("recordedat", "createdat", "ts", "day", "month", "hour", "zeitpunkt", "zeit", "datum"),
        *("tag", "fecha", "data", "dato", "datahora", "дата", "время", "时间", "日期", "日時"),
    ),
    "id": (
        *("serverid", "server", "servername", "id", "name", "appid", "gameid", "app", "game"),
        *("gamename", "gamemode", "mode", "instance", "ip", "host", "hostname", "address"),
        *("identifier", "key", "category", "title", "label", "room", "entityid", "channel"),
        *("serveur", "servidor", "serwer", "сервер", "服务器", "サーバー", "サーバ", "series"),
    ),
    "players": (
        *("players", "playercount", "playersonline", "onlineplayers", "online", "avgplayers"),
        *("averageplayers", "currentplayers", "concurrentplayers", "current", "count", "value"),
        *("users", "avg", "average", "mean", "peakplayers", "peak", "n", "state", "spieler"),
        *("joueurs", "jugadores", "jogadores", "graczy", "игроки", "在线人数", "人数", "total"),
    ),
}
"""What people name such columns, without capitals and signs, the likeliest first."""

_SIGNS = re.compile(r"[\W_]+")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_a-zA-Z]+")
_UNLIKELY = (
    "max|maximum|slots?|capacity|limit|port|ping|latency|rank|uptime|tps|cpu|ram|mem|memory|version|min|minimum|lowest"
    "|year|gain|change|percent|lat|lon|bots|queue|row|index|table"
)
_METRICS = (
    "players?|online|count|playercount|peak|avg|average|mean|median|users?|viewers"
    "|twitch|current|value|concurrent|free|state"
)
_TOTALS = (
    "sum|totals?|all|overall|gesamt|summe|alle|insgesamt|suma|totale|totaal|somme|ensemble|итого"
    "|всего|сумма|合计|总计|總計|合計|总数"
)
_IS_UNLIKELY = re.compile(rf"\b(?:{_UNLIKELY})\b")
"""Matches the names of numbers that are seldom player counts."""
_IS_METRIC = re.compile(rf"\b(?:{_UNLIKELY}|{_METRICS})\b")
"""Matches the names of columns that describe one server."""
_IS_TOTAL = re.compile(rf"(?:{_TOTALS})(?: (?:{_TOTALS}|{_METRICS}))?")
"""Matches the names of columns that add up others."""

_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+|[1-9][0-9]{0,2}(?:[.,' \u00a0\u202f\u2019][0-9]{3})+)(?:[.,][0-9]+)?"
    r"(?:[eE][+-]?[0-9]+)?"
)
_SHARE = re.compile(r"[+-]?[0-9.,]+ ?(?:%|/ ?[0-9.,]+ ?%?)")
_UNIX = re.compile(r"[0-9]{8,19}(?:\.[0-9]*)?")
_CLOCK = re.compile(r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?: ?[AaPp]\.?[Mm]\.?)?")
_PARTS = re.compile(r"(?:[^\W\d]+,? )?([0-9]{1,2})([./-])([0-9]{1,2})\2([0-9]{4}|[0-9]{2})\b")
_HAS_CLOCK = re.compile(r"[0-9]:[0-9]|[0-9] ?[AaPp]\.?[Mm]\b|T[0-9]{4}|^[0-9]{9,}")
_EARLIEST, _LATEST = 631_152_000_000, 4_102_444_800_000  # 1990 and 2100
_MONTHS = 12

_MOST_CELLS, _OTHER_CELLS = 100_000, 4_000
_MOST_SAMPLE_BYTES = 1 << 20
_MOST_FILES = 50
_MOST_HEADS = 8
_ENCODINGS = ("cp1252", "shift_jis", "gb18030", "cp1251", "cp1250")
_KANA = re.compile("[\u3040-\u30ff]")
_SAMPLE_BYTES = 1 << 18
_FEW = 3
"""With fewer rows, a constant column tells nothing."""
_MOST = 0.6
"""The share of values that must have a form; the others are obstacles that are listed."""
_HALF = 0.5
_ALMOST_ALL = 0.99
_UNKNOWN = 1000


class Question(NamedTuple):
    """What is not clear from a file: the option that tells it, in words, and its likely values.

    The first choice is the likeliest; without choices, only a person knows the value. See `answer`.
    """

    option: str
    text: str
    choices: Sequence[str] = ()


_ZONE = Question("time-zone", "the time zone")


class Proposal(NamedTuple):
    """How sources would be read.

    `lines` describe the files and their columns for people. `options` are the given ones and those
    that were found, with the likeliest answers to `questions`; if there are none, a build needs no
    person.
    """

    lines: Sequence[str]
    options: MappingOptions
    questions: Sequence[Question]


def answer(options: MappingOptions, question: Question, value: str) -> MappingOptions:
    """Return options with the answer to a question, as a person writes it.

    Raises ValueError.
    """

    def build_error(_: str, reason: str) -> SourceError:
        raise ValueError(reason)

    found: Any = value
    name = question.option
    if name in ("columns", "wide"):
        found = parse_columns(value)
    elif name == "round" or (name, value) == ("thousands", "round"):
        if value.casefold() not in ("round", "yes", "y"):
            raise ValueError("averages can't be kept as they are; answer yes to round them")
        name, found = "round", True
    return build_options({name: found}, build_error).merge(options)


def propose(sources: Sequence[Source], options: MappingOptions) -> Proposal:
    """Propose options that read some sources, completing the given ones.

    Raises SourceError if a source can't be read, or has no times or counts.
    """
    mapping = options.build_mapping()
    sampled = [
        replace(source, mapping=mapping) for source in sources if registry.KINDS[source.kind].sample
    ]
    if not sampled:
        return Proposal([], options, [])
    chosen = _choose(sampled)
    try:
        first, *others = chosen
        samples = [(first, _read_sample(first, _MOST_CELLS))]
        samples += [(source, _read_sample(source, _OTHER_CELLS)) for source in others]
    except EncodingError:
        if options.encoding is not None:
            raise
        return _propose_encoding(sources, chosen, options)
    if mapping.is_strict and all(_is_ours(*each) for each in samples):
        return Proposal([], options, [])
    return _Search(sampled, samples, options).propose()


def _propose_encoding(
    sources: Sequence[Source], chosen: Sequence[Source], options: MappingOptions
) -> Proposal:
    """Return a proposal that begins with the question for the encoding."""
    head = b"".join(source.read_head()[0] for source in chosen[:_MOST_HEADS])
    texts = {name: head.decode(name, "ignore") for name in _ENCODINGS}
    found = [name for name, text in texts.items() if len(text.encode(name)) > len(head) - 2]
    # Without kana, a text is hardly Japanese.
    found.sort(key=lambda name: (name == "shift_jis") != bool(_KANA.search(texts[name])))
    proposal = propose(sources, replace(options, encoding=found[0]))
    question = Question("encoding", "the encoding of the text", found)
    questions = [*proposal.questions, question]
    questions.sort(key=lambda each: each.option not in ("columns", "wide", "id", "encoding"))
    return proposal._replace(questions=questions)


def _choose(sources: Sequence[Source]) -> list[Source]:
    """Return the first source, and of the others as many as can be read in time."""
    rest = sources[1:]
    sizes = [min(source.get_size() or _SAMPLE_BYTES, _SAMPLE_BYTES) for source in rest]
    mean = sum(sizes) / len(sizes) if sizes else 1
    number = min(len(rest), _MOST_FILES, int(_MOST_SAMPLE_BYTES / max(mean, 1)))
    return [sources[0], *(rest[at * len(rest) // number] for at in range(number))]


def _read_sample(source: Source, cells: int) -> Sample:
    """Return the first rows of a source, with a number of cells or a few more."""
    kind = registry.KINDS[source.kind]
    sample: Sample = registry.load_function(source.kind, kind.sample)(source)
    names, columns, places = sample.table
    most = max(cells // max(len(names), 1), 10)
    if len(places) <= most:
        return sample
    table = Table(names, [column[:most] for column in columns], places[:most])
    return sample._replace(table=table, is_whole=False)


def _join_rows(table: Table, names: Sequence[str]) -> list[str]:
    """Return the texts of one or two columns, if the table has them."""
    if not {*names} <= {*table.names}:
        return []
    columns = [table.columns[table.names.index(name)] for name in names]
    return [" ".join(map(str.strip, row)).strip() for row in zip(*columns, strict=True)]


def _is_ours(source: Source, sample: Sample) -> bool:
    names = sample.table.names
    return (*names,) == HEADER or (source.kind != "csv" and {*names} == {*HEADER})


class _Column:
    """A column of a sample."""

    def __init__(self, name: str, texts: Sequence[str]) -> None:
        self.name = name
        self.texts = texts
        self.distinct = [
            text for text in dict.fromkeys(map(str.strip, texts)) if text.lower() not in EMPTY
        ]
        self.key = _SIGNS.sub("", name.casefold())
        self.words = " ".join(_WORDS.findall(name)).casefold()

    @cached_property
    def is_number(self) -> bool:
        """Whether the column may have counts: most of its values are numbers."""
        found = sum(map(_is_number, self.distinct))
        return found > _HALF * len(self.distinct)

    @cached_property
    def is_clock(self) -> bool:
        """Whether the column has clock times without dates."""
        return bool(self.distinct) and all(map(_CLOCK.fullmatch, self.distinct))

    @cached_property
    def is_text(self) -> bool:
        """Whether the column may have identifiers, and no clock times or shares."""
        shares = sum(map(bool, map(_SHARE.fullmatch, self.distinct)))
        return not (
            self.is_empty or self.is_number or self.is_clock or 2 * shares > len(self.distinct)
        )

    @cached_property
    def is_constant(self) -> bool:
        """Whether all of several rows have the same value."""
        return len(self.texts) >= _FEW and len({*self.texts}) == 1

    @property
    def is_empty(self) -> bool:
        """Whether no row has a value."""
        return not self.distinct

    def rank(self, key: str) -> float:
        """Return how well the name fits a field; lower is better."""
        names = {**dict.fromkeys(self.words.split(), _HALF), self.key: 0.0}
        ranks = (at + names[known] for at, known in enumerate(_NAMES[key]) if known in names)
        return min(ranks, default=_UNKNOWN)

    def is_named(self, key: str) -> bool:
        """Return whether the whole name is usual for a field."""
        return self.key in _NAMES[key]

    @property
    def example(self) -> str:
        """The first value."""
        return self.distinct[0] if self.distinct else ""


def _is_number(text: str) -> bool:
    # Identifiers of 18 digits are no counts.
    return bool(_NUMBER.fullmatch(text)) and not (text.isdigit() and int(text) > MAX_PLAYERS)


class _Times(NamedTuple):
    """How to read times: the columns, options by attribute, questions, and a note."""

    names: tuple[str, ...]
    options: Mapping[str, Any]
    questions: Sequence[Question]
    note: str


@dataclass(slots=True)
class _Search:
    """Finds the options for some sources, of which samples were read."""

    sources: Sequence[Source]
    samples: Sequence[tuple[Source, Sample]]
    given: MappingOptions
    found: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, _Column] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    of_columns: list[Question] = field(default_factory=list)
    of_values: list[Question] = field(default_factory=list)
    is_sure_wide: bool = False

    @property
    def source(self) -> Source:
        """The source that is described."""
        return self.samples[0][0]

    @property
    def table(self) -> Table:
        """The first rows of the source."""
        return self.samples[0][1].table

    def propose(self) -> Proposal:
        """Return the proposal.

        Raises SourceError.
        """
        names, columns, places = self.table
        if not places or not names:
            raise SourceError(f"{self.source.title}: has no rows below {list_names(names)}")
        for name, column in zip(names, columns, strict=True):
            self.columns.setdefault(name, _Column(name, column))
        self._check_given()
        times = self._choose_times()
        players = self._choose_columns(times)
        self._settle_times(times)
        self._settle_counts(players)
        options = self._build_options()
        lines = [*self._describe_sources(), *self._describe_columns(), *self._try(options)]
        questions = [*self.of_columns, *self.of_values]
        if self.is_sure_wide and len(questions) > 1:
            # The columns are shown with another question.
            questions = [each for each in questions if each.option != "wide"]
        return Proposal(lines, options, questions)

    def _build_options(self) -> MappingOptions:
        options = replace(self.given, **self.found)
        settings = list_options(options) | dict(self.samples[0][1].options)
        return build_options(settings, lambda name, reason: SourceError(f"{name}: {reason}"))

    def _check_given(self) -> None:
        """Check that the given columns exist.

        Raises SourceError.
        """
        given = {**self.given.columns, **self.given.wide}
        others = given.pop("except", "").split("+")
        for key, name in given.items():
            parts = [name] if name in self.columns else name.split("+", 1)
            missing = [part for part in parts if part not in self.columns]
            if missing:
                likely = min(self.columns.values(), key=lambda each: each.rank(key))
                raise SourceError(
                    f"{self.source.title}: no column {wire.quote_value(missing[0])}; the columns"
                    f" are {list_names([*self.columns])}; {key} may be"
                    f" {wire.quote_value(likely.name)}"
                )
        for name in filter(None, others):
            if not any(name in sample.table.names for _, sample in self.samples):
                raise SourceError(
                    f"{self.source.title}: except: no column {wire.quote_value(name)}; the columns"
                    f" are {list_names([*self.columns])}"
                )

    # Times

    def _choose_times(self) -> _Times:
        """Return the column or columns of times.

        Raises SourceError if there is none.
        """
        given = self.given.wide.get("at") or self.given.columns.get("at")
        if given is not None:
            names = (given,) if given in self.columns else (*given.split("+", 1),)
            return self._read_times(names) or self._ask_format(names)
        found = self._list_times()
        if not found:
            named = min(self.columns.values(), key=lambda each: each.rank("at"))
            if named.key in _NAMES["at"] and not named.is_empty:
                return self._ask_format((named.name,))
            raise SourceError(
                f"{self.source.title}: no column of times was found among"
                f" {list_names([*self.columns])}; name it with --columns at=NAME"
            )
        if len(found) > 1:
            self._ask_column("at", "has the times", ["+".join(each.names) for each in found])
        return found[0]

    def _list_times(self) -> list[_Times]:
        """Return the possible columns of times, the likeliest first."""
        singles = [times for name in self.columns if (times := self._read_times((name,)))]
        clocks = [name for name, column in self.columns.items() if column.is_clock]
        found = []
        for each in singles:
            is_day = not _HAS_CLOCK.search(self._get_first(each.names))
            pairs = [self._read_times((*each.names, clock)) for clock in clocks] if is_day else []
            found += list(filter(None, pairs)) or [each]
        rows = {each.names: _join_rows(self.table, each.names) for each in found}
        varying = [each for each in found if len({*rows[each.names]}) > 1]
        # A column may repeat the date of another.
        found = [
            each
            for each in varying or found
            if not any(_is_part(rows[each.names], rows[other.names]) for other in varying)
        ]
        return sorted(
            found, key=lambda each: (self.columns[each.names[0]].rank("at"), len(each.questions))
        )

    def _join(self, names: Sequence[str]) -> list[str]:
        """Return the different texts of one or two columns in all samples, but empty ones."""
        texts: dict[str, None] = {}
        for _, sample in self.samples:
            texts |= dict.fromkeys(_join_rows(sample.table, names))
        return [text for text in texts if text.lower() not in EMPTY]

    def _ask_format(self, names: tuple[str, ...]) -> _Times:
        """Return the times of columns in an unknown form, with the question for it.

        Raises SourceError if the given form does not read them.
        """
        example = wire.quote_value(next(iter(self._join(names)), ""))
        for option in ("time-format", "time-unit"):
            if given := list_options(self.given).get(option):
                raise SourceError(
                    f"{self.source.title}: --{option} {given} does not read {example} in"
                    f" {list_names(names)}"
                )
        question = Question("time-format", f"the format of the times, such as {example}")
        questions = [question, *([] if self.given.time_zone else [_ZONE])]
        return _Times(names, {}, questions, "time")

    def _read_times(self, names: tuple[str, ...]) -> _Times | None:
        """Return how to read the times in one or two columns; None if they have none."""
        if any(self.columns[name].is_empty for name in names):
            return None
        first = self._get_first(names)
        if not any(map(str.isdigit, first)) or len(first) < len("1.1.2026"):
            return None
        texts = self._join(names)
        few = texts[:: max(len(texts) // 200, 1)]
        readings = [
            (_measure(few, {"time_zone": "UTC"} | options), options, note)
            for options, note in self._list_readings(texts)
        ]
        share, options, note = max(readings, key=itemgetter(0))
        if share < _MOST:
            return None
        questions = self._ask_order(texts, options) + self._ask_unit(few, options)
        if _measure(few, options) < share:
            questions.append(_ZONE)
        return _Times(names, options, questions, note)

    def _get_first(self, names: Sequence[str]) -> str:
        return " ".join(self.columns[name].example for name in names)

    def _list_readings(self, texts: Sequence[str]) -> list[tuple[dict[str, Any], str]]:
        """Return the options under which texts could be times, the likeliest first."""
        given = {
            name: getattr(self.given, name)
            for name in ("time_zone", "time_unit", "time_format")
            if getattr(self.given, name) is not None
        }
        if self.given.time_format:
            return [(given, _describe_format(self.given.time_format))]
        if self.given.time_unit:
            return [(given, f"time in Unix {_UNITS[self.given.time_unit]}")]
        if _UNIX.fullmatch(texts[0]):
            units = [unit for unit in _UNITS if unit != "ms"]
            read = [(given | {"time_unit": unit}, f"time in Unix {_UNITS[unit]}") for unit in units]
            return [(given, "time"), *read]
        if _PARTS.match(texts[0]):
            forms = _order_forms(texts)
            return [(given | {"time_format": form}, _describe_format(form)) for form in forms]
        return [(given, "time")]

    def _ask_order(self, texts: Sequence[str], options: Mapping[str, Any]) -> list[Question]:
        """Return the question for the order of day and month, unless a value tells it."""
        found = options.get("time_format")
        if self.given.time_format or not found:
            return []
        parts = [match for text in texts if (match := _PARTS.match(text))]
        if parts[0][2] == "." or any(int(part[1]) > _MONTHS for part in parts):
            return []
        if any(int(part[3]) > _MONTHS for part in parts):
            return []
        other = "month-first" if found == "day-first" else "day-first"
        text = f"day or month first in {parts[0][0]}"
        return [Question("time-format", text, (found, other))]

    def _ask_unit(self, texts: Sequence[str], options: Mapping[str, Any]) -> list[Question]:
        unit = options.get("time_unit")
        if self.given.time_unit or not unit:
            return []
        at = ColumnMapping(time_unit=unit).parse_time(texts[0])
        day = np.datetime64(at, "ms").astype("datetime64[D]")
        return [
            Question(
                "time-unit",
                f"the unit of the times: {texts[0]} is {day} in {_UNITS[unit]}",
                (unit,),
            )
        ]

    def _settle_times(self, times: _Times) -> None:
        self.found |= times.options
        first, *others = times.names
        self.notes[first] = ", with ".join([times.note, *others])
        self.notes |= dict.fromkeys(others, "")
        order = ("time-format", "time-unit", "time-zone")
        self.of_values += sorted(times.questions, key=lambda each: order.index(each.option))

    # Columns

    def _choose_columns(self, times: _Times) -> list[_Column]:
        """Return the columns of counts, and note the options that name columns."""
        rest = [
            column
            for name, column in self.columns.items()
            if name and name not in times.names and not self._read_times((name,))
        ]
        at = "+".join(times.names)
        if self.given.wide:
            return self._take_wide(at, rest)
        numbers = [column for column in rest if column.is_number]
        texts = [column for column in rest if column.is_text]
        if not numbers:
            raise SourceError(
                f"{self.source.title}: no column of counts was found among"
                f" {list_names([*self.columns])}"
            )
        server = self._choose_server(times, texts, numbers)
        if server is None and self.given.id is None and self._is_wide(numbers):
            return self._take_wide(at, rest)
        columns = {"at": at}
        if server is not None:
            columns = {"id": server.name} | columns
            self.notes[server.name] = "server"
        elif self.given.id is None:
            self._ask_id(times)
        fixed = [each for each in numbers if server is not None and _is_fixed(each, server)]
        players = self._choose_players([each for each in numbers if each is not server], fixed)
        self.notes[players.name] = "players"
        self.found["columns"] = {**columns, "players": players.name}
        return [players]

    def _choose_server(
        self, times: _Times, texts: Sequence[_Column], numbers: Sequence[_Column]
    ) -> _Column | None:
        """Return the column of identifiers, if any."""
        if given := self.given.columns.get("id"):
            return self.columns[given]
        if self.given.id is not None:
            return None
        rows = _join_rows(self.table, times.names)
        is_repeated = len({*rows}) < _ALMOST_ALL * len(rows)
        found = [each for each in texts if not self._is_constant(each, numbers)]
        if is_repeated and not any(_is_key(each, rows) for each in found):
            keys = [each for each in numbers if _is_key(each, rows)]
            keys = [each for each in keys if len(each.distinct) < len(rows)]
            found += sorted(keys, key=lambda each: (each.rank("id"), len(each.distinct)))[:1]
        found = found or [each for each in texts if each.is_named("id")]
        if not found and not self.samples[0][1].is_whole:
            # Rows in order of servers begin with many of one.
            found = [*texts] or [each for each in numbers if each.is_constant and _is_id(each)]
        if not found:
            return None
        if not is_repeated and self._is_wide(numbers) and not any(map(_is_id, found)):
            return None
        found.sort(key=lambda each: (not _is_key(each, rows), each.rank("id")))
        (best, *others) = found
        # Without repeated times, the text may be a status or a map.
        if others or best.is_number or not _is_key(best, rows) or not (is_repeated or _is_id(best)):
            self._ask_column("id", "names the server", [each.name for each in found])
        return best

    def _is_constant(self, column: _Column, numbers: Sequence[_Column]) -> bool:
        """Return whether a column is the same in all rows with a count, as the type of a record."""
        count = min(numbers, key=lambda each: each.rank("players"))
        rows = zip(column.texts, count.texts, strict=True)
        return _Column(column.name, [text for text, number in rows if number.strip()]).is_constant

    def _ask_column(self, key: str, what: str, names: Sequence[str]) -> None:
        text = f"which column {what}: {_join_or(names)}"
        choices = [format_columns({key: name}) for name in names]
        self.of_columns.append(Question("columns", text, choices))

    def _is_wide(self, numbers: Sequence[_Column]) -> bool:
        """Return whether number columns seem to be a server each, by their names."""
        if "players" in self.given.columns:
            return False
        metrics = sum(bool(_IS_METRIC.search(each.words)) for each in numbers)
        return len(numbers) > 1 and metrics < _HALF * len(numbers)

    def _take_wide(self, at: str, rest: Sequence[_Column]) -> list[_Column]:
        """Take all columns of numbers as servers."""
        given = self.given.wide.get("except")
        if given is not None:
            others = {*given.split("+")}
        else:
            others = {each.name for each in rest if not (each.is_number or each.is_empty)}
            if not self.given.wide:
                others |= {each.name for each in rest if _IS_TOTAL.fullmatch(each.words)}
        servers = [each for each in rest if each.name not in others]
        self.notes |= {each.name: _ONE_EACH for each in servers}
        names = [each.name for each in rest if each.name in others]
        self.found["wide"] = {"at": at} | ({"except": "+".join(names)} if names else {})
        self.found["columns"] = {}
        if not self.given.wide:
            self.is_sure_wide = not names and not any(
                _IS_METRIC.search(each.words) for each in servers
            )
            text = f"whether each of {len(servers):,} columns is a server"
            self.of_columns.append(Question("wide", text, [format_columns(self.found["wide"])]))
        return servers

    def _choose_players(self, numbers: Sequence[_Column], fixed: Sequence[_Column]) -> _Column:
        """Return the column of counts; those that are fixed for each server are unlikely.

        Raises SourceError if there is none.
        """
        if given := self.given.columns.get("players"):
            return self.columns[given]
        constant = [each for each in numbers if each.is_constant]
        varying = [each for each in numbers if each not in (*constant, *fixed)]
        likely = [each for each in varying if not _IS_UNLIKELY.search(each.words)]
        likely = likely or varying or [*numbers]
        if not likely:
            raise SourceError(
                f"{self.source.title}: no column of counts was found among"
                f" {list_names([*self.columns])}"
            )
        likely.sort(key=lambda each: each.rank("players"))
        best = likely[0]
        is_odd = len(numbers) > 1 and best.rank("players") == _UNKNOWN
        if len(likely) > 1 or is_odd or _IS_UNLIKELY.search(best.words):
            others = [each for each in numbers if each not in (*likely, *constant)]
            names = [each.name for each in (*likely, *others)]
            self._ask_column("players", "has the counts", names)
        return best

    def _ask_id(self, times: _Times) -> None:
        """Propose an identifier for files of one server each, or of one server."""
        stems = [
            os.path.basename(replace(source, mapping=ColumnMapping()).server_id)
            for source in self.sources
        ]
        folders = [os.path.basename(os.path.dirname(source.title)) for source in self.sources]
        choice, text = stems[0], "the name of the server"
        if len(stems) > 1:
            choice, text = "{file}", "the server of each file: its name"
            parts = {_SIGNS.sub("", re.sub("[0-9]", "", stem)) for stem in stems}
            if len({*stems}) == 1 or (len({*folders}) > 1 and len({*stems}) < len(stems)):
                choice, text = "{folder}", "the server of each file: its folder's name"
            elif len(parts) == 1 and all(self._is_part(times, stem) for stem in stems):
                choice = re.sub(r"[\W_0-9]+\Z", "", stems[0]) or folders[0] or "server"
                text = "the name of the server, whose parts the files seem to be"
        self.found["id"] = choice
        self.of_columns.append(Question("id", text, (choice,)))

    def _is_part(self, times: _Times, stem: str) -> bool:
        """Return whether files with such names may have parts of one series."""
        is_whole = all(sample.is_whole for _, sample in self.samples)
        if not is_whole and not re.search("[0-9]{4}", stem):
            return False
        forms = ColumnMapping(**{"time_zone": "UTC"} | dict(times.options))
        spans = []
        for _, sample in self.samples:
            rows = _join_rows(sample.table, times.names)
            with suppress(RowError):
                spans.append(sorted(forms.parse_time(row) for row in (rows[0], rows[-1])))
        return all(first[1] <= second[0] for first, second in pairwise(sorted(spans)))

    # Counts

    def _settle_counts(self, players: Sequence[_Column]) -> None:
        """Find the separators of thousands and whether counts must be rounded."""
        names = {each.name for each in players}
        texts = {text for each in players for text in each.distinct}
        for _, sample in self.samples[1:]:
            columns = zip(sample.table.names, sample.table.columns, strict=True)
            texts |= {text.strip() for name, column in columns if name in names for text in column}
        odd = sorted(text for text in texts if not text.isdigit() and _is_number(text))
        thousands = self.given.thousands
        if thousands is None:
            thousands = self._find_thousands(odd)
        whole, rounded = (ColumnMapping(thousands=thousands, rounds=each) for each in (False, True))
        fractions = (
            text
            for text in odd
            if _read_count(whole, text) is None and _read_count(rounded, text) is not None
        )
        if not self.given.round and (fraction := next(fractions, None)):
            self.found["round"] = True
            text = f"whether to round {fraction}: averages are not counts"
            self.of_values.append(Question("round", text, ("yes",)))

    def _find_thousands(self, texts: Sequence[str]) -> str | None:
        """Return the separator of thousands, if any, and ask if there are two readings."""
        readings: dict[tuple[int | None, ...], str | None] = {}
        for each in (None, *THOUSANDS):
            mapping = ColumnMapping(thousands=each, rounds=True)
            readings.setdefault(tuple(_read_count(mapping, text) for text in texts), each)
        least = min(reading.count(None) for reading in readings)
        likely = sorted(
            (reading for reading in readings if reading.count(None) == least),
            key=lambda reading: -sum(filter(None, reading)),
        )
        if self.given.round and None in map(readings.get, likely):
            return None
        chosen = readings[likely[0]]
        if len(likely) > 1:
            differing = zip(texts, likely[0], likely[1], strict=True)
            text, first, second = next(each for each in differing if each[1] != each[2])
            choices = [readings[reading] or "round" for reading in likely]
            question = f"whether {text} is {first} or about {second}"
            self.of_values.append(Question("thousands", question, choices))
        if chosen is not None:
            self.found["thousands"] = chosen
        return chosen

    # Descriptions

    def _describe_sources(self) -> list[str]:
        _, sample = self.samples[0]
        rows = len(sample.table.places)
        size = f"{'' if sample.is_whole else 'more than '}{_format_number(rows, 'row')}"
        width = _format_number(len(sample.table.names), "column")
        lines = [f"{self.source.title}: {sample.form}, {size}, {width}"]
        if len(self.sources) > 1:
            looked = len(self.samples) - 1
            some = f", of which {looked:,} were looked at" if looked < len(self.sources) - 1 else ""
            lines.append(f"and {_format_number(len(self.sources) - 1, 'more file')}{some}")
        return lines

    def _describe_columns(self) -> list[str]:
        return _format_columns(self.columns, self.notes)

    def _try(self, options: MappingOptions) -> list[str]:
        """Return what a build would keep of the first rows.

        Raises SourceError if it is nothing, or if a source lacks a column.
        """
        assumed = replace(options, time_zone=options.time_zone or "UTC")
        mapping = assumed.build_mapping()
        for source, sample in self.samples[1:]:
            find_columns(replace(source, mapping=mapping), sample.table)
        source = replace(self.source, mapping=mapping, accepts_any_id=True)
        batch = convert_table(source, self.table)
        kept, rejected = len(batch.players), batch.count_rejected()
        lines = [*_describe_rejects(source, batch)]
        is_open = any(each.option == "time-format" for each in self.of_values)
        if not kept and not is_open:
            reason = lines[0].strip() if lines else "all counts are empty"
            raise SourceError(f"{source.title}: no count of the first rows can be kept; {reason}")
        if repeated := kept - len(
            {*zip(batch.codes.tolist(), batch.instants.tolist(), strict=True)}
        ):
            lines.append(
                f"  {_format_number(repeated, 'count')} of a server at a time that it has already"
            )
        cells = len(self.table.places) * sum(each == _ONE_EACH for each in self.notes.values())
        is_empty = kept + rejected < _HALF * cells if cells else _has_changes_only(batch)
        if is_empty and not options.hold:
            lines.append("  most cells are empty: if the file has changes only, add --hold")
        rows = (
            f"{'' if self.samples[0][1].is_whole else 'the first '}{len(self.table.places):,} rows"
        )
        servers = _format_number(len(batch.names), "server")
        counts = _format_number(kept + rejected, "count")
        lines.append(f"  would keep {kept:,} of {counts} of {servers} ({rows})")
        return lines


def _has_changes_only(batch: Batch) -> bool:
    """Return whether times are regular, while most servers have no count at most of them."""
    times = np.unique(batch.instants)
    steps = np.diff(times)
    if len(steps) < _FEW or len(batch.players) > _HALF * len(times) * len(batch.names):
        return False
    is_regular = np.mean(steps == np.median(steps)) > _HALF
    order = np.lexsort((batch.instants, batch.codes))
    is_same = np.diff(batch.codes[order]) == 0
    own = np.diff(batch.instants[order])[is_same]
    return bool(is_regular and len(np.unique(own)) > 1)


def _format_number(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


_UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}


def _describe_format(form: str) -> str:
    return f"time, {form.replace('-', ' ')}" if form.endswith("-first") else f"time as {form}"


def _measure(texts: Sequence[str], forms: Mapping[str, Any]) -> float:
    """Return the share of texts that are plausible times."""
    mapping = ColumnMapping(**forms)
    found = 0
    for text in texts:
        with suppress(RowError):
            found += _EARLIEST <= mapping.parse_time(text) < _LATEST
    return found / len(texts) if texts else 0


def _order_forms(texts: Sequence[str]) -> list[str]:
    """Return the orders of day and month, the likelier first."""
    parts = [match for text in texts if (match := _PARTS.match(text))]
    if any(int(part[1]) > _MONTHS for part in parts) or parts[0][2] == ".":
        return ["day-first", "month-first"]
    if any(int(part[3]) > _MONTHS for part in parts):
        return ["month-first", "day-first"]
    # Consecutive rows are usually in order and evenly spaced.
    days = [(part[4], int(part[3]), int(part[1])) for part in parts]
    months = [(part[4], int(part[1]), int(part[3])) for part in parts]
    is_month_first = _count_breaks(months) < _count_breaks(days) or re.search(
        "[AaPp][Mm]", texts[0]
    )
    return ["month-first", "day-first"] if is_month_first else ["day-first", "month-first"]


def _count_breaks(days: Sequence[tuple[str, int, int]]) -> int:
    """Return how often dates jump by more than a day or so."""
    numbers = [month * 31 + day for _, month, day in days]
    return sum(abs(second - first) > _FEW for first, second in pairwise(numbers))


def _read_count(mapping: ColumnMapping, text: str) -> int | None:
    try:
        return mapping.parse_count(text)
    except RowError:
        return None


def _is_id(column: _Column) -> bool:
    return column.is_named("id")


def _is_key(column: _Column, times: Sequence[str]) -> bool:
    """Return whether hardly any two rows have the same value and the same time."""
    return len({*zip(column.texts, times, strict=True)}) >= _ALMOST_ALL * len(times)


def _is_part(texts: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether each text is a part of another one's text, and a shorter one."""
    pairs = zip(texts, others, strict=True)
    return all(text in other and len(text) < len(other) for text, other in pairs)


def _is_fixed(column: _Column, server: _Column) -> bool:
    """Return whether each server has one number, while it has several rows."""
    servers = len({*server.texts})
    pairs = len({*zip(server.texts, column.texts, strict=True)})
    return pairs == servers < len(server.texts)


def _join_or(texts: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))


def _describe_rejects(source: Source, batch: Batch) -> Iterable[str]:
    numbers: Counter[str] = Counter()
    firsts: dict[str, str] = {}
    for reject in batch.rejects:
        numbers[reject.reason] += reject.rows
        value, _ = reject.find_value()
        place = source.format_place(reject.place).removeprefix(f"{source.title}, ")
        firsts.setdefault(reject.reason, f"{wire.quote_value(value)} in {place}")
    for reason, number in numbers.most_common():
        yield f"  {_format_number(number, 'count')} rejected, such as {firsts[reason]}: {reason}"


_MOST_LINES = 12
_ROOM = 36
_WIDTH = 50
_LEAST_ROOM = 17
_ONE_EACH = "one server each"


def _format_columns(columns: Mapping[str, _Column], notes: Mapping[str, str]) -> list[str]:
    """Return a line for each column, and one for all servers of a wide file."""
    servers = [name for name in columns if notes.get(name) == _ONE_EACH]
    single = [name for name in columns if name and notes.get(name) != _ONE_EACH]
    shown = sorted(single, key=lambda name: name not in notes)[:_MOST_LINES]
    width = max((_count_cells(_cut(name)) for name in shown), default=0)
    rooms = [_count_cells(_cut(columns[name].example)) for name in shown]
    room = width + 3 + max([*rooms, _LEAST_ROOM])
    lines = []
    for name in filter({*shown}.__contains__, single):
        text = f"  {_pad(_cut(name), width)} {_cut(columns[name].example)}"
        note = notes.get(name, "not used")
        lines.append(f"{_pad(text, room)} → {note}" if note else text.rstrip())
    if len(single) > len(shown):
        lines.append(f"  and {len(single) - len(shown):,} more columns, not used")
    if servers:
        values = _cut(", ".join(columns[name].example or '""' for name in servers[:_FEW]))
        names = _cut(", ".join(servers), _WIDTH - _count_cells(values))
        number = f" ({len(servers):,} columns)" if names.endswith("…") else ""
        lines.append(f"  {names}{number}   {values}   → {_ONE_EACH}")
    return lines


def _cut(text: str, room: int = _ROOM) -> str:
    """Return a text that fits into a line, with control characters as escapes."""
    text = text[: 2 * room]
    text = text if text.isprintable() else wire.quote_value(text)[1:-1]
    while _count_cells(text) > room:
        text = text[: -2 if text.endswith("…") else -1] + "…"
    return text


def _pad(text: str, width: int) -> str:
    return text + " " * (width - _count_cells(text))


def _count_cells(text: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(each) in "WF") for each in text)


def propose_label(labels: Sequence[str]) -> str | None:
    """Return the label that names the server of a series of Prometheus; None if none does."""
    return _find_named("id", labels)


def _find_named(key: str, names: Sequence[str]) -> str | None:
    """Return the name that people use most for a field; None if no name is one of these."""
    folded = {_SIGNS.sub("", name.casefold()): name for name in reversed(names)}
    return next((folded[known] for known in _NAMES[key] if known in folded), None)
