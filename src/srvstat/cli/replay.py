"""The commands `replay`, which responds to recorded requests again and compares, and `when`.

`when` finds the times at which given numbers were correct.
"""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, islice
from typing import Annotated, get_args

from srvstat.analysis.parameters import By, Parameter
from srvstat.cli import options
from srvstat.cli.output import Form, Outcome, PlainForm, create_screen, report, show
from srvstat.contract import wire
from srvstat.contract.errors import DifferenceError, ParameterError, UsageError
from srvstat.contract.requests import parse_range
from srvstat.contract.windows import DAY_MS, DEFAULT_RANGE, find_window
from srvstat.documents.support import FIGURES, ExchangeClass, Figure, Replay, ReplayedExchange
from srvstat.files.reading import STDIN
from srvstat.operations.access import Access, Plan, read_access
from srvstat.operations.answers import check_coverage
from srvstat.render.text import (
    format_apart,
    format_count,
    format_exact_duration,
    format_time,
    format_whole_minutes,
)
from srvstat.support.comparing import EXACT
from srvstat.support.recognition import read_recording
from srvstat.support.replay import AtRule, ReplaySettings, count_classes
from srvstat.support.replay import replay as replay_exchanges

_AT_RULES: tuple[AtRule, ...] = get_args(AtRule)
_SECOND = 1_000
_MOST_CHARACTERS = 40
_UNITS = {"m": 60_000, "h": 3_600_000, "d": DAY_MS}
_LATER_REMEDY = (
    "; use --at snapshot if the service answered from this snapshot, or --at search to find when"
    " the responses were right"
)
_COMPARE = "[PREFIX]/gateway/v1/compare or [PREFIX]/gateway/v1/servers/ID"
_NEAR = re.compile(r"/gateway/|/compare\b|/servers/")
_DURATION = re.compile(r"([0-9]{1,6})([mhd])")
_TOLERANCE = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?")


@dataclass(frozen=True)
class ComparisonOptions:
    """The replay time and the numeric tolerance."""

    panel = "Comparison"

    at: Annotated[
        str | None,
        Parameter(
            "Answer as of the recorded time (recorded), the end of the snapshot (snapshot), any"
            " time at which the response matches (search), or TIME [default: recorded].",
            "|".join((*_AT_RULES, "TIME")),
            completes=_AT_RULES,
        ),
    ] = None
    within: Annotated[
        str | None,
        Parameter(
            "How far back from each request --at search looks, such as 90m, 12h or 2d; it also"
            " looks an hour ahead [default: 2d].",
            "DURATION",
        ),
    ] = None
    tolerance: Annotated[
        str | None, Parameter("Treat numbers up to NUMBER apart as equal [default: 0].", "NUMBER")
    ] = None

    def parse_at(self) -> AtRule | int:
        """Return the rule or the time of --at. Raises UsageError if it is neither."""
        for rule in _AT_RULES:
            if self.at == rule:
                return rule
        try:
            instant = options.parse_instant_option("--at", self.at)
        except ParameterError as error:
            reason = error.describe("--{}".format)
            raise UsageError(f"{reason}, or recorded, snapshot or search") from None
        return "recorded" if instant is None else instant

    def parse_within(self, rule: AtRule | int) -> int:
        """Return the duration of --within in milliseconds.

        Raises ParameterError if it is invalid.
        """
        if self.within is not None and rule != "search":
            raise ParameterError("{within} requires {at} search")
        match = _DURATION.fullmatch("2d" if self.within is None else self.within)
        if match is None:
            raise ParameterError(
                "{within}: must be a number of minutes, hours or days, such as 90m or 2d"
            )
        return int(match[1]) * _UNITS[match[2]]

    def parse_tolerance(self) -> Decimal:
        """Return the number of --tolerance. Raises ParameterError if it is invalid."""
        if self.tolerance is None:
            return EXACT
        if not _TOLERANCE.fullmatch(self.tolerance):
            raise ParameterError("{tolerance}: must be a number of at least 0, such as 0.01")
        return Decimal(self.tolerance)


