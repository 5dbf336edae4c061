r"""Split lines of a POSIX shell into commands and words: '…', "…", $'…', \, comments, operators."""

import re
from typing import NamedTuple

VARIABLE = b"\0"
"""Stands in a word for a shell variable or a substitution, whose value is unknown."""
MAX_LINE_LENGTH = 1 << 18

_PLAIN = re.compile(r"[^ \t\n'\"\\$`;&|<>]+")
_IN_DOUBLE_QUOTES = re.compile(r'[^"\\$`\0]+')
_VARIABLE = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]|\{[^}\n]*\}|\([^()\n]*\))")
_SUBSTITUTION = re.compile(r"`[^`\n]+`")
_OPERATOR = re.compile(r"&&|\|\||\|&|;;|[;&|]")
_REDIRECTION = re.compile(r"<<<|<<-?|>>|>\||[<>]&?")
_ANSI_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c(.)|(.))",
    re.DOTALL,
)
_ANSI_LETTERS = {
    "a": b"\a",
    "b": b"\b",
    "e": b"\x1b",
    "E": b"\x1b",
    "f": b"\f",
    "n": b"\n",
    "r": b"\r",
    "t": b"\t",
    "v": b"\v",
    "\\": b"\\",
    "'": b"'",
    '"': b'"',
    "?": b"?",
}
_LAST_CODE_POINT = 0x10FFFF


class WordError(ValueError):
    """A line can't be split. `end` is the place in the text at which to continue."""

    def __init__(self, reason: str, end: int) -> None:
        super().__init__(reason)
        self.end = end


class Command(NamedTuple):
    """The words of a command, and its place in the text. `has_input`: a pipe or a file (`<`)."""

    words: list[bytes]
    start: int
    has_input: bool


def split_line(text: str, start: int) -> tuple[list[Command], int]:
    """Split the commands from a place of a text up to the end of the line that they end in.

    Returns them and the place of the line's end.

    Raises WordError.
    """
    return _Line(text, start).split()


def encode_source(text: str) -> bytes:
    """Encode text of an input, which has lone surrogates for bytes that are not UTF-8."""
    return text.encode("utf-8", "surrogateescape")


