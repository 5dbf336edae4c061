"""Format the reference of all commands from their declarations, for `make docs`.

An option that several commands declare in the same words is described once, in the group under
which help shows it. A command names the groups, and describes its own options.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import typer
from typer.main import get_command

from manual_pages import list_commands, split_help
from srvstat.cli.app import GROUPS, app, group_parameters

_WITHOUT_GROUP = ("Arguments", "Single")
"""The titles of the tables of shared arguments, and of shared options without a group."""
_ELSEWHERE = {"serve": "[HTTP service](service.md#configuration)"}
"""Where the options of a command are described, with what this page does not show."""
_NOTES = re.compile(r"  \[(.*)\]$")
"""The default and the limits of a value, which Typer appends to its meaning."""


@dataclass(frozen=True)
class _Option:
    """An option or an argument as help describes it."""

    names: str
    meaning: str
    group: str = field(compare=False)

    @property
    def name(self) -> str:
        """The long name of an option, or the argument."""
        return re.sub(r"^-\w, ", "", self.names).split()[0]

    @property
    def row(self) -> str:
        names, meaning = (text.replace("|", "\\|") for text in (self.names, self.meaning))
        return f"`{names}` | {meaning}"


def format_commands() -> str:
    """Return an index, each command with its own options, and those that several share."""
    commands = {
        words: (command, list(_list_options(words, command)))
        for words, command in list_commands(get_command(app), ("srvstat",))
    }
    declared = [option for _, options in commands.values() for option in options]
    uses = Counter(declared)
    named = {option: option.group for option in declared if option.group not in _WITHOUT_GROUP}
    groups: dict[str, list[_Option]] = {}
    for option, count in uses.items():
        group = groups.setdefault(named.get(option, option.group), [])
        is_unclear = option.group not in _WITHOUT_GROUP and option.name in {
            one.name for one in group
        }
        if count > 1 and not is_unclear:
            group.append(option)
    groups = {name: group for name, group in groups.items() if group}
    shown = {
        " ".join(words[1:]) or "srvstat": _format_command(words, command, options, groups)
        for words, (command, options) in commands.items()
        if not hasattr(command, "commands") or len(words) == 1
    }
    pieces = [_format_index(shown), *shown.values(), "## Options of several commands\n"]
    for name in _sort(groups):
        title = name if name == "Arguments" else f"{name} options"
        pieces.append(f"### {title}\n\n{_format_table(groups[name])}")
    return "\n".join(pieces)


def _format_index(names: Iterable[str]) -> str:
    """Return a table with links to the commands, in the groups of help."""
    rows = [
        f"{title} | "
        + ", ".join(
            f"[{name}](#{name.replace(' ', '-')})" for name in names if name.split()[0] in group
        )
        for title, group in GROUPS.items()
    ]
    return "\n".join(["group | commands", "---|---", *rows]) + "\n"


def _sort(groups: Iterable[str]) -> list[str]:
    return sorted(groups, key=lambda name: (name in _WITHOUT_GROUP, name))


def _list_options(words: tuple[str, ...], command: Any) -> Iterator[_Option]:
    context = typer.Context(command, info_name=words[-1], help_option_names=["--help"])
    for group, records in group_parameters(command, context).items():
        named = "Single" if group == "Options" else group
        for names, meaning in records:
            if names != "--help":
                text = _NOTES.sub(_format_notes, meaning)
                yield _Option(names.replace(" / ", "/"), text, named)


def _format_notes(notes: re.Match[str]) -> str:
    left_out = ("env var: ", "required")
    kept = [one for one in notes[1].split("; ") if not one.startswith(left_out)]
    return f" [{'; '.join(kept)}]" if kept else ""


def _format_command(
    words: tuple[str, ...], command: Any, options: list[_Option], groups: dict[str, list[_Option]]
) -> str:
    usage = " ".join([*words, *command.collect_usage_pieces(typer.Context(command))])
    summary, _, examples = split_help(command)
    head = " ".join(words[1:]) or "srvstat"
    text = "\n".join([f"## {head}\n", "```", usage, *examples, f"```\n\n{summary}\n"])
    if head in _ELSEWHERE:
        return f"{text}\n{_ELSEWHERE[head]} describes {_join(options)}.\n"
    described = {one for group in groups.values() for one in group}
    shared = [_name_shared(name, groups[name], options) for name in _sort(groups)]
    if any(shared):
        text += f"\nAlso: {', '.join(filter(None, shared))}\n"
    own = [one for one in options if one not in described]
    return f"{text}\n{_format_table(own)}" if own else text


def _name_shared(name: str, group: list[_Option], options: list[_Option]) -> str:
    """Return how a command names the options that it has of a group; empty if it has none."""
    taken = [one for one in group if one in options]
    names = {one.name for one in options}
    missing = [one for one in group if one.name not in names]
    if name not in _WITHOUT_GROUP and len(missing) < len(taken):
        link = f"[{name}](#{name.lower().replace(' ', '-')}-options)"
        return f"{link} (without {_join(missing)})" if missing else link
    return _join(taken)


def _join(options: Iterable[_Option]) -> str:
    return ", ".join(f"`{one.name}`" for one in options)


def _format_table(options: Iterable[_Option]) -> str:
    rows = [one.row for one in options]
    return "\n".join(["option | meaning", "---|---", *rows]) + "\n"