@dataclass(frozen=True)
class ExchangeOptions:
    """Filters for requests and exchanges."""

    panel = "Requests"

    prefix: Annotated[
        str | None,
        Parameter(
            "The path prefix that a proxy adds before /gateway/v1 [default: the first prefix"
            " found].",
            "PATH",
        ),
    ] = None
    request_id: Annotated[
        str | None,
        Parameter("Only the request with this X-Request-Id.", "ID", ("--request-id", "--id")),
    ] = None
    server: Annotated[str | None, Parameter("Only requests about this server.", "IDENTIFIER")] = (
        None
    )
    only: Annotated[
        ExchangeClass | None,
        Parameter("Show only requests with this result. The summary still counts all.", "RESULT"),
    ] = None

    def encode_prefix(self) -> bytes | None:
        """Return the prefix as it appears in paths."""
        return None if self.prefix is None else os.fsencode(f"/{self.prefix.strip('/')}")

    def select(self, document: Replay) -> Replay:
        """Return a document with only the exchanges of the given request or server.

        Raises ParameterError if there are none.
        """
        if self.request_id is None and self.server is None:
            return document
        exchanges = tuple(one for one in document.exchanges if self._is_wanted(one))
        if not exchanges:
            what, value = "{server}: no request is about", self.server
            if value is None:
                what, value = "{request_id}: no request has the id", self.request_id
            raise ParameterError(f"{what} {wire.quote_value(value)}")
        return document.model_copy(
            update={"exchanges": exchanges, "counts": count_classes(exchanges)}
        )

    def _is_wanted(self, exchange: ReplayedExchange) -> bool:
        names = exchange.request.servers if exchange.request else ()
        is_of_server = any(self.server in {name, name.partition(":")[2]} for name in names)
        is_same = self.request_id in {None, exchange.request_id}
        return is_same and (self.server is None or is_of_server)


_Recordings = Annotated[
    list[str],
    Parameter(
        "A file that a customer sent: HAR; curl, PowerShell, fetch or Python calls, with or without"
        " responses; a Postman collection; the JSON of one response; or the log or a recording of"
        " `serve`. It may be compressed. - is standard input.",
        "RECORDING",
        is_argument=True,
    ),
]


def replay(
    recordings: _Recordings,
    form: PlainForm,
    comparison: ComparisonOptions,
    wanted: ExchangeOptions,
    plan: options.PlanOption = None,
    access: Annotated[
        options.AccessOption, "The access file. A request's recorded key or plan selects its plan."
    ] = None,
    explain: options.ExplainOption = False,
    snapshot: options.SnapshotOption = None,
) -> Outcome:
    """Replay recorded requests and compare.

    Answer each request from the snapshot, and compare with the recorded response. Exit with 5 if a
    value differs, part of a recording can't be read, or no request belongs to the API.

    Example: srvstat replay customer.har
    """
    chosen = form.choose()
    if recordings.count(STDIN) > 1:
        raise UsageError(f"RECORDING: {STDIN}, standard input, can be given only once")
    rule = comparison.parse_at()
    settings = ReplaySettings(
        rule,
        comparison.parse_within(rule),
        comparison.parse_tolerance(),
        *_read_plan(plan, access),
        explain,
        wanted.encode_prefix(),
    )
    exchanges = chain.from_iterable(map(read_recording, recordings))
    first = list(islice(exchanges, 1))  # a missing recording is reported before a missing snapshot
    with options.open_chosen(snapshot) as file:
        document = wanted.select(replay_exchanges(file, chain(first, exchanges), settings))
    _warn_of_later_instants(document, rule)
    if rule == "search" and not any(each.searched for each in document.exchanges):
        report("warning: --at search: no recorded response to look for; curl -i records one")
    is_foreign = _report_foreign(document.exchanges)
    is_different = is_foreign or document.counts.differs > 0 or document.counts.unreadable > 0
    kept = [one for one in document.exchanges if wanted.only in {None, one.class_}]
    shown = document.model_copy(update={"exchanges": tuple(kept)})
    outcome = show(shown, chosen, exit_code=DifferenceError.exit_code if is_different else 0)
    if chosen is not Form.TABLE:
        return outcome
    named = {**vars(wanted), **vars(comparison), "plan": plan, "access": access}
    given = {f"--{name.replace('_', '-')}": value for name, value in named.items()} | {
        "--snapshot": snapshot
    }
    finding, next_step = _advise(document, given, recordings, is_explained=explain)
    # Imported here, because only tables need Rich.
    from srvstat.render.tables.support import render_advice  # noqa: PLC0415

    advice = render_advice(finding, shlex.join(next_step), create_screen())
    return outcome._replace(pieces=[*outcome.pieces, advice.encode("utf-8")])