class _Line:
    """Splits one line, which may span several physical lines."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._at = start
        self._limit = min(len(text), start + MAX_LINE_LENGTH)
        self._commands: list[Command] = []
        self._words: list[bytes] = []
        self._word: list[bytes] | None = None
        self._command_start = self._part_start = start
        self._has_input = self._is_target = self._has_brace = False

    def split(self) -> tuple[list[Command], int]:
        while self._at < self._limit and (character := self._text[self._at]) != "\n":
            self._read(character)
        if self._at >= self._limit < len(self._text):
            raise WordError(f"longer than {MAX_LINE_LENGTH:,} characters", self._at)
        self._end_command()
        return self._commands, self._at

    def _read(self, character: str) -> None:
        self._part_start = self._at
        match character:
            case "\\":
                self._read_backslash()
            case "'":
                self._read_single_quotes()
            case '"':
                self._read_double_quotes()
            case "$":
                self._read_dollar()
            case "`":
                self._read_substitution()
            case ";" | "&" | "|":
                self._read_operator()
            case "<" | ">":
                self._read_redirection()
            case " " | "\t":
                self._end_word()
                self._at += 1
            case _:
                self._read_plain()

    def _add(self, part: bytes) -> None:
        if self._word is None:
            self._word = []
        self._word.append(part)

    def _read_plain(self) -> None:
        if self._word is None and self._text[self._at] == "#":  # a comment
            end = self._text.find("\n", self._at, self._limit)
            self._at = self._limit if end < 0 else end
            return
        match = _PLAIN.match(self._text, self._at, self._limit)
        end = match.end() if match else self._at + 1
        part = self._text[self._at : end]
        if "\0" in part:
            raise self._build_error("a NUL character")
        # No argument of a POSIX shell; in PowerShell an expression, such as (Get-Clipboard).
        if "(" in part:
            raise self._build_error("a parenthesis outside quotes; quote it, or write its value")
        # Outside quotes, {a,b} becomes two words.
        self._has_brace = self._has_brace or "{" in part
        if self._has_brace and "," in part:
            raise self._build_error("braces outside quotes; quote the data")
        self._add(encode_source(part))
        self._at = end

    def _read_backslash(self) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        self._at += 2
        if following != "\n":
            self._add(encode_source(following or "\\"))

    def _read_single_quotes(self) -> None:
        end = self._text.find("'", self._at + 1, self._limit)
        self._check_closed(end)
        part = self._text[self._at + 1 : end]
        if "\0" in part:
            raise self._build_error("a NUL character")
        self._add(encode_source(part))
        self._at = end + 1

    def _read_double_quotes(self) -> None:
        self._add(b"")
        self._at += 1
        while (character := self._text[self._at : self._at + 1]) != '"':
            self._check_closed(self._at if self._at < self._limit else -1)
            following = self._text[self._at + 1 : self._at + 2]
            if character == "\\" and following and following in '$`"\\\n':
                self._add(b"" if following == "\n" else following.encode())
                self._at += 2
            elif character == "\\":
                self._add(b"\\")
                self._at += 1
            elif character == "$":
                self._read_variable()
            elif character == "`":
                self._read_substitution()
            else:
                match = _IN_DOUBLE_QUOTES.match(self._text, self._at, self._limit)
                if not match:
                    raise self._build_error("a NUL character")
                self._add(encode_source(match[0]))
                self._at = match.end()
        self._at += 1

    def _read_dollar(self) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        if following == "'":
            self._read_ansi_quotes()
        elif following == '"':  # translated text, which is the text itself
            self._at += 1
        else:
            self._read_variable()

    def _read_variable(self) -> None:
        match = _VARIABLE.match(self._text, self._at, self._limit)
        if not match:
            for opening, shown in (("$(", "$(…)"), ("${", "${…}")):
                if self._text.startswith(opening, self._at):
                    raise self._build_error(f"a substitution {shown}; replace it by its value")
        self._add(VARIABLE if match else b"$")
        self._at = match.end() if match else self._at + 1

    def _read_substitution(self) -> None:
        match = _SUBSTITUTION.match(self._text, self._at, self._limit)
        if not match:
            raise self._build_error(
                "a backtick, as PowerShell continues a line; copy the command for bash"
            )
        self._add(VARIABLE)
        self._at = match.end()

    def _read_ansi_quotes(self) -> None:
        self._add(b"")
        self._at += 2
        while (character := self._text[self._at : self._at + 1]) != "'":
            self._check_closed(self._at if self._at < self._limit else -1)
            escape = _ANSI_ESCAPE.match(self._text, self._at, self._limit)
            if character == "\\" and escape:
                part = _decode_escape(escape)
                self._at = escape.end()
            else:
                part = encode_source(character)
                self._at += 1
            if b"\0" in part:
                raise self._build_error("a NUL character")
            self._add(part)
        self._at += 1

    def _read_operator(self) -> None:
        match = _OPERATOR.match(self._text, self._at)
        operator = match[0] if match else ""
        if operator == "&" and self._text.startswith("&>", self._at):  # redirects all output
            self._end_word()
            self._at += 1
            return
        self._end_command()
        self._at += len(operator)
        self._command_start = self._at
        self._has_input = operator in ("|", "|&")

    def _read_redirection(self) -> None:
        if self._word and b"".join(self._word).isdigit():
            self._word = None  # a descriptor
        self._end_word()
        match = _REDIRECTION.match(self._text, self._at)
        self._has_input = self._has_input or self._text[self._at] == "<"
        self._at = match.end() if match else self._at + 1
        self._is_target = True

    def _end_word(self) -> None:
        if self._word is not None:
            if not self._is_target:
                self._words.append(b"".join(self._word))
            self._is_target = False
        self._word = None
        self._has_brace = False

    def _end_command(self) -> None:
        self._end_word()
        self._is_target = False
        if self._words:
            self._commands.append(Command(self._words, self._command_start, self._has_input))
        self._words = []

    def _check_closed(self, end: int) -> None:
        if end < 0:
            raise self._build_error("a quote is not closed")

    def _build_error(self, reason: str) -> WordError:
        """Build the error; other commands may begin in the line after that of the bad part."""
        end = self._text.find("\n", self._part_start)
        return WordError(reason, len(self._text) if end < 0 else end)


def _decode_escape(escape: re.Match[str]) -> bytes:
    byte, short, long, octal, control, letter = escape.groups()
    if byte:
        return bytes([int(byte, 16)])
    if octal:
        return bytes([int(octal, 8) & 0xFF])
    if short or long:
        code = min(int(short or long, 16), _LAST_CODE_POINT)
        return chr(code).encode("utf-8", "surrogatepass")
    if control:
        return bytes([ord(control) & 0x1F])
    return _ANSI_LETTERS.get(letter) or encode_source(f"\\{letter}")
