"""Find hints: the probable intention behind a mistake on the command line."""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from difflib import get_close_matches
from itertools import islice, product
from typing import Any

from srvstat.analysis import selection
from srvstat.cli.output import report
from srvstat.contract import read_package_file, wire
from srvstat.contract.errors import ApiError, InvalidRequestError, SrvstatError
from srvstat.contract.requests import NAMESPACES, Namespace, ServerReference, build_server_reference
from srvstat.contract.windows import DAYS
from srvstat.documents.document import remove_color_codes
from srvstat.operations.answers import UnknownServerError
from srvstat.snapshot.read.snapshot import Snapshot, open_snapshot
from srvstat.snapshot.rows import ServerRow

_MAX_COMPARED_CHARACTERS = 12_000
"""The maximum number of characters compared for hints (about 20 ms)."""

_MAX_SEARCHED_SERVERS = 10_000
"""The maximum number of servers read for hints (about 0.1 s)."""

_LEAST_SEARCHED = 3
"""The minimum length of text for suggesting servers that contain it. Shorter texts match too
many.
"""

_MAX_SUGGESTED = 5
_MAX_LISTED = 10


_SIMILAR = 0.75

_LIKELY = ("stats", "history", "compare", "top")
"""Commands searched for an option that the current command lacks."""

_INVALID = re.compile(r"^Invalid value for '([^']*)'[^:]*: ")
_KINDS = {"valid boolean": "true or false", "valid integer": "a whole number"}
_EXAMPLE = re.compile(r'such as (?:[^\s,;"]+"[^"]*"|[^\s,;\]]+[^\s,;\].])')
_SEVERAL = re.compile(r"[\w:-]+(,[\w:-]+)+", re.ASCII)
_PLAIN = re.compile(r"[\w:-]{1,40}", re.ASCII)


def explain_usage_error(error: Any, words: Sequence[str]) -> list[str]:
    """Return the lines of a Typer usage error: the problem with a remedy, and a reference to help.

    `words`: the words of the command line.
    """
    # Without pydantic's prefix.
    text = " ".join(error.format_message().replace("Value error, ", "").split())
    context = error.ctx
    path, root = context.command_path, context.find_root()
    if hasattr(error, "possibilities"):
        name = error.option_name
        remedy = _find_option(name, context, root, words)
        text = f"no option {name}{remedy and f'; {remedy}'}"
    elif hasattr(error, "option_name"):
        text = _explain_option_value(error.option_name, context.command, text)
    elif unknown := re.match("No such command '([^']*)'", text):
        remedy = _find_command(unknown[1], context.command, root.command)
        text = f'no command "{unknown[1]}"{remedy and f"; did you mean {path} {remedy}?"}'
    elif extra := re.match(r"Got unexpected extra argument\(?s?\)? \((.*)\)", text):
        several = shlex.join(["srvstat", "compare", *words[1:]])
        remedy = f"; get takes one server; use {several}" if path == "srvstat get" else ""
        text = f"unexpected argument {' '.join(map(wire.quote_value, extra[1].split()))}{remedy}"
    elif missing := re.match("Missing (?:argument|option) '([^']*)'", text):
        value = error.param.metavar if missing[1].startswith("-") else ""
        text = f"{' '.join(filter(None, (missing[1], value)))} is required"
    elif invalid := _INVALID.match(text):
        source = context.get_parameter_source(error.param.name)
        is_variable = source is not None and source.name == "ENVIRONMENT"
        name = error.param.envvar if is_variable else invalid[1]
        text = _explain_invalid_value(name, error.param, text[invalid.end() :])
    return [f"error: {text}", f"see {path} --help"]


def _explain_option_value(name: str, command: Any, problem: str) -> str:
    """Explain that an option lacks its value, or has a value although it takes none."""
    if "requires" not in problem:
        return f"{name} takes no value"
    named = [(one, one.opts) for one in command.params] + command.other_names
    option = next(one for one, names in named if name in names)
    example = _EXAMPLE.search(option.help)
    return f"{name} needs a value{f', {example[0]}' if example else f': {name} {option.metavar}'}"


def _explain_invalid_value(name: str, parameter: Any, problem: str) -> str:
    """Describe a value that Typer or pydantic refuses, in the words of srvstat."""
    if choice := re.fullmatch("'(.*)'( is not one of .*)[.]", problem):
        return f"{name}: {wire.quote_value(choice[1])}" + choice[2].replace("'", "")
    low, high = parameter.min, parameter.max
    limits = f"at least {low}" if high is None else f"from {low} to {high}"
    return f"{name}: must be {next((_KINDS[one] for one in _KINDS if one in problem), limits)}"


