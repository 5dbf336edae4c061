"""Complete the options for reading files: propose them, ask the user, or print the command."""

import os
import shlex
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import typer

from srvstat.cli.output import STDERR, is_ascii_only, report
from srvstat.cli.sources import SourceOptions, Sources
from srvstat.contract import wire
from srvstat.contract.errors import SourceError
from srvstat.contract.time import load_zone
from srvstat.files.reading import STDIN, format_title, is_url
from srvstat.sources.mapping import STRICT, MappingOptions, format_columns, list_options
from srvstat.sources.proposal import Proposal, Question, answer, propose
from srvstat.sources.registry import KINDS
from srvstat.sources.source import Source

_BLANKS = {"time-zone": "ZONE", "time-format": "FORMAT"}
"""Placeholders for values that the user must supply; default NAME."""

_LAYOUT = ("columns", "wide", "id", "input_table")
"""The options that depend on a file's columns, as attributes of MappingOptions."""


@dataclass(frozen=True)
class Command:
    """A command to propose.

    - `words`: the words before the sources' names, without `srvstat`.
    - `others`: additional options by parameter name.
    - `path`: the snapshot to update.
    - `remembered`: mapping options that the snapshot stores, so that the command can omit them.
    """

    words: Sequence[str]
    sources: SourceOptions
    others: Mapping[str, Any]
    path: str = ""
    remembered: MappingOptions = field(default_factory=MappingOptions)

    def format(self, options: MappingOptions, blanks: Iterable[str] = ()) -> str:
        """Return the command with the options of a mapping, and with placeholders for `blanks`.

        It contains no secrets: neither a URL's password nor a query.
        """
        given = self.sources
        names = [*(given.files or ()), *(given.observations or ())]
        known = list_options(self.remembered)
        found = {
            "servers": given.servers and _format_name(given.servers),
            "input_format": given.input_format,
            "query": given.query and "…",
            "save_mapping": given.save_mapping,
            **self.others,
            **{
                name: each
                for name, each in list_options(options).items()
                if each != known.get(name)
            },
            **{name: _BLANKS.get(name, "NAME") for name in blanks},
        }
        words = ["srvstat", *self.words, *map(_format_name, names)]
        return " ".join([*map(_quote, words), *_format_options(found)])


def _format_options(options: Mapping[str, Any]) -> Iterable[str]:
    """Yield the options that are set, quoted for a shell."""
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        written = format_columns(value) if isinstance(value, Mapping) else value
        if value:
            yield option if value is True else f"{option} {_quote(str(written))}"


def _format_name(name: str) -> str:
    if name == STDIN:
        return name
    title = format_title(name)
    return f"./{title}" if title.startswith("-") else title


def _quote(word: str) -> str:
    """Quote a word for a shell. Escapes characters that a terminal would not show unchanged."""
    if word.isprintable() and (word.isascii() or not is_ascii_only()):
        return shlex.quote(word)
    escaped = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b"\\'" else f"\\x{byte:02x}"  # noqa: PLR2004 - printable ASCII
        for byte in word.encode("utf-8", "surrogateescape")
    )
    return f"$'{escaped}'"


def settle(sources: Sources, command: Command, *, quiet: bool) -> Sources:
    """Complete the options of sources from their files.

    If something is ambiguous, ask on a terminal. Elsewhere, report the proposal and the command to
    run, and raise typer.Exit.

    Raises SourceError if a file can't be read with the given options.
    """
    samples = [source for source in sources.inputs.observations if _has_sample(source)]
    if not samples:
        return _apply(sources, sources.options, command, sources.options)
    given, answered = sources.options, list[Question]()
    proposal = _propose(samples, given, command)
    if proposal.questions or (proposal.options != given and not quiet):
        report(*proposal.lines)
    while questions := [each for each in proposal.questions if each not in answered]:
        if quiet or not (os.isatty(0) and os.isatty(STDERR)):
            raise _refuse(command, proposal.options, questions)
        try:
            found = _ask_all(proposal, questions, given)
            proposal = propose(samples, found)
        except EOFError:
            report("")
            raise _refuse(command, proposal.options, questions) from None
        except SourceError as error:
            report(error.reason)
        else:
            given = found
            answered += questions
    if answered:
        report("To skip these questions next time:", f"  {command.format(proposal.options)}")
    return _apply(sources, proposal.options, command, given)