def _read_plan(plan: str | None, access: str | None) -> tuple[Plan | None, Access | None]:
    """Return the chosen plan and the access file, or None.

    Raises ParameterError for a missing file.
    """
    if plan is not None and access is None:
        raise ParameterError("{plan} requires {access} FILE")
    permissions = None if access is None else read_access(access)
    return None if plan is None or permissions is None else permissions.get_plan(plan), permissions


def _advise(
    document: Replay,
    given: Mapping[str, str | None],
    recordings: Sequence[str],
    *,
    is_explained: bool,
) -> tuple[str, list[str]]:
    """Return the verdict, the next step and its command."""
    wrong = [one for one in document.exchanges if one.class_ == "differs"]
    is_searched = any(one.searched is not None for one in document.exchanges)
    count = document.counts.match + len(wrong)
    options_to_add: dict[str, str] = {}
    step = "Show where the numbers come from"
    finding = describe_finding(document)
    if any(one.request and one.request.range for one in wrong) and not is_searched:
        step, options_to_add = "Find when the numbers were right", {"--at": "search"}
    elif any(one.true_during == () for one in wrong) and given["--within"] is None:
        step, options_to_add = "Search further back", {"--at": "search", "--within": "30d"}
    elif is_explained or not count + document.counts.unrecorded:
        explained = [one.explanation for one in document.exchanges if one.explanation]
        if not explained:
            return f"{finding}.", []
        named = [word for name in recordings for word in ("--for", name)]
        bundle = ["srvstat", "snapshot", "bundle", *named]
        at = [] if given["--snapshot"] is None else ["--snapshot", given["--snapshot"]]
        return f"{finding}. Pack the case for others:", [*bundle, *at, "-o", "case.db"]
    merged = {**given, **options_to_add}
    words = [word for name, value in merged.items() if value is not None for word in (name, value)]
    if is_explained or not options_to_add:
        words.append("--explain")
    return f"{finding}. {step}:", ["srvstat", "replay", *recordings, *words]


def describe_finding(document: Replay) -> str:
    """Return a one-sentence verdict, without the full stop, for a reply to the customer."""
    compared = [one for one in document.exchanges if one.class_ in {"match", "differs"}]
    if not compared:
        return "Nothing to compare: no usable responses; use srvstat when to date numbers"
    verdicts: dict[str, list[str]] = {}
    for one in compared:
        kind, words = _judge(one, document)
        verdicts.setdefault(kind, []).append(words)
    parts: list[str] = []
    for kind in [kind for kind in _VERBS if kind in verdicts and kind != "right"] or ["right"]:
        said = verdicts[kind]
        words = said[0] if len({*said}) == 1 else f"{said[0]}, and others"
        of_all = f" of {format_count(len(compared), 'recorded response')}" if not parts else ""
        subject = "The recorded response" if len(compared) == 1 else f"{len(said):,}{of_all}"
        parts.append(f"{subject} {_VERBS[kind][len(said) > 1]}{words}")
    return "; ".join(parts)


