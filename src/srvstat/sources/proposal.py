"""Propose import options from a file's first rows.

Ambiguities become questions for the user: the zone of times, the unit of numbers, whether the day
or the month comes first, or which column is meant.
"""

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
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
from srvstat.sources.tables import Sample, Table, convert_table, find_columns
from srvstat.sources.values import EMPTY, MAX_PLAYERS, RowError, TimeUnit

_TIMES = (
    "observedat|timestamp|datetime|time|date|at|when|polledat|recordedat|createdat|ts|day|month"
    "|hour|zeitpunkt|zeit|datum|tag|fecha|data|dato|datahora|дата|время|时间|日期|日時"
)
_SERVERS = (
    "serverid|server|servername|id|name|appid|gameid|app|game|gamename|gamemode|mode|instance|ip"
    "|host|hostname|address|identifier|key|category|title|label|room|entityid|channel|serveur"
    "|servidor|serwer|сервер|服务器|サーバー|サーバ|series"
)
_COUNTS = (
    "players|playercount|playersonline|onlineplayers|online|avgplayers|averageplayers"
    "|currentplayers|concurrentplayers|current|count|value|users|avg|average|mean|peakplayers"
    "|peak|n|state|spieler|player|concurrent|viewers|median|joueurs|jugadores|jogadores|graczy"
    "|игроки|在线人数|人数"
)
_NAMES = {"at": _TIMES.split("|"), "id": _SERVERS.split("|"), "players": _COUNTS.split("|")}
"""Common names of such columns, without capitals and punctuation, the likeliest first."""

_SIGNS = re.compile(r"[\W_]+")
_WORDS = re.compile(r"[^\W\d_]+")
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_UNLIKELY = (
    "max|maximum|min|minimum|lowest|slots?|capacity|limit|port|ping|latency|rank|uptime|tps|cpu"
    "|ram|mem|memory|version|year|gain|change|percent|lat|lon|bots|queue|row|index|table|ns|id"
)
_TOTALS = (
    "sum|totals?|all|overall|gesamt|summe|alle|insgesamt|suma|totale|totaal|somme|ensemble|итого"
    "|всего|сумма|合计|总计|總計|合計|总数"
)
_IS_UNLIKELY = re.compile(rf"\b(?:{_UNLIKELY})\b")
"""Matches the names of numbers that are seldom player counts."""
_IS_TOTAL = re.compile(rf"(?:{_TOTALS})(?: (?:{_TOTALS}|players|online))?")
"""Matches the names of columns that sum up others."""

