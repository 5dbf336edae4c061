"""Split lines of Windows' cmd.exe into commands and words, as curl.exe receives them.

First cmd.exe removes the carets that escape characters outside quotes; then the C runtime splits
the rest into words. A quote after a caret counts only in the second step.
"""

import re
from collections.abc import Iterator

from srvstat.support.recordings.shell_words import (
    MAX_LINE_LENGTH,
    VARIABLE,
    Command,
    WordError,
    encode_source,
)

# What begins and ends like percent-escapes of a URL is text: cmd.exe keeps the name of an unset
# variable.
_NAME = r"%(?:(?![0-9A-Fa-f]{2})[A-Za-z_][A-Za-z0-9_]*%|[A-Za-z_][A-Za-z0-9_]*%(?![0-9A-Fa-f]{2}))"
# The second form is also text of a POSIX shell, as in $(date +%Y%m%d), which has one of '`$.
_CMD_LINE = re.compile(rf"""[^\n]*(?:\^"|\^[ \t]*(?:\n|\Z))|[^\n'`$]*{_NAME}[^\n'`$]*(?:\n|\Z)""")
_PLAIN = re.compile(r'[^\n"^&|<>%\0]+')
_CONTINUATION = re.compile(r"\^[ \t]*\n")
_OPERATOR = re.compile(r"&&|\|\||[&|]")
_VARIABLE = re.compile(_NAME)
_ORDINARY = re.compile(r'[^ \t"\\]+')


def is_cmd(text: str, start: int) -> bool:
    """Return whether a line is for cmd.exe.

    It has an escaped quote, ends in a caret, or has a `%NAME%` and none of the characters that only
    a POSIX shell gives a meaning: an apostrophe, a dollar sign or a backtick.
    """
    return _CMD_LINE.match(text, start) is not None


def split_cmd_line(text: str, start: int) -> tuple[list[Command], int]:
    """Split the commands from a place of a text up to the end of the line that they end in.

    Returns them and the place of the line's end.

    Raises WordError.
    """
    line = _CmdLine(text, start)
    line.read()
    return line.commands, line.at


class _CmdLine:
    """Removes the carets of one line, which may span several physical lines."""

    def __init__(self, text: str, start: int) -> None:
        self.commands: list[Command] = []
        self.at = start
        self._text = text
        self._limit = min(len(text), start + MAX_LINE_LENGTH)
        self._parts: list[str] = []
        self._command_start = start
        self._has_input = self._is_redirected = self._in_quotes = False

    def read(self) -> None:
        while self.at < self._limit and (character := self._text[self.at]) != "\n":
            if character == "^" and not self._in_quotes:
                self._read_caret()
            elif character in "&|" and not self._in_quotes:
                self._read_operator()
            else:
                self._read_text(character)
        if self.at >= self._limit < len(self._text):
            raise WordError(f"longer than {MAX_LINE_LENGTH:,} characters", self.at)
        self._end_command()

    def _read_caret(self) -> None:
        """Add the character after a caret, or after a caret and a newline, as it is."""
        continuation = _CONTINUATION.match(self._text, self.at)
        at = continuation.end() if continuation else self.at + 1
        self._add(self._text[at : at + 1])
        self.at = at + 1

    def _read_operator(self) -> None:
        match = _OPERATOR.match(self._text, self.at)
        operator = match[0] if match else ""
        self._end_command()
        self.at += len(operator)
        self._command_start = self.at
        self._has_input = operator == "|"

    def _read_text(self, character: str) -> None:
        if character in "<>" and not self._in_quotes:
            self._is_redirected = True  # what follows is taken for the file name
            self._has_input = self._has_input or character == "<"
        if character == '"':
            self._in_quotes = not self._in_quotes
        variable = _VARIABLE.match(self._text, self.at)
        if variable:
            self._parts.append(VARIABLE.decode())
            self.at = variable.end()
            return
        plain = _PLAIN.match(self._text, self.at, self._limit)
        part = plain[0] if plain else character
        self._add(part)
        self.at += len(part)

    def _add(self, part: str) -> None:
        if "\0" in part:
            raise WordError("a NUL character", self._find_next_line())
        if not self._is_redirected:
            self._parts.append(part)

    def _end_command(self) -> None:
        words = list(self._split_words("".join(self._parts)))
        if words:
            self.commands.append(Command(words, self._command_start, self._has_input))
        self._parts = []
        self._is_redirected = self._in_quotes = False

    def _split_words(self, line: str) -> Iterator[bytes]:
        """Split a command line by the rules of the C runtime."""
        word: list[str] | None = None
        at, in_quotes = 0, False
        while at < len(line):
            if line[at] in " \t" and not in_quotes:
                if word is not None:
                    yield encode_source("".join(word))
                word = None
                at += 1
                continue
            part, at, in_quotes = _read_part(line, at, in_quotes)
            if word is None:
                word = []
            word.append(part)
        if in_quotes:
            raise WordError("a quote is not closed", self._find_next_line())
        if word is not None:
            yield encode_source("".join(word))

    def _find_next_line(self) -> int:
        end = self._text.find("\n", self.at)
        return len(self._text) if end < 0 else end


def _read_part(line: str, at: int, in_quotes: bool) -> tuple[str, int, bool]:
    """Read a part of a word; return its text, its end, and whether quotes are open after it.

    Backslashes escape a quote, or each other before a quote. Two quotes inside quotes are one.
    """
    if line[at] in " \t":
        return line[at], at + 1, in_quotes
    ordinary = _ORDINARY.match(line, at)
    if ordinary:
        return ordinary[0], ordinary.end(), in_quotes
    end = at
    while line[end : end + 1] == "\\":
        end += 1
    count = end - at
    if line[end : end + 1] != '"':
        return line[at:end], end, in_quotes
    end += 1
    half = "\\" * (count // 2)
    if count % 2:
        return f'{half}"', end, in_quotes
    if in_quotes and line[end : end + 1] == '"':
        return f'{half}"', end + 1, True
    return half, end, not in_quotes