_VERBS = {
    "wrong": ("was never right ", "were never right "),
    "other": ("differs: ", "differ: "),
    "stale": ("was ", "were "),
    "right": ("is ", "are "),
}
"""The beginnings of verdicts on one exchange and on several, the worst first."""


def _judge(one: ReplayedExchange, document: Replay) -> tuple[str, str]:
    """Return the kind of a verdict on a compared exchange, and its words."""
    late = one.find_lateness()
    if late:
        how = format_whole_minutes(max(abs(late), _SECOND))
        if late > 0:
            return "stale", f"stale by {how}, but otherwise right"
        return "stale", f"right at least {how} later: a slow clock, or a response from other data"
    if one.class_ == "match" or one.true_during:
        return "right", _describe_right(one, document)
    value = next(each for each in one.differences if each.class_ == "value")
    if not value.pointer:
        return "other", "the recorded body is not JSON"
    both = (value.recorded, value.recomputed)
    sides = format_apart([wire.encode(each).decode() for each in both])
    if value.absent_in is not None:
        is_ours = value.absent_in == "recomputed"
        sides[is_ours] = "nothing" if is_ours else "missing"
    field = value.pointer.rpartition("/")[2]
    words = f"{field} " + " where the data give ".join(map(_cut, sides))
    if one.searched is None:
        return "other", words
    length = format_exact_duration((one.searched_around or document.as_of) - one.searched.from_)
    return "wrong", f"within {length}: {words}"


def _describe_right(one: ReplayedExchange, document: Replay) -> str:
    late = (one.requested_at or 0) - (one.answered_at or 0) if one.clock == "service" else 0
    if late > _SECOND and one.answered_at is not None:
        how = format_whole_minutes(late)
        return f"right at its Date, {how} before the request: a fast clock, or a cache"
    is_undated = one.requested_at is one.answered_at is None and one.as_of == document.as_of
    return "right at the end of the snapshot" if is_undated else "right"


def _cut(value: str) -> str:
    return value if len(value) <= _MOST_CHARACTERS else f"{value[:_MOST_CHARACTERS]}…"


def _report_foreign(exchanges: Sequence[ReplayedExchange]) -> bool:
    """If no request belongs to the API, report the most similar request and return True."""
    if not exchanges or any(one.class_ != "foreign" for one in exchanges):
        return False
    near = next((one for one in exchanges if _NEAR.search(one.path or "")), None)
    nearest = "" if near is None else f"; the nearest is {near.method} {near.path}"
    if near is not None:
        nearest += f": {near.reason}" if near.reason else f"; a path of the API is {_COMPARE}"
    report(f"error: no request to this API{nearest}")
    return True


def _warn_of_later_instants(document: Replay, rule: AtRule | int) -> None:
    """Warn about requests that are later than the snapshot's data."""
    end = document.as_of
    instants = [
        exchange.searched.to if exchange.searched else exchange.as_of
        for exchange in document.exchanges
    ]
    later = sum(at is not None and at > end for at in instants)
    if later:
        remedy = _LATER_REMEDY if rule == "recorded" else ""
        report(
            f"warning: {format_count(later, 'response')} for a time later than the snapshot,"
            f" which ends {format_time(end)}{remedy}"
        )
    moved = sum(
        exchange.searched is not None
        and exchange.searched.to < (exchange.answered_at or exchange.requested_at or 0)
        for exchange in document.exchanges
    )
    if moved:
        report(
            f"warning: {format_count(moved, 'request')} more than --within later than the snapshot,"
            f" which ends {format_time(end)}; searched up to the recorded as-of time, or up to the"
            " end of the snapshot"
        )


