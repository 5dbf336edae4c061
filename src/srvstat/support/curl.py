"""Read curl commands from a script, or from a message that they were pasted into.

One pass over a line decodes quotes and escapes, replaces variables, drops comments and marks the
ends of words. `getopt` reads the options.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from getopt import GetoptError, getopt
from typing import NamedTuple
from urllib.parse import quote_plus

from srvstat.contract import read_package_file
from srvstat.contract.errors import SourceError
from srvstat.contract.http import JUDGED_HEADERS, KEY_NAME, Headers, find_endpoint
from srvstat.support.pasted import find_response
from srvstat.support.recordings import (
    Exchange,
    Unreadable,
    UnreadableError,
    build_exchange,
    keep_judged,
)

MAX_BYTES = 16 << 20
MAX_LINE_LENGTH = 1 << 18

# A command is `curl` before an option, a quoted word or what looks like a URL; elsewhere, `curl` is
# a word of prose. A prompt (`$ `, `me@host:~# `, `C:\\>`) or a command with a pipe may precede it.
_START = re.compile(
    r"""^[ \t]*(?:(?:[^\s'"]*\$|\[?[\w.-]+@[^\n'"$#%]*[$#%])[ \t]+"""
    r"""|(?:PS )?[A-Za-z]:\\[^\n">]*>[ \t]*)?"""
    r"""(\w[^\n]*?(?<!\|)\|&?[ \t]*)??(curl(?:\.exe)?[ \t]+(?:[-'"$\\^`(]|[^\s:/.]*[:/.]\S))""",
    re.MULTILINE,
)
_QUOTING = re.compile(r"^(?:>[ \t]?)+", re.MULTILINE)
"""How mails quote lines, and how shells prompt for the rest of a command."""
_CURLY = "\u201c\u201d\u201e\u2018\u2019"
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
_NOT_READ = "files and standard input are not read; write the contents into the command"

_VARIABLE = "\0"
"""Replaces a shell variable or a substitution, whose value is unknown. No argument has a NUL."""
_TARGET, _GAP, _EMPTY = "\ud800", "\ud801", "\ud802"
"""Mark the file name after a redirection, blanks between words, and a quoted part without text.

Decoded text has no such characters.
"""

_SHELL_VARIABLE = r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]|\{[^}\n]*\}|\([^()\n]*\))|`[^`\n]+`"
_SHELL = re.compile(
    rf"""
    '(?P<single>[^']*)' | \$'(?P<ansi>(?:[^'\\]++|\\.)*)' | \$?"(?P<double>(?:[^"\\]++|\\.)*)"
    | \\(?P<escaped>.?) | (?P<variable>{_SHELL_VARIABLE}) | (?P<comment>(?<=[\s;&|])\#[^\n]*)
    | (?P<redirection>(?:(?<=[\s;&|])[0-9]+)?(?:<<<|<<-?|>>|>\||&>|[<>]&?)[ \t]*)
    | (?P<operator>&&|\|\||\|&|;;|[;&|])
    | (?P<gap>[ \t]+) | (?P<plain>[^ \t\n'"\\$`;&|<>({{]+|\$(?!['"({{])
        |\{{(?!(?:'[^']*'|"[^"]*"|[^\s'"{{])*,))  # bash makes two words of {{a,b}}
    """,
    re.DOTALL | re.VERBOSE,
)
_IN_DOUBLE_QUOTES = re.compile(rf'({_SHELL_VARIABLE})|\\([$`"\\\n])|`|\$[({{]')
_ANSI_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|(.))", re.DOTALL
)
_ANSI_LETTERS = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))
_NOT_CLOSED = "a quote is not closed"
_PROBLEMS = {
    "$(": "a substitution $(…); replace it by its value",
    "${": "a substitution ${…}; replace it by its value",
    "`": "a backtick, as PowerShell continues a line; copy the command for bash",
    # PowerShell replaces an expression such as (Get-Clipboard); a POSIX shell refuses it.
    "(": "a parenthesis outside quotes; quote it, or write its value",
    "{": "braces outside quotes; quote the data",
}
"""Why a line can't be read, by the characters at which reading stops; others are quotes."""

# cmd.exe replaces %ID% if that variable is set; otherwise the text stays. In a URL, %C3%A9 is an
# encoded letter, and its %C3% no variable: two hexadecimal digits follow both percent signs.
_CMD_VARIABLE = (
    r"%(?:(?![0-9A-Fa-f]{2})[A-Za-z_][A-Za-z0-9_]*%|[A-Za-z_][A-Za-z0-9_]*%(?![0-9A-Fa-f]{2}))"
)
# A line is for cmd.exe if it contains ^", ends in ^, or contains a %VARIABLE% and no apostrophe,
# backtick or dollar sign. These belong to a POSIX shell, as in $(date +%Y%m%d).
_CMD_LINE = re.compile(
    rf"""[^\n]*(?:\^"|\^[ \t]*(?:\n|\Z))|(?=[^\n'`$]*(?:\n|\Z))[^\n]*{_CMD_VARIABLE}"""
)
_CMD = re.compile(
    r"""
    \^(?:[ \t]*\n)?(?P<escaped>.?) | (?P<operator>&&|\|\||[&|]) | (?P<redirection>[<>])
    | (?P<plain>"[^"\n]*"?|[^\n"^&|<>]+)
    """,
    re.DOTALL | re.VERBOSE,
)
_CMD_WORD_PART = re.compile(r'(\\*)"|([ \t]+)|(\\+|[^ \t"\\]+)')

_OPTIONS = read_package_file("support/curl_options.txt").decode().split()
"""The options that browsers and people use, as for getopt: a letter, a name, `=` for an argument.
"""
_LONG_OPTIONS = [option.split(":")[-1] for option in _OPTIONS]
_LETTERS = {name[0]: name[2:] for name in _OPTIONS if name[1] == ":"}
_SHORT_OPTIONS = "".join(f"{key}:" if _LETTERS[key].endswith("=") else key for key in _LETTERS)
_OPTION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,39}")
_POWERSHELL = frozenset(("-uri", "-method", "-headers", "-body", "-contenttype"))

_UNSUPPORTED = ("form", "form-string")
_FILES = ("config", "etag-compare", "netrc", "netrc-file", "netrc-optional", "upload-file")
"""Options that make curl read a file, whatever their argument."""
_FILES_AFTER_AT = ("data", "data-ascii", "data-binary", "header", "json", "proxy-header", "url")
"""Options that make curl read a file if their argument begins with `@`."""
_DATA = ("data", "data-ascii", "data-binary", "data-raw", "data-urlencode", "json")
_FORM_TYPE, _JSON_TYPE = b"application/x-www-form-urlencoded", b"application/json"

_HTTP = (None, "http", "https")
_URL = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.-]*)://)?([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.DOTALL
)
_NOT_IN_URL = re.compile(r"[\x01-\x20\x7f]")
_ADDRESS = re.compile(r"(?:[^/?#@]*@)?\[[0-9A-Fa-f:.%]+\](?::[0-9]*)?")
_GLOB = re.compile(r"(?<!\\)[\[\]{}]")
_ESCAPED_GLOB = re.compile(r"\\([\[\]{}])")


class _Command(NamedTuple):
    """The words of a command. `has_input`: from a pipe or a file."""

    words: list[str]
    start: int
    has_input: bool


def read_curl(title: str, chunks: Iterator[bytes]) -> Iterator[Exchange | Unreadable]:
    """Read the requests of curl commands in their order; other lines are skipped.

    Raises SourceError for more than MAX_BYTES, and for text without a command.
    """
    text = _read_text(title, chunks)
    if text.strip() and not _START.search(text):
        raise SourceError(
            f"{title}: no curl command, no HAR file, no recording of the service and no JSON of a"
            " request or a response; paste the command, or export the recording as HAR"
        )
    at, line, counted = 0, 1, 0
    while start := _START.search(text, at):
        found = start.start(2)
        line, counted = line + text.count("\n", counted, found), found
        commands, at, reason = _split_line(text, found, has_input=bool(start[1]))
        if _NOT_UTF8.search(text, found, at):
            reason = "not UTF-8"
        elif text.find("\0", found, at) >= 0:
            reason = "a NUL character"
        if reason:
            yield Unreadable(f"{title}, line {line}", reason)
            continue
        read: list[Exchange | Unreadable] = []
        for command in commands:
            if command.words[:1] in (["curl"], ["curl.exe"]):
                after = text.count("\n", counted, command.start)
                read += _read_command(f"{title}, line {line + after}", command)
        following = _START.search(text, at)
        if len(read) == 1 and isinstance(read[0], Exchange):
            response, answered_at = find_response(text[at : following and following.start()])
            read = [replace(read[0], response=response, answered_at=answered_at)]
        yield from read


def _read_text(title: str, chunks: Iterator[bytes]) -> str:
    data = bytearray()
    for chunk in chunks:
        data += chunk
        if len(data) > MAX_BYTES:
            raise SourceError(f"{title}: more than {MAX_BYTES:,} bytes of curl commands; split it")
    text = data.decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    return _QUOTING.sub("", text)


def _read_command(place: str, command: _Command) -> Iterator[Exchange | Unreadable]:
    if any(word[0] in _CURLY for word in command.words if word):
        yield Unreadable(
            place, "curly quotes, as mail programs write; replace them by straight ones"
        )
        return
    try:
        operations = _read_operations(command.words[1:])
        requests = [each for options in operations for each in _build_requests(place, options)]
    except UnreadableError as error:
        yield Unreadable(place, str(error))
        return
    if command.has_input:
        yield Unreadable(place, f"a pipe or <: {_NOT_READ}")
        return
    yield from requests


def _split_line(text: str, at: int, *, has_input: bool) -> tuple[list[_Command], int, str | None]:
    """Split the commands from a place of a text up to the end of the line that they end in.

    Returns them, the place at which to continue, and why they can't be split. After an error, other
    commands may begin in the next line.
    """
    commands: list[_Command] = []
    parts: list[str] = []
    start, limit = at, at + MAX_LINE_LENGTH
    pattern, rewrite, split = _SHELL, _rewrite_shell, _split_words
    if _CMD_LINE.match(text, at):
        pattern, rewrite, split = _CMD, _rewrite_cmd, _split_cmd_words
    try:
        while at < len(text) and text[at] != "\n":
            piece = _match_piece(pattern, text, at, limit)
            kind = piece.lastgroup or ""
            part = piece[kind]
            if kind == "operator":
                commands.append(_Command(split("".join(parts)), start, has_input))
                start, parts, has_input = piece.end(), [], part in ("|", "|&")
            elif kind == "redirection":
                parts.append(_TARGET)
                has_input = has_input or "<" in part
            else:
                parts.append(rewrite(kind, part))
            at = piece.end()
        commands.append(_Command(split("".join(parts)), start, has_input))
    except UnreadableError as error:
        end = text.find("\n", at)
        return [], len(text) if end < 0 else end, str(error)
    return commands, at, None


def _match_piece(pattern: re.Pattern[str], text: str, at: int, limit: int) -> re.Match[str]:
    if at >= limit:
        raise UnreadableError(f"longer than {MAX_LINE_LENGTH:,} characters")
    piece = pattern.match(text, at, limit)
    if not piece:
        reasons = (_PROBLEMS[key] for key in _PROBLEMS if text.startswith(key, at))
        raise UnreadableError(next(reasons, _NOT_CLOSED))
    return piece


def _rewrite_shell(kind: str, part: str) -> str:
    """Decode a part of a line, and mark what `_split_words` looks for."""
    match kind:
        case "ansi":
            part = _ANSI_ESCAPE.sub(_decode_escape, part)
            if "\0" in part:
                raise UnreadableError("a NUL character")
        case "double":
            part = _IN_DOUBLE_QUOTES.sub(_decode_double_quotes, part)
        case "variable":
            return _VARIABLE
        case "plain":
            return part
        case "gap" | "comment":
            return _GAP
        case "escaped" if part in ("", "\n"):
            return ""
    return part or _EMPTY


def _decode_escape(escape: re.Match[str]) -> str:
    octal, byte, short, long, letter = escape.groups()
    if letter:
        return _ANSI_LETTERS.get(letter, escape[0])
    if octal or byte:
        data = bytes([int(octal, 8) & 0xFF if octal else int(byte, 16)])
    else:
        code = min(int(short or long, 16), sys.maxunicode)
        data = chr(code).encode("utf-8", "surrogatepass")
    return data.decode("utf-8", "surrogateescape")


def _decode_double_quotes(part: re.Match[str]) -> str:
    variable, escaped = part.groups()
    if variable:
        return _VARIABLE
    if escaped:
        return escaped.strip("\n")
    raise UnreadableError(_PROBLEMS[part[0]])


def _split_words(text: str) -> list[str]:
    words = (word.partition(_TARGET)[0] for word in text.split(_GAP))
    return [word.replace(_EMPTY, "") for word in words if word]


def _rewrite_cmd(kind: str, part: str) -> str:
    return part if kind == "escaped" else re.sub(_CMD_VARIABLE, _VARIABLE, part)


def _split_cmd_words(text: str) -> list[str]:
    """Split a command whose carets cmd.exe has removed by the rules of the C runtime.

    Backslashes escape a quote, or each other before a quote. Two quotes inside quotes are one.
    """
    marked, in_quotes, closed_at = "", False, -1
    for part in _CMD_WORD_PART.finditer(text.partition(_TARGET)[0]):
        backslashes, gap, plain = part.groups()
        if backslashes is None:
            marked += plain or (gap if in_quotes else _GAP)
            continue
        marked += _EMPTY + "\\" * (len(backslashes) // 2)
        if len(backslashes) % 2 or (not in_quotes and closed_at == part.start()):
            marked += '"'
        if len(backslashes) % 2 == 0:
            in_quotes = not in_quotes
            closed_at = part.end() if not in_quotes else -1
    if in_quotes:
        raise UnreadableError(_NOT_CLOSED)
    return _split_words(marked)


def _read_operations(words: Iterable[str]) -> Iterator[list[tuple[str, str]]]:
    """Read the options up to each `--next`, by their long names; a bare URL is a `url`.

    Raises UnreadableError.
    """
    options: list[tuple[str, str]] = []
    rest = iter(words)
    for word in rest:
        if word.lower() in _POWERSHELL:
            raise UnreadableError("options of PowerShell's curl; use those of curl.exe")
        if word in ("--next", "-:"):
            yield options
            options = []
        elif word == "--":
            options += (("url", url) for url in rest)
        else:
            options += _read_options(word, rest)
    yield options


def _read_options(word: str, rest: Iterator[str]) -> list[tuple[str, str]]:
    """Read a URL, a long option, or short ones behind one hyphen.

    The argument of the last one may be the next word of the rest.
    """
    hyphens = "--" if word.startswith("--") else "-"
    if hyphens == "--":  # curl, unlike getopt, takes `=` as a part of the name
        word = word.replace("=", "\0")
    try:
        pairs, left = getopt([word, ""], _SHORT_OPTIONS, _LONG_OPTIONS)
    except GetoptError as error:
        # What follows the name of an option can be a key: `--X-Gateway-Key:…`.
        name = _OPTION_NAME.match(error.opt)
        raise UnreadableError(f"unknown option {hyphens}{name[0] if name else '…'}") from None
    if not left:  # getopt took the empty word for the argument
        key, argument = pairs.pop()[0], next(rest, None)
        if argument is None:
            raise UnreadableError(f"{key}: without its argument")
        pairs.append((key, argument))
    pairs += (("--url", url) for url in left[:-1])
    return [(key[2:] or _LETTERS[key[1:]].rstrip("="), argument) for key, argument in pairs]


def _build_requests(place: str, options: Sequence[tuple[str, str]]) -> Iterator[Exchange]:
    """Build the requests for URLs that have the same options.

    Raises UnreadableError.
    """
    given, data = dict(options), None
    for name, argument in options:
        if name in _UNSUPPORTED:
            raise UnreadableError(f"--{name}: not supported")
        if _names_file(name, argument):
            raise UnreadableError(f"--{name}: {_NOT_READ}")
        if name in _DATA:
            joint = "&" if data and name != "json" else ""
            data = f"{data or ''}{joint}{_build_data(name, argument)}"
    body = None if data is None or "get" in given else _encode(data)
    if "url" not in given:
        raise UnreadableError("no URL")
    if body is not None and "head" in given:
        raise UnreadableError("--head with data, which curl refuses; add --get")
    method = "HEAD" if "head" in given else "GET" if body is None else "POST"
    method = _check_known("request", given.get("request") or method)
    method = _encode(method).decode("utf-8", "backslashreplace")
    lines = [argument for name, argument in options if name == "header"]
    for url in (argument for name, argument in options if name == "url"):
        scheme, host, path, query = _split_url(url, is_globbed="globoff" not in given)
        full, queries = f"{scheme}:", ""
        if scheme in _HTTP:
            sent_path = path if "path-as-is" in given else _remove_dot_segments(path)
            full = f"http://{host}{sent_path}"
            queries = "&".join(filter(None, (query, data if "get" in given else None)))
        headers = _build_headers(lines, _list_defaults(given, host, body))
        exchange = build_exchange(place, method, _encode(full), headers)
        head = exchange.head._replace(query=_encode(queries))
        yield replace(exchange, head=head, body=body or b"")


def _build_headers(lines: Sequence[str], defaults: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Build all headers that curl sends: those given, and the defaults that they leave."""
    given = [pair for line in lines if (pair := _split_header(line))]
    names = {name for name, _ in given}
    encodings = (value or b"" for name, value in given if name == b"transfer-encoding")
    if any(b"chunked" in encoding.lower() for encoding in encodings):
        names.add(b"content-length")
    sent = (*given, *(pair for pair in defaults if pair[0] not in names))
    return keep_judged((name, value) for name, value in sent if value is not None)


def _list_defaults(
    given: Mapping[str, str], host: str, body: bytes | None
) -> Iterator[tuple[bytes, bytes]]:
    yield b"host", _encode(host)
    for name in ("cookie", "referer", "user", "user-agent"):
        if name in given:
            yield name.encode(), _encode(given[name])
    if "json" in given or body is not None:
        yield b"content-type", _JSON_TYPE if "json" in given else _FORM_TYPE
    if body is not None:
        yield b"content-length", str(len(body)).encode()


def _names_file(name: str, argument: str) -> bool:
    """Return whether curl would read a file, or standard input, because of an option.

    Strangers may have written the command. The file would be one of the person who replays it, and
    its contents would be shown.
    """
    if name in _FILES or (name in _FILES_AFTER_AT and argument.startswith("@")):
        return True
    if name == "cookie":  # a file unless it has a cookie; an empty name is no file
        return argument != "" and "=" not in argument and _VARIABLE not in argument
    return name == "data-urlencode" and "@" in argument and "=" not in argument


def _build_data(name: str, argument: str) -> str:
    """Return the data that an option adds to the body or, with -G, to the query.

    Raises UnreadableError.
    """
    _check_known(name, argument)
    if name != "data-urlencode":
        return argument
    label, separator, content = argument.partition("=")
    if not separator:
        label, content = "", argument
    encoded = quote_plus(content, errors="surrogateescape")
    return f"{label}={encoded}" if label else encoded


def _check_known(name: str, argument: str) -> str:
    """Return the argument of an option. Raises UnreadableError if it has a shell variable."""
    if _VARIABLE in argument:
        raise UnreadableError(
            f"--{name}: a shell variable or substitution; replace it by its value"
        )
    return argument


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _split_header(line: str) -> tuple[bytes, bytes | None] | None:
    """Split the argument of -H. The value is None if the header is removed, or not known.

    Returns None for a line that curl ignores.
    """
    name, separator, value = line.partition(":")
    if not separator:
        _check_known("header", line)
        name, separator, value = line.partition(";")
        if not separator or value.strip():
            return None
        return _encode(name.strip().lower()), b""  # sent without a value
    _check_known("header", name)
    header, value = _encode(name.strip().lower()), value.strip()
    if _VARIABLE in value and header == KEY_NAME:
        return header, None
    if header in JUDGED_HEADERS:
        _check_known("header", value)
    return header, _encode(value) or None


def _split_url(text: str, *, is_globbed: bool) -> tuple[str | None, str, str, str | None]:
    """Split a URL as curl does into the scheme, if it has one, host, path and query.

    `is_globbed`: curl takes {} and [] for sets and ranges of URLs.

    Raises UnreadableError.
    """
    match = _URL.fullmatch(text)
    scheme, host, path, query = match.groups() if match else (None, "", "", None)
    rest = f"{path}{query or ''}"
    if _VARIABLE in rest or (_VARIABLE in host and not find_endpoint(_encode(path))):
        _check_known("url", text)
    if _NOT_IN_URL.search(text):
        raise UnreadableError("--url: a space or a control character, which curl refuses")
    if is_globbed:
        if _GLOB.search(rest) or (_GLOB.search(host) and not _ADDRESS.fullmatch(host)):
            raise UnreadableError(
                "--url: {} or [] stand for several URLs; give each, or add --globoff"
            )
        path, query = (part and _ESCAPED_GLOB.sub(r"\1", part) for part in (path, query))
    return scheme and scheme.lower(), host, path or "/", query


def _remove_dot_segments(path: str) -> str:
    """Remove `.` and `..` from a path as curl does (RFC 3986, section 5.2.4)."""
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return f"/{'/'.join(kept)}"
