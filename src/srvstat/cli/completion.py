"""`completion`: print completion scripts, and adapt what shells pass to Typer."""

import os
import re
from itertools import pairwise
from typing import Annotated, Literal

from typer.completion import (  # type: ignore[attr-defined] # imported there without `as`
    get_completion_script,
)

from srvstat.analysis.parameters import Parameter
from srvstat.cli.output import Outcome
from srvstat.contract.errors import UsageError

_VARIABLE = "_SRVSTAT_COMPLETE"

_ZSH_END = "compdef _srvstat_completion srvstat"
_ZSH_END_OF_BOTH = f"""if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _srvstat_completion "$@"  # a file in $fpath is called to complete
else
  {_ZSH_END}
fi"""
"""Typer's script suits only `source`: as a file in $fpath, it would complete nothing at first."""

_Shell = Literal["bash", "zsh", "fish"]


def completion(
    shell: Annotated[
        _Shell, Parameter("The shell of the script: bash, zsh or fish.", "SHELL", is_argument=True)
    ],
) -> Outcome:
    """Print the completion script of a shell.

    The script completes commands, options, plans and the servers of the snapshot.

    Example: srvstat completion bash >> ~/.bashrc
    """
    script: str = get_completion_script(prog_name="srvstat", complete_var=_VARIABLE, shell=shell)
    if shell == "zsh":
        script = script.replace(_ZSH_END, _ZSH_END_OF_BOTH)
    return Outcome([f"{script}\n".encode()])


def replace_completion_options(arguments: list[str]) -> list[str]:
    """Replace `--show-completion SHELL` with `completion SHELL`: Typer's option ignores the shell.

    Raises UsageError for `--install-completion SHELL`, which would install for another shell.
    """
    match arguments:
        case ["--show-completion", _, *_]:
            return ["completion", *arguments[1:]]
        case ["--install-completion", shell, *_]:
            raise UsageError(
                "--install-completion: takes no shell, and installs for the current one;"
                f" `srvstat completion {shell}` prints the script to install"
            )
    return arguments


def join_bash_words() -> str:
    """Join words in the environment that bash has split at colons, such as `cfxId:abc`.

    Returns the current word up to its last colon: bash keeps it, so completions must omit it.

    Raises UsageError if COMP_WORDS or COMP_CWORD is missing or invalid.
    """
    if os.environ.get(_VARIABLE) != "complete_bash":
        return ""
    position, text = os.environ.get("COMP_CWORD", ""), os.environ.get("COMP_WORDS")
    if text is None or not re.fullmatch("[0-9]{1,9}", position):
        raise UsageError(f"{_VARIABLE}: needs COMP_WORDS and COMP_CWORD, a number; bash sets them")
    words = text.split("\n")[: int(position) + 1]
    joined, is_joined = words[:1], False
    for before, word in pairwise(words):
        is_joined = bool(word) and (_is_colon(before) or _is_colon(word))
        joined[-1:] = [joined[-1] + word] if is_joined else [joined[-1], word]
    if len(joined) < len(words):
        os.environ.update(COMP_WORDS="\n".join(joined), COMP_CWORD=str(len(joined) - 1))
    return joined[-1][: joined[-1].rindex(":") + 1] if is_joined else ""


def _is_colon(word: str) -> bool:
    return bool(word) and not word.strip(":")