_WANTED = re.compile(
    r"(?P<name>[A-Za-z.]+)=(?P<value>[+-]?[0-9]{1,15}(?:\.(?P<digits>[0-9]{1,20}))?)"
    r"(?: ?(?P<percent>%))?"
    r"(?:(?:±|\+-|\+/-)(?P<tolerance>[0-9]{1,15}(?:\.[0-9]{1,9})?))?"
)
_ROUNDED = ("average", "percentage", "median")
_NAMES = {"mean": "average", "avg": "average", "count": "samples", "samplecount": "samples"}
_NAMES |= {"growth.players": "growth", "growth.percentage": "percentage"}
"""Other names of statistics, besides the API's names such as medianPlayers."""


def when(
    figures: Annotated[
        list[str],
        Parameter(
            "A server, followed by its numbers: average, median, peak, lowest, growth, percentage"
            " or samples, such as average=15.62 or average=15.6±0.1.",
            "IDENTIFIER|NAME=VALUE",
            is_argument=True,
        ),
    ],
    form: PlainForm,
    range: Annotated[str, options.RANGE, "The range of the numbers."] = DEFAULT_RANGE,
    by: By = None,
    snapshot: options.SnapshotOption = None,
) -> Outcome:
    """Find when the API returned given numbers.

    Find when the API would have returned all of the numbers in a screenshot or email, or the
    closest match. Numbers may be rounded: 15.62 matches values from 15.615 to
    15.625. Exit with 5 if there is no match.

    Example: srvstat when harbor-city median=113 average=115.31 --range 7d
    """
    chosen, length = form.choose(), parse_range(range)
    wanted = _parse_wanted(figures)
    # Imported here, because they import numpy, which `replay` rarely needs.
    from srvstat.analysis.selection import build_references, find_references  # noqa: PLC0415
    from srvstat.support import search  # noqa: PLC0415

    with options.open_chosen(snapshot) as file:
        check_coverage(file, find_window(length, file.as_of))
        servers = find_references(file, build_references([*wanted], by))
        document = search.find_when(file, servers, length, [*wanted.values()])
    is_true = bool(document.true_during)
    return show(document, chosen, exit_code=0 if is_true else DifferenceError.exit_code)


def _parse_wanted(words: Sequence[str]) -> dict[str, list[Figure]]:
    """Return the wanted statistics of each server. Raises UsageError if a word is invalid."""
    wanted: dict[str, list[Figure]] = {}
    for word in words:
        if "=" not in word:
            wanted.setdefault(word, [])
        elif not wanted:
            raise UsageError(f"{word}: no server before it; write, for example, harbor-city {word}")
        else:
            [*wanted.values()][-1].append(_parse_figure(word))
    for name, figures in wanted.items():
        if not figures:
            if os.path.isfile(name):
                raise UsageError(f"{name}: a file, not a server; use srvstat replay {name}")
            raise UsageError(f"{name}: no number given; add one, such as median=113")
    return wanted


def _parse_figure(word: str) -> Figure:
    match = _WANTED.fullmatch(word)
    given = word.partition("=")[0].lower()
    figure = _NAMES.get(given, given.removesuffix("players"))
    # A growth in %, or with decimals, is the percentage. No other number may have a % sign.
    is_share = match is not None and (match["percent"] or match["digits"])
    figure = "percentage" if figure == "growth" and is_share else figure
    if figure not in FIGURES:
        name = wire.quote_value(given)
        raise UsageError(f"{word}: no statistic {name}; use one of {', '.join(FIGURES)}")
    if match is None:
        raise UsageError(
            f"{word}: not a number; write digits with a decimal point, such as {given}=1000.5"
        )
    # A rounded number differs from the exact one by at most half a unit of its last digit.
    half = 0.5 * 10.0 ** -len(match["digits"] or "") if figure in _ROUNDED else 0.0
    tolerance = half if match["tolerance"] is None else float(match["tolerance"])
    return Figure(figure=figure, value=float(match["value"]), tolerance=tolerance)
