"""`completion`: the script that makes a shell complete commands, options and servers."""

import os
from itertools import pairwise
from typing import Annotated

import typer

from srvstat.cli.output import Outcome
from srvstat.contract.errors import UsageError

_VARIABLE = "_SRVSTAT_COMPLETE"
_SHELLS = ("bash", "zsh", "fish")


def completion(
    shell: Annotated[
        str, typer.Argument(metavar="|".join(_SHELLS), help="The shell to print the script for.")
    ],
) -> Outcome:
    """Print a shell's completion script.

    It completes commands, options, plans and the servers of the snapshot.

    Example: srvstat completion bash >> ~/.bashrc
    """
    from typer.completion import (  # type: ignore[attr-defined] # imported there without `as`
        get_completion_script,
    )

    if shell not in _SHELLS:
        raise UsageError(f"SHELL: {shell} is not one of {', '.join(_SHELLS)}")
    script: str = get_completion_script(prog_name="srvstat", complete_var=_VARIABLE, shell=shell)
    return Outcome([f"{script}\n".encode()])


def completion_arguments(arguments: list[str]) -> list[str]:
    """Read `--show-completion SHELL` as `completion SHELL`: Typer's own option ignores the shell.

    Raises UsageError for `--install-completion SHELL`, which would install for another shell.
    """
    match arguments:
        case ["--show-completion", _, *_]:
            return ["completion", *arguments[1:]]
        case ["--install-completion", shell, *_]:
            raise UsageError(
                "--install-completion takes no shell, it installs for the one in use;"
                f" `srvstat completion {shell}` prints the script to install"
            )
    return arguments


def join_bash_words() -> str:
    """Join the words that bash has split at colons, as in `cfxId:abc`, in the environment.

    Return the beginning of the current word that bash keeps, so that replies must leave it out.
    """
    if os.environ.get(_VARIABLE) != "complete_bash":
        return ""
    current = int(os.environ.get("COMP_CWORD", "0"))
    words = os.environ.get("COMP_WORDS", "").split("\n")[: current + 1]
    joined, is_joined = words[:1], False
    for before, word in pairwise(words):
        is_joined = bool(word) and (_is_colon(before) or _is_colon(word))
        joined[-1:] = [joined[-1] + word] if is_joined else [joined[-1], word]
    if len(joined) < len(words):
        os.environ.update(COMP_WORDS="\n".join(joined), COMP_CWORD=str(len(joined) - 1))
    return joined[-1][: joined[-1].rindex(":") + 1] if is_joined else ""


def _is_colon(word: str) -> bool:
    return bool(word) and not word.strip(":")