def _find_option(name: str, context: Any, root: Any, words: Sequence[str]) -> str:
    """Return a remedy for an unknown option, or empty text if there is none."""
    if hasattr(context.command, "commands"):
        if near := get_close_matches(
            name, ["--help", *_list_options(context.command)], 1, _SIMILAR
        ):
            return f"did you mean {near[0]}?"
        command = next((word for word in words if word in context.command.commands), "COMMAND")
        return f"options follow the command: {context.command_path} {command} {name}"
    if context.command_path == "srvstat today" and name in {"--at", "--to"}:
        return "today always reports the end of the snapshot"
    wanted = _read_intents().get(name, name)
    first, own = wanted.split()[0], _list_options(context.command)
    if first in own:
        return f"did you mean {wanted}?"
    if context.parent is root:
        for other in _LIKELY:
            if first in _list_options(root.command.get_command(root, other)):
                return f"srvstat {other} has {wanted}"
    near = get_close_matches(name, own, 1, _SIMILAR)
    return f"did you mean {near[0]}?" if near else ""


def _read_intents() -> dict[str, str]:
    """Return replacements for options and commands that people guess."""
    lines = read_package_file("cli/intents.txt").decode().splitlines()
    pairs = (line.split(" = ") for line in lines)
    return {guess: remedy for guesses, remedy in pairs for guess in guesses.split()}


def _list_options(command: Any) -> list[str]:
    shown = [each for each in command.params if not getattr(each, "hidden", False)]
    return [name for each in shown for name in (*each.opts, *each.secondary_opts)]


def _find_command(name: str, group: Any, root: Any) -> str:
    """Return a suggestion for an unknown command of a group, or empty text if there is none."""
    intent = _read_intents().get(name, "")
    if intent.startswith(f"{group.name} "):
        return intent.removeprefix(f"{group.name} ")
    if group is root:
        if intent:
            return intent
        for parent in ("snapshot", "access"):
            if name in root.get_command(None, parent).commands:
                return f"{parent} {name}"
    return next(iter(get_close_matches(name, group.commands, 1)), "")


def find_hint(
    error: ApiError, paths: Iterable[str], identifiers: Sequence[str], given: Mapping[str, Any]
) -> str:
    """Return a hint for an API error, with a leading semicolon, or empty text if there is none.

    - `paths`: snapshots to search in order; the first hint found is returned.
    - `identifiers`: for a command that takes no names. They may be names by mistake.
    - `given`: the arguments of the command.

    Raises SnapshotError if a snapshot is unusable.
    """
    by, intent = given.get("by"), _find_intent(error, identifiers, given)
    if intent:
        return f"; {intent}"
    if isinstance(error, UnknownServerError):
        paths = [*paths]
        found = _suggest(paths, error.reference.identifier, error.reference.by)
        return found or f"; srvstat servers lists all ids of {paths[-1]}"
    if isinstance(error, selection.UnknownNameError):
        return _suggest(paths, error.name, "id")
    if isinstance(error, InvalidRequestError):
        # If the snapshot is unusable too, still report the invalid request.
        with suppress(SrvstatError):
            references = selection.build_references(identifiers, by)
            names = [one for one in references if isinstance(one, selection.Name)]
            unknown = [one.text for one in names if not one.reference]
            return _suggest(paths, unknown[0], "id") if unknown else ""
    return ""


def _find_intent(error: ApiError, identifiers: Sequence[str], given: Mapping[str, Any]) -> str:
    """Return a remedy for arguments that are known mistakes, or empty text for others."""
    names, length = [f"{name}:" for name in NAMESPACES], given.get("range")
    for one in identifiers:
        prefix, colon, rest = one.partition(":")
        if _SEVERAL.fullmatch(one):
            return f"separate identifiers by spaces: {one.replace(',', ' ')}"
        start = prefix.casefold() if colon else ""
        right = [name for name in names if start and name.casefold().startswith(start)]
        if right and not one.startswith(right[0]):
            return f"did you mean {right[0]}{rest}?"
    if error.reason.startswith("servers: 1 given") and len(identifiers) == 1:
        only = identifiers[0] if _PLAIN.fullmatch(identifiers[0]) else "IDENTIFIER"
        return f"for one server: srvstat stats {only} --range {length or '30d'}"
    if error.reason.startswith("by: ") and "step" in given:
        return "did you mean --step?"
    if error.reason.startswith("range: ") and length:
        return _find_length(length, has_servers="identifiers" in given)
    return ""


def _find_length(text: str, *, has_servers: bool) -> str:
    """Return what to write instead of a range that the API lacks; empty if that is not known."""
    if near := [one for one in DAYS if one in {text.lower(), f"{text}d"}]:
        return f"did you mean {near[0]}?"
    is_length = has_servers and re.fullmatch("[1-9][0-9]*(h|d|w|mo|y)", text)
    return f"srvstat stats takes any window, such as --range {text}" if is_length else ""


def _suggest(paths: Iterable[str], unknown: str, by: Namespace) -> str:
    for path in paths:
        with closing(open_snapshot(path)) as snapshot:
            if hint := suggest_servers(snapshot, unknown, by):
                return f"; {hint}"
    return ""


