"""Read examples in the documentation that only a test runs."""

import re
import shlex

from conftest import ROOT


def read_marked_block(page: str, name: str) -> list[str]:
    """Return the lines of the code after the comment `example: NAME` of a page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    (code,) = re.findall(f"<!-- example: {name} -->\n```(?:sh|html)?\n(.*?)```", text, re.DOTALL)
    return str(code).splitlines()


def read_command(line: str) -> list[str]:
    """Return the arguments of srvstat in a line, with or without a prompt."""
    program, *arguments = shlex.split(line.removeprefix("$ "))
    assert program == "srvstat"
    return arguments
