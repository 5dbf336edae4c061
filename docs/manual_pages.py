"""Format manual pages and completion scripts from the commands, for `make docs`.

No library does this for Typer: click-man needs the classes of Click, and argparse-manpage those of
argparse. The macros are those of man(7), which every formatter knows.
"""

import re
import textwrap
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import typer
from typer.main import get_command

import srvstat
from srvstat.cli.app import app, group_parameters
from srvstat.cli.options import completion

ROOT = Path(__file__).parent.parent
COMPLETIONS: Mapping[Literal["bash", "zsh", "fish"], str] = {
    "bash": "srvstat.bash",
    "zsh": "_srvstat",
    "fish": "srvstat.fish",
}
"""The file of each shell's completion script."""
ENVIRONMENT = {
    "SRVSTAT_SNAPSHOT": "The snapshot of commands without --snapshot.",
    "NO_COLOR": "If set, output has no colors.",
    "FORCE_COLOR": "If set, tables and charts have colors even if no terminal shows them.",
}
"""Variables that are not those of options."""

_NO_HYPHENATION = ".nh\n.ad l\n"
"""Names of options and variables stay whole, so that they can be searched and copied."""
_FIGURES = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"}


def list_completion_scripts() -> Iterator[tuple[str, bytes]]:
    """Yield the file name and the content of each completion script."""
    for shell, name in COMPLETIONS.items():
        yield name, b"".join(completion(shell).pieces)


def list_manual_pages(exit_codes: Mapping[int, str]) -> Iterator[tuple[str, bytes]]:
    """Yield the file name and the content of each page: srvstat(1), and one for each command.

    `exit_codes` are the codes with their meanings.
    """
    commands = list(list_commands(get_command(app), ("srvstat",)))
    date = _read_date()
    for words, command in commands:
        sections = _list_sections(words, command)
        sections |= {
            "ENVIRONMENT": _format_environment(
                commands if hasattr(command, "commands") else [(words, command)]
            ),
            "EXIT STATUS": _format_list(
                (_bold(code), _as_sentence(meaning)) for code, meaning in exit_codes.items()
            ),
        }
        sections["SEE ALSO"] = _format_references(words)
        name = "-".join(words)
        title = f'.TH {name.upper()} 1 {date} "srvstat {srvstat.__version__}" "srvstat manual"\n'
        body = "".join(f".SH {head}\n{text}" for head, text in sections.items() if text)
        yield f"{name}.1", (title + _NO_HYPHENATION + body).encode("ascii")


def list_commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the words and the command of a command and of all commands in it."""
    yield words, command
    for name in getattr(command, "commands", ()):
        yield from list_commands(command.get_command(None, name), (*words, name))


def split_help(command: Any) -> tuple[str, list[str], list[str]]:
    """Return the first sentence, the other paragraphs and the examples of a command's help."""
    summary, *paragraphs = command.help.split("\n\n")
    texts = [text for text in paragraphs if not text.startswith("Example: ")]
    examples = [text.removeprefix("Example: ") for text in paragraphs if text not in texts]
    return summary, texts, examples


def _list_sections(words: tuple[str, ...], command: Any) -> dict[str, str]:
    context = typer.Context(command, info_name=words[-1], help_option_names=["-h", "--help"])
    summary, texts, examples = split_help(command)
    groups = group_parameters(command, context)
    return {
        "NAME": f"{_escape('-'.join(words))} \\- {_escape(_start_small(summary).rstrip('.'))}\n",
        "SYNOPSIS": f".B {_escape(' '.join(words))}\n"
        + "".join(f"{_emphasize(piece)}\n" for piece in command.collect_usage_pieces(context)),
        "DESCRIPTION": ".PP\n".join(map(_format_paragraph, (summary, *texts))),
        "COMMANDS": _format_commands(words, command),
        "ARGUMENTS": _format_parameters(groups.pop("Arguments", ())),
        "OPTIONS": _format_parameters(groups.pop("Options"))
        + "".join(f".SS {name}\n{_format_parameters(group)}" for name, group in groups.items()),
        "EXAMPLES": "".join(map(_format_example, examples)),
    }


def _format_commands(words: tuple[str, ...], command: Any) -> str:
    return _format_list(
        (f".BR {_escape('-'.join(name))} (1)", each.help.partition("\n\n")[0])
        for name, each in list_commands(command, words)
        if each is not command and not hasattr(each, "commands")
    )


def _format_parameters(records: Iterable[tuple[str, str]]) -> str:
    return _format_list((_emphasize(names), text) for names, text in records)


def _format_environment(commands: Sequence[tuple[tuple[str, ...], Any]]) -> str:
    variables = dict(ENVIRONMENT)
    if not any(each.name == "snapshot" for _, command in commands for each in command.params):
        del variables["SRVSTAT_SNAPSHOT"]
    for words, command in commands:
        for parameter in command.params:
            if name := getattr(parameter, "envvar", None):
                variables.setdefault(name, f"The value of {' '.join(words)} {parameter.opts[0]}.")
    return _format_list((_bold(name), text) for name, text in sorted(variables.items()))


def _format_references(words: tuple[str, ...]) -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    parents = ["-".join(words[:end]) for end in range(1, len(words))]
    pages = ",\n".join(f".BR {_escape(name)} (1)" for name in parents)
    address = _escape(project["urls"]["Documentation"])
    return f"{pages}\n.PP\n{address}\n" if pages else f"{address}\n"


def _format_list(items: Iterable[tuple[str, str]]) -> str:
    """Return heads, which are formatted, each with an indented text."""
    return "".join(f".TP\n{head}\n{_format_paragraph(text)}" for head, text in items)


def _format_paragraph(text: str) -> str:
    """Return a paragraph in lines of at most 80 bytes."""
    words = " ".join(map(_escape, text.split()))
    lines = textwrap.wrap(words, 80, break_long_words=False, break_on_hyphens=False)
    return "".join(f"{line}\n" for line in lines)


def _format_example(text: str) -> str:
    return f".EX\n{_escape(text)}\n.EE\n"


def _emphasize(text: str) -> str:
    """Return a synopsis with options in bold, and what stands for a value in italics."""

    def show(word: re.Match[str]) -> str:
        font = "B" if word[0].startswith("-") else "I"
        return f"\\f{font}{_escape(word[0])}\\fR"

    return re.sub(r"[\w-]+", show, text)


def _bold(text: object) -> str:
    return f"\\fB{_escape(str(text))}\\fR"


def _escape(text: str) -> str:
    """Return a text in which no character is a command of the formatter."""
    escaped = "".join(
        _FIGURES.get(each, each if each.isascii() else f"\\[u{ord(each):04X}]") for each in text
    )
    return re.sub(r"^\.", r"\\&.", escaped)


def _as_sentence(meaning: str) -> str:
    text = meaning.replace("`", "")
    return f"{text[0].upper()}{text[1:]}."


def _start_small(text: str) -> str:
    return text[0].lower() + text[1:]


def _read_date() -> str:
    """Return the date of the first section of CHANGELOG.md."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    dates: list[str] = re.findall(r"^## .+ - (.+)$", text, re.MULTILINE)
    return dates[0]