def _has_sample(source: Source) -> bool:
    """Return whether the first rows of a source can be read without reading all of them."""
    kind = KINDS[source.kind]
    if kind.sample is None or kind.is_fixed:
        return False
    if source.is_in_memory or is_url(source.name) or source.kind == "postgresql":
        return True
    with suppress(OSError, ValueError):
        return source.name != STDIN and stat.S_ISREG(os.stat(source.name).st_mode)
    return False


def _propose(samples: Sequence[Source], given: MappingOptions, command: Command) -> Proposal:
    """Propose options for the sources.

    If the remembered options of a snapshot don't fit the files, proposes options without them.
    Unless the files have our own form, reports this and raises typer.Exit.
    """
    try:
        return propose(samples, given)
    except SourceError as error:
        known = {name: getattr(command.remembered, name) for name in _LAYOUT}
        unfit = {name: value for name, value in known.items() if value == getattr(given, name)}
        if not any(unfit.values()):
            raise
        unread = error.reason
    empty = MappingOptions()
    others = replace(given, **{name: getattr(empty, name) for name in unfit})
    if unfit.get("wide") and not _has_servers(samples, others):
        others = replace(others, wide={"at": ""})
    found = propose(samples, others)
    if not found.questions and propose(samples, empty).options.build_mapping() is STRICT:
        return Proposal([], empty, [])
    expected = " ".join(_format_options(list_options(replace(empty, **unfit))))
    report(f"{unread}; {command.path} was built with {expected}", *found.lines)
    raise _refuse(command, found.options, found.questions)


def _has_servers(samples: Sequence[Source], options: MappingOptions) -> bool:
    """Return whether the files have a column of server identifiers."""
    with suppress(SourceError):
        return propose(samples, options).options.id is None
    return False


def _refuse(command: Command, options: MappingOptions, questions: Sequence[Question]) -> typer.Exit:
    """Report the command to run, and return the Exit to raise."""
    if questions:
        report(f"unclear: {'; '.join(each.text for each in questions)}")
    blanks = [question.option for question in questions if not question.choices]
    report("nothing written; check the options and run:", f"  {command.format(options, blanks)}")
    return typer.Exit(2)


def _apply(
    sources: Sources, options: MappingOptions, command: Command, given: MappingOptions
) -> Sources:
    """Return the sources with these options, which the snapshot stores.

    An update stores only explicitly given options.
    """
    mapping = options.build_mapping()
    observations = [
        source if KINDS[source.kind].is_fixed else replace(source, mapping=mapping)
        for source in sources.inputs.observations
    ]
    stored = given if command.path else options
    reading = wire.encode(list_options(stored)).decode()
    inputs = replace(sources.inputs, observations=observations, reading=reading)
    return sources._replace(inputs=inputs, options=options)


def _ask_all(
    proposal: Proposal, questions: Sequence[Question], given: MappingOptions
) -> MappingOptions:
    """Ask all questions, and return the options with the answers.

    Unless the user chooses other columns, all proposed options count as given.

    Raises EOFError if the input ends.
    """
    answers = [(question, _ask(question)) for question in questions]
    is_changed = any(
        question.option in _LAYOUT and value != question.choices[0] for question, value in answers
    )
    options = given if is_changed else proposal.options
    for question, value in answers:
        options = answer(options, question, value)
    return options


def _ask(question: Question) -> str:
    """Ask until the answer is valid. Raises EOFError if the input ends."""
    text, default = question.text, _find_default(question)
    if len(question.choices) > 1:
        report(text, *(f"  {number}  {each}" for number, each in enumerate(question.choices, 1)))
        text = "answer"
    while True:
        report(f"{text}{default and f' [{default}]'}: ", end="")
        line = os.read(0, 1 << 12)
        if not line:
            raise EOFError
        value = line.decode("utf-8", "replace").strip() or default
        if value.isdecimal() and 1 <= int(value) <= len(question.choices) > 1:
            value = question.choices[int(value) - 1]
        try:
            answer(MappingOptions(), question, value)
        except ValueError as error:
            quoted = wire.quote_value(value)
            report(str(error) if quoted in str(error) else f"{quoted}: {error}")
        else:
            return value


def _find_default(question: Question) -> str:
    """Return the most likely answer. For a time zone, this is the machine's zone."""
    if question.choices:
        return question.choices[0]
    if question.option == "time-zone":
        local = os.path.realpath("/etc/localtime").partition("/zoneinfo/")[2]
        for zone in (os.environ.get("TZ", ""), local):
            with suppress(ValueError):
                load_zone(zone)
                return zone
    return ""