def suggest_servers(snapshot: Snapshot, unknown: str, by: Namespace) -> str | None:
    """Return a hint such as `did you mean cfxId:abc?` for an unknown text, or None.

    Raises SnapshotError if data are damaged.
    """
    reference = _build_reference(unknown, by)
    if reference is not None:
        for namespace in NAMESPACES:
            if namespace != by and snapshot.has_identifier(namespace, unknown):
                return f"did you mean {namespace}:{unknown}?"
    near = [] if reference is None else _find_near_identifiers(snapshot, reference)
    if by != "id":
        return _list_similar(near)
    named, matching, similar = _search_servers(snapshot, unknown)
    if len(named) == 1:
        return f"did you mean id:{_describe(named[0])}?"
    described = {server.id: _describe(server) for server in (*named, *matching)}
    described |= {name: name for name in near if name not in described}
    described |= {server.id: _describe(server) for server in similar if server.id not in near}
    listed = list(described.values())[:_MAX_SUGGESTED]
    return _list_similar(listed)


def _list_similar(found: Sequence[str]) -> str | None:
    if len(found) == 1:
        return f"did you mean {found[0]}?"
    return f"similar: {', '.join(found)}" if found else None


def _build_reference(text: str, by: Namespace) -> ServerReference | None:
    try:
        return build_server_reference(f"{by}:{text}")
    except InvalidRequestError:
        return None


def _describe(server: ServerRow) -> str:
    """Return the id of a server, and its name if that differs."""
    name = remove_color_codes(server.hostname)
    return server.id if name == server.id else f"{server.id} ({wire.quote_value(name)})"


def _find_near_identifiers(snapshot: Snapshot, unknown: ServerReference) -> list[str]:
    names = {name.lower(): name for name in _find_neighbors(snapshot, unknown)}
    near = [names[name] for name in get_close_matches(unknown.identifier.lower(), names)]
    return [name for name in near if snapshot.has_identifier(unknown.by, name)]


def _find_neighbors(snapshot: Snapshot, unknown: ServerReference) -> list[str]:
    """Return the few identifiers before and after an unknown identifier, in order.

    Upper case sorts before lower case, so each spelling has its own neighbors.
    """
    text = unknown.identifier
    spellings = {text, text.lower(), text.upper()}
    most = _MAX_COMPARED_CHARACTERS // len(text) // (2 * len(spellings))
    found: set[str] = set()
    for spelling, backwards in product(spellings, (False, True)):
        around = snapshot.iter_identifiers(unknown.by, spelling, backwards=backwards)
        found.update(islice(around, most))
    return sorted(found)


def _search_servers(
    snapshot: Snapshot, text: str
) -> tuple[list[ServerRow], list[ServerRow], list[ServerRow]]:
    """Return the first servers with this name, with these words, and with similar names."""
    wanted = selection.FilterOptions([text])
    spelled = " ".join(text.split()).casefold()
    named: list[ServerRow] = []
    matching: list[ServerRow] = []
    names: dict[str, ServerRow] = {}
    compared = 0
    with snapshot.convert_decode_errors("the servers"):
        for server in islice(snapshot.iter_servers(), _MAX_SEARCHED_SERVERS):
            is_named = spelled in map(str.casefold, selection.list_names(server))
            if is_named and len(named) < _MAX_SUGGESTED:
                named.append(server)
            is_open = len(text) >= _LEAST_SEARCHED and len(matching) < _MAX_SUGGESTED
            if is_open and wanted.matches(server, snapshot):
                matching.append(server)
            name = remove_color_codes(server.hostname).casefold()
            compared += len(name)
            if compared <= _MAX_COMPARED_CHARACTERS:
                names.setdefault(name, server)
    return named, matching, [names[name] for name in get_close_matches(text.casefold(), names)]


def report_no_match(snapshot: Snapshot, wanted: selection.FilterOptions) -> None:
    """Report on standard error that no server matches a filter, and list the existing values.

    Raises SnapshotError if data are damaged.
    """
    if wanted.game is None and wanted.region is None and not wanted.tags:
        report("note: no server matches")
        return
    values = selection.count_record_values(snapshot)
    unknown = [
        f"note: --{name}: no server has {wire.quote_value(value)}; {_list_values(name, counts)}"
        for name, given, counts in (
            ("game", (wanted.game,), values.games),
            ("region", (wanted.region,), values.regions),
            ("tag", wanted.tags or (), values.tags),
        )
        for value in given
        if value is not None and value.casefold() not in map(str.casefold, counts)
    ]
    report(*(unknown or ["note: no server matches all options"]))


def _list_values(name: str, counts: Counter[str]) -> str:
    """Return the most frequent values, each with the number of its servers."""
    known = [(value, count) for value, count in counts.most_common() if value]
    if not known:
        return f"no server has a {name}"
    first = [f"{wire.quote_value(value)} ({count:,})" for value, count in known[:_MAX_LISTED]]
    more = len(known) - len(first)
    return f"{name}s are {', '.join(first)}" + (f" and {more:,} more" if more else "")