_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+|[1-9][0-9]{0,2}(?:[.,' \u00a0\u202f\u2019][0-9]{3})+)(?:[.,][0-9]+)?"
    r"(?:[eE][+-]?[0-9]+)?"
)
_SHARE = re.compile(r"[+-]?[0-9.,]+ ?(?:%|/ ?[0-9.,]+ ?%?)")
_STATE = re.compile(
    r"(?:t|f|true|false|yes|no|y|n|on|off|(?:on|off)line|up|down|ok)\W*", re.IGNORECASE
)
"""Matches states such as "online", which are not server names."""
_UNIX = re.compile(r"[0-9]{8,19}(?:\.[0-9]*)?")
_CLOCK = re.compile(r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?: ?[AaPp]\.?[Mm]\.?)?")
_PARTS = re.compile(r"(?:[^\W\d]+,? )?([0-9]{1,2})([./-])([0-9]{1,2})\2([0-9]{4}|[0-9]{2})\b")
_HAS_CLOCK = re.compile(r"[0-9]:[0-9]|[0-9] ?[AaPp]\.?[Mm]\b|T[0-9]{4}|^[0-9]{9,}")
_ORDERS = ("day-first", "month-first")
_MONTHS = 12
_EARLIEST, _LATEST = 631_152_000_000, 4_102_444_800_000  # 1990 and 2100
_UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_ENCODINGS = ("cp1252", "shift_jis", "gb18030", "cp1251", "cp1250")
_KANA = re.compile("[\u3040-\u30ff]")

_MOST_CELLS, _OTHER_CELLS = 150_000, 4_000
_MOST_FILES, _MOST_HEADS, _MOST_TIMES, _MOST_VALUES = 16, 8, 200, 2_000
_FEW = 3
"""The minimum number of rows for a column to count as constant."""
_SOME, _HALF, _MOST, _ALMOST_ALL = 0.3, 0.5, 0.6, 0.99
"""The minimum shares of values that must match a form or differ."""
_UNKNOWN, _MOST_NAMES = 1000, 5


class Question(NamedTuple):
    """An ambiguity: the option that resolves it, a description, and likely values.

    The first choice is the likeliest. Without choices, only the user knows the value. See `answer`.
    """

    option: str
    text: str
    choices: Sequence[str] = ()


_ZONE = Question("time-zone", "the time zone")


class Proposal(NamedTuple):
    """How sources would be read.

    - `lines`: a description of the files and their columns for the user.
    - `options`: the given options plus the proposed ones, with the likeliest answers to
      `questions`.
    - `questions`: the remaining ambiguities. If there are none, a build can run unattended.
    """

    lines: Sequence[str]
    options: MappingOptions
    questions: Sequence[Question]


def answer(options: MappingOptions, question: Question, value: str) -> MappingOptions:
    """Apply the user's answer to a question.

    Raises ValueError if the answer is invalid.
    """

    def build_error(_: str, reason: str) -> SourceError:
        raise ValueError(reason)

    found: Any = value
    name = question.option
    if value.startswith(_SERIES):
        name, found = "id", value.removeprefix(_SERIES)
    elif name in ("columns", "wide"):
        found = parse_columns(value)
    elif name == "round" or (name, value) == ("thousands", "round"):
        if value.casefold() not in ("round", "yes", "y"):
            raise ValueError("averages can't be kept as they are; answer yes to round them")
        name, found = "round", True
    return build_options({name: found}, build_error).merge(options)


_SERIES = "--id "
"""The prefix of a choice for `--columns` that is an identifier instead of a column."""


def propose(sources: Sequence[Source], options: MappingOptions) -> Proposal:
    """Propose options that read some sources, in addition to the given options.

    A wide table whose column of times is not known is given as `wide` with an empty `at`.

    Raises SourceError if a source can't be read, or has no times or counts.
    """
    mapping = options.build_mapping()
    sampled = [
        replace(source, mapping=mapping) for source in sources if registry.KINDS[source.kind].sample
    ]
    if not sampled:
        return Proposal([], options, [])
    first, *others = chosen = _choose(sampled)
    try:
        samples = [(first, _read_sample(first, _MOST_CELLS))]
        samples += [(source, _read_sample(source, _OTHER_CELLS)) for source in others]
    except EncodingError:
        if options.encoding is not None:
            raise
        return _propose_encoding(sources, chosen, options)
    with_rows = [each for each in samples if each[1].table.places]
    samples = with_rows or [each for each in samples if not _is_ours(*each)] or samples
    if mapping.is_strict and all(_is_ours(*each) for each in samples):
        return Proposal([], options, [])
    return _Search(sampled, samples, options, *samples[0]).propose()


def _propose_encoding(
    sources: Sequence[Source], chosen: Sequence[Source], options: MappingOptions
) -> Proposal:
    """Return a proposal that begins with the question for the encoding."""
    head = b"".join(source.read_head()[0] for source in chosen[:_MOST_HEADS])
    texts = {name: head.decode(name, "ignore") for name in _ENCODINGS}
    found = [name for name, text in texts.items() if len(text.encode(name)) > len(head) - 2]
    # Japanese text almost always contains kana.
    found.sort(key=lambda name: (name == "shift_jis") != bool(_KANA.search(texts[name])))
    proposal = propose(sources, replace(options, encoding=found[0]))
    questions = [*proposal.questions, Question("encoding", "the encoding of the text", found)]
    questions.sort(key=lambda each: each.option not in ("columns", "wide", "id", "encoding"))
    return proposal._replace(questions=questions)


def _choose(sources: Sequence[Source]) -> list[Source]:
    """Return the first source and a sample of the others."""
    rest = sources[1:]
    return [sources[0], *rest[:: len(rest) // _MOST_FILES + 1]]


def _read_sample(source: Source, cells: int) -> Sample:
    """Return the first rows of a source, about `cells` cells in total."""
    kind = registry.KINDS[source.kind]
    sample: Sample = registry.load_function(source.kind, kind.sample)(source)
    names, columns, places, _ = sample.table
    most = max(cells // max(len(names), 1), 10)
    if len(places) <= most:
        return sample
    table = Table(names, [column[:most] for column in columns], places[:most])
    return sample._replace(table=table, is_whole=False)


def _join_rows(table: Table, names: Sequence[str]) -> list[str]:
    """Return the texts of one or two columns, joined by row; none if the table lacks a column."""
    if not {*names} <= {*table.names}:
        return []
    columns = [table.columns[table.names.index(name)] for name in names]
    return [" ".join(map(str.strip, row)).strip() for row in zip(*columns, strict=True)]


def _is_ours(source: Source, sample: Sample) -> bool:
    names, columns, places, _ = sample.table
    if source.kind == "ndjson":
        # A few rows with other keys are malformed rows of our form.
        others = (each for name, each in zip(names, columns, strict=True) if name not in HEADER)
        odd = sum(map(any, zip(*others, strict=True)))
        most = min(len(places) // 2, max(len(places) // 100, 10))
        return not names or ({*names} >= {*HEADER} and odd <= most)
    if source.kind == "csv":
        return (*names,) == HEADER
    return {*names} >= {*HEADER}


class _Column:
    """A column of a sample."""

    def __init__(self, name: str, texts: Sequence[str]) -> None:
        self.name = name
        self.texts = texts
        distinct = dict.fromkeys(map(str.strip, texts))
        self.distinct = [text for text in distinct if text.lower() not in EMPTY]
        self.example = self.distinct[0] if self.distinct else ""
        self.is_constant = len(texts) >= _FEW and len(self.distinct) == 1
        self.key = _SIGNS.sub("", name.casefold())
        self.words = " ".join(_WORDS.findall(_CAPITAL.sub(" ", name))).casefold()
        self.is_unlikely = self.is_named("at") or bool(_IS_UNLIKELY.search(self.words))
        self.is_metric = self.is_unlikely or self.rank("players") < _UNKNOWN

    def measure(self, is_one: Callable[[str], object]) -> float:
        """Return the share of distinct values for which a function is true."""
        texts = self.distinct[:_MOST_VALUES]
        return sum(map(bool, map(is_one, texts))) / max(len(texts), 1)

    @cached_property
    def is_number(self) -> bool:
        """Whether the column may contain counts: a considerable share of its values are numbers."""
        return self.measure(_is_number) > _SOME

    @property
    def is_fixed(self) -> bool:
        """Whether the number never changes and is not 0."""
        return self.is_constant and self.example != "0"

    @property
    def may_be_other(self) -> bool:
        """Whether a numeric column of a wide file is possibly not a server."""
        return self.is_metric or self.is_fixed or 0 < self.measure(_is_number) < 1

    @cached_property
    def is_clock(self) -> bool:
        """Whether the column contains clock times without dates."""
        return self.measure(_CLOCK.fullmatch) == 1

    @cached_property
    def is_text(self) -> bool:
        """Whether the column may contain identifiers.

        Numbers, clock times, shares and states are not identifiers.
        """
        is_other = self.is_number or self.is_clock or self.measure(_SHARE.fullmatch) > _HALF
        is_other = is_other or (not self.is_named("id") and self.measure(_STATE.fullmatch) == 1)
        return bool(self.distinct) and not is_other

    def rank(self, key: str) -> float:
        """Return how well the column's name fits a field; lower is better."""
        names = {**dict.fromkeys(self.words.split(), _HALF), self.key: 0.0}
        known = enumerate(_NAMES.get(key, ()))
        return min((at + names[name] for at, name in known if name in names), default=_UNKNOWN)

    def is_limit(self, names: Iterable[str]) -> bool:
        """Return whether the name is another column's name followed by a word such as max."""
        return self.is_unlikely and any(self.name.startswith(f"{name} ") for name in names if name)

    def is_named(self, key: str) -> bool:
        """Return whether the whole name is a common name of a field."""
        return self.key in _NAMES[key]


def _is_number(text: str) -> bool:
    # Numbers that exceed the largest count, such as Discord's 18-digit identifiers, are not counts.
    return bool(_NUMBER.fullmatch(text)) and not (text.isdigit() and int(text) > MAX_PLAYERS)


class _Times(NamedTuple):
    """How to read times: the columns, options by attribute, questions, and a note."""

    names: tuple[str, ...]
    options: Mapping[str, Any]
    questions: Sequence[Question]
    note: str


@dataclass(slots=True)
class _Search:
    """Finds the options for some sources from their samples, and describes the first source."""

    sources: Sequence[Source]
    samples: Sequence[tuple[Source, Sample]]
    given: MappingOptions
    source: Source
    sample: Sample
    found: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, _Column] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    of_columns: list[Question] = field(default_factory=list)
    of_values: list[Question] = field(default_factory=list)
    is_sure_wide: bool = False

    def propose(self) -> Proposal:
        """Return the proposal.

        Raises SourceError if a given column does not exist, or if there are no times or counts.
        """
        names, columns, places, _ = self.sample.table
        if not places or not names:
            problem = (
                f"no data rows after the header {list_names(names)}"
                if names
                else "no table of columns"
            )
            raise SourceError(f"{self.source.title}: {problem}")
        for name, column in zip(names, columns, strict=True):
            self.columns.setdefault(name, _Column(name, column))
        self._check_given()
        times = self._choose_times()
        players = self._choose_columns(times)
        self.found |= times.options
        self.notes |= dict.fromkeys(times.names, times.note)
        self.of_values += times.questions
        self._settle_counts(players, times)
        options = list_options(replace(self.given, **self.found)) | dict(self.sample.options)
        complete = build_options(options, lambda name, reason: SourceError(f"{name}: {reason}"))
        columns_shown = _format_columns(self.columns, self.notes)
        lines = [*self._describe_sources(), *columns_shown, *self._try(complete)]
        questions = [*self.of_columns, *self.of_values]
        if self.is_sure_wide and len(questions) > 1:
            # The other question already shows the columns.
            questions = [each for each in questions if each.option != "wide"]
        return Proposal(lines, complete, questions)

    def _build_error(self, problem: str, remedy: str = "") -> SourceError:
        names = list_names([*self.columns])
        return SourceError(f"{self.source.title}: {problem}{remedy} (columns: {names})")

    def _check_given(self) -> None:
        """Spell the given columns as the file does, whose capitals may differ.

        Raises SourceError if a column does not exist.
        """
        if self.given.input_table and self.source.kind in registry.TEXT_KINDS:
            problem = f"{self.source.kind.upper()} has a single table; leave out --input-table"
            raise SourceError(f"{self.source.title}: {problem}")
        columns, wide = (
            {key: self._find_name(key, name) for key, name in given.items()}
            for given in (self.given.columns, self.given.wide)
        )
        self.given = replace(self.given, columns=columns, wide=wide)

    def _find_name(self, key: str, name: str) -> str:
        """Return the name of a column, or of several, spelled as in the file."""
        samples = self.samples if key == "except" else self.samples[:1]
        known = {each for _, sample in samples for each in sample.table.names}
        parts = [name] if name in known else name.split("+", -1 if key == "except" else 1)
        for at, part in enumerate(parts):
            if not part or part in known:
                continue
            same = [each for each in known if each.casefold() == part.casefold()]
            if len(same) != 1:
                likely = min(self.columns.values(), key=lambda each: each.rank(key)).name
                near = format_columns({key: likely})
                is_new = key in _NAMES and likely not in self.given.columns.values()
                remedy = f"; did you mean {near}?" if is_new else ""
                raise self._build_error(f"no column {wire.quote_value(part)}", remedy)
            parts[at] = same[0]
        return "+".join(parts)

    # Times

    def _choose_times(self) -> _Times:
        """Return how to read the column or columns of times.

        Raises SourceError if no column has times.
        """
        given = self.given.wide.get("at") or self.given.columns.get("at")
        if given is not None:
            names = (given,) if given in self.columns else (*given.split("+", 1),)
            return self._read_times(names) or self._ask_format(names)
        found = self._list_times()
        if found:
            if len(found) > 1:
                self._ask_column("at", "has the times", ["+".join(each.names) for each in found])
            return found[0]
        named = min(self.columns.values(), key=lambda each: each.rank("at"))
        if named.is_named("at") and len(named.example) >= len("1/2026"):
            return self._ask_format((named.name,))
        raise self._build_error("no column with times found", "; name it with --columns at=NAME")

    def _list_times(self) -> list[_Times]:
        """Return the candidate columns of times, the likeliest first."""
        clocks = [name for name, column in self.columns.items() if column.is_clock]
        found: list[_Times] = []
        for name, column in self.columns.items():
            if single := self._read_times((name,)):
                is_day = not _HAS_CLOCK.search(column.example)
                pairs = [self._read_times((name, clock)) for clock in clocks if is_day]
                found += [*filter(None, pairs)] or [single]
        rows = {each.names: _join_rows(self.sample.table, each.names) for each in found}
        varying = [each for each in found if len({*rows[each.names]}) > 1]
        found = varying or found
        found.sort(key=lambda each: (self.columns[each.names[0]].rank("at"), len(each.questions)))
        # Omit a column that repeats another, or contains only a part of it such as the date.
        return [
            each
            for at, each in enumerate(found)
            if not any(_is_part(rows[each.names], rows[other.names]) for other in found)
            and rows[each.names] not in [rows[other.names] for other in found[:at]]
        ]

    def _join(self, names: Sequence[str]) -> list[str]:
        """Return the distinct nonempty texts of one or two columns in all samples."""
        texts: dict[str, None] = {}
        for _, sample in self.samples:
            texts |= dict.fromkeys(_join_rows(sample.table, names))
        return [text for text in texts if text.lower() not in EMPTY]

    def _ask_format(self, names: tuple[str, ...]) -> _Times:
        """Return columns whose time format is unknown, with the question for the format.

        Raises SourceError if a given format or unit does not fit the texts.
        """
        example = wire.quote_value(next(iter(self._join(names)), ""))
        for option in ("time-format", "time-unit"):
            if given := list_options(self.given).get(option):
                problem = f"--{option} {given} does not fit {example} in {list_names(names)}"
                raise SourceError(f"{self.source.title}: {problem}")
        question = Question("time-format", f"the format of the times, such as {example}")
        return _Times(names, {}, [question, *([] if self.given.time_zone else [_ZONE])], "time")

    def _read_times(self, names: tuple[str, ...]) -> _Times | None:
        """Return how to read the times in one or two columns, or None if they contain no times."""
        firsts = zip(*(self.columns[name].distinct[:_FEW] for name in names), strict=False)
        if not any(map(_may_be_time, map(" ".join, firsts))):
            return None
        texts = self._join(names)
        few = texts[:: max(len(texts) // _MOST_TIMES, 1)]
        is_named = self.columns[names[0]].rank("at") < _UNKNOWN
        readings = [
            (_measure(few, options | {"time_zone": "UTC"}), options, questions, note)
            for options, questions, note in self._list_readings(texts, is_named=is_named)
        ]
        share, options, questions, note = max(readings, key=itemgetter(0))
        if share < _MOST:
            return None
        is_local = self.given.time_zone is None and _measure(few, options) < share
        zone = [_ZONE] if is_local else []
        return _Times(names, options, [*questions, *zone], note)

    def _list_readings(
        self, texts: Sequence[str], *, is_named: bool
    ) -> list[tuple[dict[str, Any], list[Question], str]]:
        """Return the readings under which texts could be times: options, questions and notes.

        `is_named` says that the column's name suggests times.
        """
        names = ("time_zone", "time_unit", "time_format")
        given = {name: value for name in names if (value := getattr(self.given, name))}
        if form := self.given.time_format:
            return [(given, [], _describe_form(form))]
        if self.given.time_unit:
            return [(given, [], f"time in Unix {_UNITS[self.given.time_unit]}")]
        readings: list[tuple[dict[str, Any], list[Question], str]] = [(given, [], "time")]
        first = next(filter(_may_be_time, texts), "")
        if _UNIX.fullmatch(first):
            # Only the column's name distinguishes nanoseconds from Discord's identifiers.
            units: list[TimeUnit] = ["s", "us", "ns"] if is_named else ["s", "us"]
            for unit in units:
                with suppress(RowError):
                    at = ColumnMapping(time_unit=unit).parse_time(first)
                    day = np.datetime64(at, "ms").astype("datetime64[D]")
                    text = f"the unit of the times: {first} is {day} in {_UNITS[unit]}"
                    question = Question("time-unit", text, (unit,))
                    note = f"time in Unix {_UNITS[unit]}"
                    readings.append((given | {"time_unit": unit}, [question], note))
        elif any(map(_PARTS.match, texts)):
            first = next(filter(_PARTS.match, texts))
            orders, is_clear = _order_forms(texts)
            text = f"day or month first in {first.partition(' ')[0]}"
            questions = [] if is_clear else [Question("time-format", text, orders)]
            readings = [
                (given | {"time_format": form}, questions, _describe_form(form)) for form in orders
            ]
        return readings

    # Columns

    def _choose_columns(self, times: _Times) -> list[_Column]:
        """Return the columns of counts, and record the options that name columns.

        Raises SourceError if no column has counts.
        """
        rest = [
            column
            for name, column in self.columns.items()
            if name
            and name not in times.names
            and not self._read_times((name,))
            and "timestamp" not in column.words
        ]
        if self.given.wide:
            return self._take_wide(times, rest)
        given = self.given.columns.get("players")
        numbers = [column for column in rest if column.is_number or column.name == given]
        if not numbers:
            raise self._build_error(
                "no column with counts found", "; name it with --columns players=NAME"
            )
        server = self._choose_server(times, [each for each in rest if each.is_text], numbers)
        has_id = self.given.id is not None or "id" in self.found
        if server is None and not has_id and self._is_wide(numbers):
            return self._take_wide(times, rest)
        columns = {"at": "+".join(times.names)}
        if server is not None:
            columns = {"id": server.name} | columns
            self.notes[server.name] = "server"
        elif not has_id:
            self.found["id"], text = self._propose_id()
            self.of_columns.append(Question("id", text, (self.found["id"],)))
        players = self._choose_players(server, [each for each in numbers if each is not server])
        self.notes[players.name] = "players"
        self.found["columns"] = {**columns, "players": players.name}
        return [players]

    def _choose_server(
        self, times: _Times, texts: Sequence[_Column], numbers: Sequence[_Column]
    ) -> _Column | None:
        """Return the column of identifiers, if any. Otherwise the option `id` may be set."""
        if self.given.id is not None or "id" in self.given.columns:
            return self.columns.get(self.given.columns.get("id", ""))
        rows = _join_rows(self.sample.table, times.names)
        is_repeated = len({*rows}) < _ALMOST_ALL * len(rows)
        counts = min(numbers, key=lambda each: each.rank("players")).texts
        found = [each for each in texts if not _is_same(each, counts)]
        if not any(_is_key(each, rows) for each in found):
            # A numeric key is an identifier if its name suggests so or if times repeat.
            keys = [
                each
                for each in numbers
                if "id" in each.words.split() or (is_repeated and not each.is_metric)
            ]
            keys = [each for each in keys if _is_key(each, rows) and not each.is_constant]
            keys = [each for each in keys if len(each.distinct) < len(rows)]
            found += sorted(keys, key=lambda each: (each.rank("id"), len(each.distinct)))[:1]
        if not (is_repeated and found) and all(each.rank("id") == _UNKNOWN for each in found):
            # Map names vary over time; a server's name does not.
            found += [each for each in texts if each not in found and each.is_named("id")]
        if is_start := not found:
            # Rows sorted by server start with many rows of one server.
            found = [] if self.sample.is_whole else [*texts]
            found = found or [each for each in numbers if each.is_constant and each.is_named("id")]
        is_sure = is_repeated or any(each.is_named("id") for each in found)
        if not found or (not is_sure and self._is_wide(numbers)):
            return None
        found.sort(key=lambda each: (not _is_key(each, rows), each.rank("id")))
        best = found[0]
        names = [each.name for each in found]
        choices = [format_columns({"id": name}) for name in names]
        is_clear = len(found) == 1 and not best.is_number and _is_key(best, rows)
        if not is_sure:
            # The text may be a status or a map name of a single server.
            is_odd = not (is_start or _FEW <= len(best.distinct) <= _HALF * len(rows))
            choices.insert(0 if is_odd else len(choices), _SERIES + self._propose_id()[0])
        if not (is_sure and is_clear):
            self._ask_column("id", "names the server", names, choices)
        if choices[0].startswith(_SERIES):
            self.found["id"] = choices[0].removeprefix(_SERIES)
            return None
        return best

    def _ask_column(
        self, key: str, what: str, names: Sequence[str], choices: Sequence[str] | None = None
    ) -> None:
        few = [*names]
        if more := few[_MOST_NAMES:]:
            few[_MOST_NAMES:] = [_format_number(len(more), "other")]
        text = f"which column {what}: {' or '.join(filter(None, [', '.join(few[:-1]), few[-1]]))}"
        found = choices or [format_columns({key: name}) for name in names]
        self.of_columns.append(Question("columns", text, found))

    def _is_wide(self, numbers: Sequence[_Column]) -> bool:
        """Return whether each numeric column seems to be a server, judging by the names."""
        names = [each.name for each in numbers]
        numbers = [each for each in numbers if not each.is_limit(names)]
        metrics = sum(each.is_metric or len({*each.texts} - {"0"}) == 1 for each in numbers)
        is_given = "players" in self.given.columns
        return not is_given and len(numbers) > 1 and metrics < _HALF * len(numbers)

    def _take_wide(self, times: _Times, rest: Sequence[_Column]) -> list[_Column]:
        """Take all numeric columns as servers."""
        tables = [sample.table for _, sample in self.samples[1:]]
        more = {
            name: _Column(name, column)
            for table in tables
            for name, column in zip(table.names, table.columns, strict=True)
            if name and name not in self.columns
        }
        found = [*rest, *more.values()]
        given = self.given.wide.get("except", "")
        others = {*given.split("+")} - {""} or {
            each.name for each in found if each.distinct and not each.measure(_is_number)
        }
        if not self.given.wide.get("at"):
            all_names = [each.name for each in found]
            others |= {
                each.name
                for each in found
                if _IS_TOTAL.fullmatch(each.words) or each.is_limit(all_names)
            }
        servers = [each for each in rest if each.name not in others]
        if servers and all(_CLOCK.fullmatch(each.name) for each in servers):
            raise self._build_error("columns are times, but must be servers; transpose the table")
        self.notes |= {each.name: _ONE_EACH for each in servers}
        names = given or "+".join(each.name for each in found if each.name in others)
        self.found |= {
            "wide": {"at": "+".join(times.names)} | ({"except": names} if names else {}),
            "columns": {},
        }
        if self.found["wide"] != self.given.wide:
            rows = _join_rows(self.sample.table, times.names)
            odd = any(each.may_be_other for each in servers)
            self.is_sure_wide = not names and not odd and len({*rows}) == len(rows)
            text = f"whether these are servers: {_cut(', '.join(each.name for each in servers))}"
            self.of_columns.append(Question("wide", text, [format_columns(self.found["wide"])]))
        return servers

    def _choose_players(self, server: _Column | None, numbers: Sequence[_Column]) -> _Column:
        """Return the column of counts. Columns that are constant for each server are unlikely.

        Raises SourceError if no column has counts.
        """
        if given := self.given.columns.get("players"):
            return self.columns[given]
        if all(each.is_fixed and each.rank("players") == _UNKNOWN for each in numbers):
            raise self._build_error(
                "no column with counts found", "; name it with --columns players=NAME"
            )
        varying = [each for each in numbers if not each.is_constant]
        likely = [each for each in varying if server is None or not _is_fixed(each, server)]
        likely = [each for each in likely if not each.is_unlikely] or likely or [*numbers]
        likely.sort(key=lambda each: each.rank("players"))
        best = likely[0]
        is_odd = len(numbers) > 1 and best.rank("players") == _UNKNOWN
        if len(likely) > 1 or is_odd or best.is_unlikely:
            others = [each for each in varying if each not in likely]
            self._ask_column(
                "players", "has the counts", [each.name for each in (*likely, *others)]
            )
        return best

    def _propose_id(self) -> tuple[str, str]:
        """Propose an identifier for files without an identifier column, with a question text."""
        plain = [replace(source, mapping=ColumnMapping()) for source in self.sources]
        stems = [os.path.basename(source.server_id) for source in plain]
        folders = [os.path.basename(os.path.dirname(source.title)) for source in plain]
        if len(stems) == 1:
            return stems[0], "the name of the server"
        if len({*stems}) == 1 or (len({*folders}) > 1 and len({*stems}) < len(stems)):
            return "{folder}", "the server of each file: its folder's name"
        is_dated = all(re.search("[0-9]{4}", stem) for stem in stems)
        if is_dated and len({re.sub(r"[\W_0-9]", "", stem) for stem in stems}) == 1:
            common = re.sub(r"[\W_0-9]+\Z", "", stems[0]) or folders[0] or "server"
            return common, "the name of the server, whose parts the files seem to be"
        return "{file}", "the server of each file: its name"

    # Counts

    def _settle_counts(self, players: Sequence[_Column], times: _Times) -> None:
        """Determine the thousands separator, and whether counts must be rounded."""
        names = {each.name for each in players}
        # A row without a time may contain totals or averages.
        rows = [*map(_may_be_time, _join_rows(self.sample.table, times.names))]
        texts = {text.strip() for each in players for text in compress(each.texts, rows)}
        for _, sample in self.samples[1:]:
            columns = zip(sample.table.names, sample.table.columns, strict=True)
            texts |= {text.strip() for name, column in columns if name in names for text in column}
        odd = sorted(text for text in texts if not text.isdigit() and _is_number(text))
        thousands = self.given.thousands or self._find_thousands(odd)
        whole, rounded = (ColumnMapping(thousands=thousands, rounds=each) for each in (False, True))
        fractions = (text for text in odd if _read_count(whole, text) is None)
        fraction = next(
            (text for text in fractions if _read_count(rounded, text) is not None), None
        )
        if fraction and not self.given.round:
            self.found["round"] = True
            text = f"whether to round {fraction}: counts must be whole numbers"
            self.of_values.append(Question("round", text, ("yes",)))

    def _find_thousands(self, texts: Sequence[str]) -> str | None:
        """Return the thousands separator, if any, and add a question if it is ambiguous."""
        readings: dict[tuple[int | None, ...], str | None] = {}
        for each in (None, *THOUSANDS):
            mapping = ColumnMapping(thousands=each, rounds=True)
            readings.setdefault(tuple(_read_count(mapping, text) for text in texts), each)
        least = min(reading.count(None) for reading in readings)
        likely = [reading for reading in readings if reading.count(None) == least]
        likely.sort(key=lambda reading: -sum(filter(None, reading)))
        if self.given.round and None in map(readings.get, likely):
            return None
        if len(likely) > 1:
            differing = zip(texts, likely[0], likely[1], strict=True)
            text, first, second = next(each for each in differing if each[1] != each[2])
            choices = [readings[reading] or "round" for reading in likely]
            question = f"whether {text} is {first} or about {second}"
            self.of_values.append(Question("thousands", question, choices))
        chosen = readings[likely[0]]
        self.found |= {} if chosen is None else {"thousands": chosen}
        return chosen

    # Descriptions

    def _describe_sources(self) -> list[str]:
        rows = _format_number(len(self.sample.table.places), "row")
        width = _format_number(len(self.sample.table.names), "column")
        size = rows if self.sample.is_whole else f"more than {rows}"
        lines = [f"{self.source.title}: {self.sample.form}, {size}, {width}"]
        others, looked = len(self.sources) - 1, len(self.samples) - 1
        if others:
            some = f", of which {looked:,} were looked at" if looked < others else ""
            lines.append(f"and {_format_number(others, 'more file')}{some}")
        return lines

    def _try(self, options: MappingOptions) -> list[str]:
        """Describe what a build would keep of the first rows.

        Raises SourceError if it would keep nothing, or if a source lacks a column.
        """
        mapping = replace(options, time_zone=options.time_zone or "UTC").build_mapping()
        for source, sample in self.samples[1:]:
            try:
                find_columns(replace(source, mapping=mapping), sample.table.names)
            except SourceError as error:
                remedy = "or leave this file out, and add it with snapshot update and --columns"
                raise SourceError(f"{error}; {remedy}") from None
        source = replace(self.source, mapping=mapping, accepts_any_id=True)
        batch = convert_table(source, self.sample.table)
        kept, read = len(batch.players), len(batch.players) + batch.count_rejected()
        lines = [*_describe_rejects(source, batch)]
        known = [name for name in batch.names if name]
        if len(known) < len(batch.names):
            without = int((batch.codes == batch.names.index("")).sum())
            kept -= without
            lines.append(f"  {_format_number(without, 'count')} rejected: the server is empty")
        is_open = any(each.option == "time-format" for each in self.of_values)
        if not kept and not is_open and (lines or self.sample.is_whole):
            reason = lines[0].strip() if lines else "all counts are empty"
            raise SourceError(f"{source.title}: none of the first rows can be kept; {reason}")
        order = np.lexsort((batch.instants, batch.codes))
        steps = np.diff(batch.instants[order])[np.diff(batch.codes[order]) == 0]
        if repeated := int((steps == 0).sum()):
            repeats = _format_number(repeated, "row")
            lines.append(f"  {repeats} with a repeated server and time")
        number = len(self.sample.table.places)
        cells = number * [*self.notes.values()].count(_ONE_EACH)
        if read < _HALF * cells and not options.hold:
            lines.append("  most cells are empty: if the file has changes only, add --hold")
        rows = f"{'' if self.sample.is_whole else 'the first '}{_format_number(number, 'row')}"
        servers = _format_number(len(known), "server")
        counts = _format_number(read, "count")
        return [*lines, f"  keeps {kept:,} of {counts} of {servers} ({rows})"]


def _format_number(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _may_be_time(text: str) -> bool:
    return len(text) >= len("1.1.2026") and re.search("[0-9]", text) is not None


def _describe_form(form: str) -> str:
    return f"time, {form.replace('-', ' ')}" if form in _ORDERS else f"time as {form}"


def _measure(texts: Sequence[str], forms: Mapping[str, Any]) -> float:
    """Return the share of texts that are plausible times."""
    mapping = ColumnMapping(**forms)
    found = 0
    for text in texts:
        with suppress(RowError):
            found += _EARLIEST <= mapping.parse_time(text) < _LATEST
    return found / max(len(texts), 1)


def _order_forms(texts: Sequence[str]) -> tuple[Sequence[str], bool]:
    """Return the orders of day and month, the likelier one first, and whether it is certain."""
    found = [match for text in texts if (match := _PARTS.match(text))]
    parts = [(int(match[1]), int(match[3])) for match in found]
    is_day = found[0][2] == "." or any(first > _MONTHS for first, _ in parts)
    if is_day or any(second > _MONTHS for _, second in parts):
        return (_ORDERS if is_day else _ORDERS[::-1]), True
    is_month = any(re.search("[AaPp][Mm]", text) for text in texts[:_FEW])
    return (_ORDERS[::-1] if is_month else _ORDERS), False


def _read_count(mapping: ColumnMapping, text: str) -> int | None:
    try:
        return mapping.parse_count(text)
    except RowError:
        return None


def _is_same(column: _Column, counts: Sequence[str]) -> bool:
    """Return whether a column is constant in all rows with a count, such as a record type."""
    rows = zip(column.texts, counts, strict=True)
    return _Column(column.name, [text for text, count in rows if count.strip()]).is_constant


def _is_key(column: _Column, times: Sequence[str]) -> bool:
    """Return whether value and time together identify nearly every row."""
    return len({*zip(column.texts, times, strict=True)}) >= _ALMOST_ALL * len(times)


def _is_part(texts: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether each text is a proper substring of the other text in its row."""
    pairs = zip(texts, others, strict=True)
    return all(text in other and len(text) < len(other) for text, other in pairs)


def _is_fixed(column: _Column, server: _Column) -> bool:
    """Return whether each server has a single number, although some servers have several rows."""
    servers = len({*server.texts})
    pairs = len({*zip(server.texts, column.texts, strict=True)})
    return pairs == servers < len(server.texts)


def _describe_rejects(source: Source, batch: Batch) -> Iterable[str]:
    numbers: Counter[str] = Counter()
    firsts: dict[str, str] = {}
    for reject in batch.rejects:
        numbers[reject.reason] += reject.rows
        place = source.format_place(reject.place).removeprefix(f"{source.title}, ")
        firsts.setdefault(reject.reason, f"{wire.quote_value(reject.cut_value())} in {place}")
    for reason, number in numbers.most_common():
        yield f"  {_format_number(number, 'count')} rejected, such as {firsts[reason]}: {reason}"


_MOST_LINES = 12
_ROOM = 36
_ONE_EACH = "one server each"


def _format_columns(columns: Mapping[str, _Column], notes: Mapping[str, str]) -> list[str]:
    """Return one line per column, used columns first, and one for all servers of a wide file."""
    single = [name for name in columns if name and notes.get(name) != _ONE_EACH]
    single.sort(key=lambda name: name not in notes)
    rows = [
        (_cut(name), _cut(columns[name].example), notes.get(name, "not used"))
        for name in single[:_MOST_LINES]
    ]
    if servers := [name for name in columns if notes.get(name) == _ONE_EACH]:
        examples = ", ".join(columns[name].example or '""' for name in servers[:_FEW])
        note = _ONE_EACH if len(servers) < _FEW else f"{_ONE_EACH} ({len(servers):,} columns)"
        rows.append((_cut(", ".join(servers)), _cut(examples), note))
    widths = [max(map(_count_cells, column)) for column in zip(*rows, strict=True)]
    lines = [
        f"  {_pad(name, widths[0])} {_pad(example, widths[1])} → {note}"
        for name, example, note in rows
    ]
    if others := single[_MOST_LINES:]:
        lines.append(f"  and {len(others):,} more columns, not used")
    return lines


def _cut(text: str, room: int = _ROOM) -> str:
    """Shorten a text to fit into a line, with control characters escaped."""
    text = text[: 2 * room]
    text = text if text.isprintable() else wire.quote_value(text)[1:-1]
    while _count_cells(text) > room:
        text = text[: -2 if text.endswith("…") else -1] + "…"
    return text


def _pad(text: str, width: int) -> str:
    return text + " " * (width - _count_cells(text))


def _count_cells(text: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(each) in "WF") for each in text)
