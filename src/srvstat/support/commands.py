"""Read curl commands, and build the requests of any client.

One pass over a line decodes quotes and escapes, replaces variables, drops comments and marks the
ends of words. The request of every client becomes options as curl names them.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from getopt import GetoptError, getopt
from typing import Any
from urllib.parse import quote_plus, urlencode

from srvstat.contract import read_package_file
from srvstat.contract.http import JUDGED_HEADERS, KEY_NAME, Headers, find_endpoint
from srvstat.support import recordings
from srvstat.support.recordings import Exchange, Unreadable, UnreadableError

Found = tuple[list[Exchange | Unreadable], int]
"""A reader's result, and the place at which to continue."""

Options = Sequence[tuple[str, str]]
"""Options by curl's long names, with their arguments.

`content-type` is the type that a client sends if no header sets another type; "" means none.
"""

MAX_LINE_LENGTH = 1 << 18

VARIABLE = "\0"
"""Replaces a shell variable or a substitution, whose value is unknown. Arguments contain no NUL."""
_TARGET, _GAP, _EMPTY = "\ud800", "\ud801", "\ud802"
"""Marks for the file name after a redirection, blanks between words, and an empty quoted part.

Decoded text contains none of these characters.
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
_NOT_PLAIN = "a substitution, a backtick or a bracket outside quotes; write or quote its value"

# cmd.exe replaces %ID% if the variable is set; otherwise the text remains. In a URL, %C3%A9 is an
# encoded letter, and %C3% in it is not a variable: two hexadecimal digits follow both percent
# signs.
_CMD_VARIABLE = r"(?ai:%(?:(?![0-9a-f]{2})[a-z_]\w*%|[a-z_]\w*%(?![0-9a-f]{2})))"
# A line is for cmd.exe if it contains ^", ends in ^, or contains a %VARIABLE% and no apostrophe,
# backtick or dollar sign, which suggest a POSIX shell, as in $(date +%Y%m%d).
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

_CURLY = "\u201c\u201d\u201e\u2018\u2019"
NOT_READ = "files and standard input are not read; write the contents into the command"

_OPTIONS = read_package_file("support/curl_options.txt").decode().split()
"""The options that browsers and people use, in getopt form: a letter, a name, and `=` if the option
has an argument.
"""
_LONG_OPTIONS = [option.split(":")[-1] for option in _OPTIONS]
_LETTERS = {name[0]: name[2:] for name in _OPTIONS if name[1] == ":"}
_SHORT_OPTIONS = "".join(f"{key}:" if _LETTERS[key].endswith("=") else key for key in _LETTERS)
_OPTION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,39}")

_FILES = ("config", "etag-compare", "netrc", "netrc-file", "netrc-optional", "upload-file")
"""Options with which curl always reads a file."""
_FILES_AFTER_AT = ("data", "data-ascii", "data-binary", "header", "json", "proxy-header", "url")
"""Options with which curl reads a file if the argument begins with `@`."""
_DATA = ("data", "data-ascii", "data-binary", "data-raw", "data-urlencode", "json")
FORM_TYPE, JSON_TYPE = "application/x-www-form-urlencoded", "application/json"

_URL = re.compile(r"(?i:https?://)?([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.DOTALL)
_NOT_IN_URL = re.compile(r"[\x01-\x20\x7f]")


def read_line(title: str, line: int, text: str, at: int, *, has_input: bool) -> Found:
    """Read the commands from a place to the end of the line in which the last of them ends.

    - `has_input`: whether the first command reads a pipe or a file.

    Returns the requests, and the place at which to continue. After an error, other commands may
    begin in the next line.
    """
    read: list[Exchange | Unreadable] = []
    parts: list[str] = []
    first, place, limit = at, f"{title}, line {line}", at + MAX_LINE_LENGTH
    pattern, rewrite, split = _SHELL, _rewrite_shell, _split_words
    if _CMD_LINE.match(text, at):
        pattern, rewrite, split = _CMD, _rewrite_cmd, _split_cmd_words
    is_end = False
    try:
        while not is_end:
            is_end = text[at : at + 1] in ("", "\n")
            kind, part, at = (
                ("operator", "", at) if is_end else _match_piece(pattern, text, at, limit)
            )
            if kind == "operator":
                read += _read_command(place, split("".join(parts)), has_input=has_input)
                parts, has_input = [], part in ("|", "|&")
                place = f"{title}, line {line + text.count(chr(10), first, at)}"
            elif kind == "redirection":
                parts.append(_TARGET)
                has_input = has_input or "<" in part
            else:
                parts.append(rewrite(kind, part))
    except UnreadableError as error:
        end = text.find("\n", at)
        return [Unreadable(f"{title}, line {line}", str(error))], len(text) if end < 0 else end
    return read, at


def _match_piece(pattern: re.Pattern[str], text: str, at: int, limit: int) -> tuple[str, str, int]:
    """Return the kind of the next piece, its text and its end.

    Raises UnreadableError if it is invalid.
    """
    if at >= limit:
        raise UnreadableError(f"longer than {MAX_LINE_LENGTH:,} characters")
    if piece := pattern.match(text, at, limit):
        kind = piece.lastgroup or ""
        return kind, piece[kind], piece.end()
    is_plain = not re.match(r"\$?[({]|`", text[at : at + 2])
    raise UnreadableError(_NOT_CLOSED if is_plain else _NOT_PLAIN)


def _rewrite_shell(kind: str, part: str) -> str:
    """Decode a part of a line, and insert the marks for `_split_words`."""
    match kind:
        case "ansi":
            part = _ANSI_ESCAPE.sub(_decode_escape, part)
            if "\0" in part:
                raise UnreadableError("a NUL character")
        case "double":
            part = _IN_DOUBLE_QUOTES.sub(_decode_double_quotes, part)
        case "variable":
            return VARIABLE
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
        return VARIABLE
    if escaped:
        return escaped.strip("\n")
    raise UnreadableError(_NOT_PLAIN)


def _split_words(text: str) -> list[str]:
    words = (word.partition(_TARGET)[0] for word in text.split(_GAP))
    return [word.replace(_EMPTY, "") for word in words if word]


def _rewrite_cmd(kind: str, part: str) -> str:
    return part if kind == "escaped" else re.sub(_CMD_VARIABLE, VARIABLE, part)


def _split_cmd_words(text: str) -> list[str]:
    """Split a command by the rules of the C runtime, after cmd.exe has removed carets.

    A backslash escapes a quote, or another backslash before a quote. A doubled quote inside quotes
    is a literal quote.
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


def _read_command(place: str, words: list[str], *, has_input: bool) -> list[Exchange | Unreadable]:
    """Read the words of a curl command. Other programs send no requests."""
    if words[:1] not in (["curl"], ["curl.exe"]):
        return []
    reason = None
    if any(word[:1] in tuple(_CURLY) for word in words):
        reason = "curly quotes; replace them with straight quotes"
    try:
        requests = [*build_requests(place, _read_curl(words[1:]))]
    except UnreadableError as error:
        reason = reason or str(error)
    reason = reason or (f"a pipe or <: {NOT_READ}" if has_input else None)
    return [Unreadable(place, reason)] if reason else [*requests]


def _read_curl(words: Iterable[str]) -> Options:
    """Return the options by long name; a bare URL is a `url`.

    Raises UnreadableError for unknown options.
    """
    options: list[tuple[str, str]] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            options += (("url", url) for url in rest)
        else:
            options += _read_options(word, rest)
    return options


def _read_options(word: str, rest: Iterator[str]) -> list[tuple[str, str]]:
    """Read a URL, a long option, or short options behind one hyphen.

    The last option's argument may be the next word of `rest`.
    """
    hyphens = "--" if word.startswith("--") else "-"
    if hyphens == "--":  # unlike getopt, curl takes `=` as a part of the name
        word = word.replace("=", "\0")
    try:
        pairs, left = getopt([word, ""], _SHORT_OPTIONS, _LONG_OPTIONS)
    except GetoptError as error:
        # The text after an option's name can be a key: `--X-Gateway-Key:…`.
        name = _OPTION_NAME.match(error.opt)
        raise UnreadableError(f"unknown option {hyphens}{name[0] if name else '…'}") from None
    if not left:  # getopt took the empty word for the argument
        key, argument = pairs.pop()[0], next(rest, None)
        if argument is None:
            raise UnreadableError(f"{key}: missing argument")
        pairs.append((key, argument))
    pairs += (("--url", url) for url in left[:-1])
    return [(key[2:] or _LETTERS[key[1:]].rstrip("="), argument) for key, argument in pairs]


def encode_form(pairs: Any) -> str:
    """Encode pairs or a mapping as a form. Variables in them remain variables."""
    if isinstance(pairs, dict):  # requests omits None, and repeats the name for a list
        pairs = {name: value for name, value in pairs.items() if value is not None}
    return urlencode(pairs, doseq=True).replace("%00", VARIABLE)


def add_query(url: str, query: Any) -> str:
    """Add parameters, as pairs, a mapping or text, to a URL."""
    text = query if isinstance(query, str) else encode_form(query or ())
    return f"{url}{'&' if '?' in url else '?'}{text}" if text else url


def list_options(
    method: str, url: str, headers: Iterable[tuple[str, Any]], body: str | None, kind: str = ""
) -> Options:
    """Return the options for the request of a client that adds only a content type."""
    options = [("request", method), ("url", url), ("content-type", kind)]
    options += (("header", f"{name}: {value}") for name, value in headers)
    return options if body is None else [*options, ("data-raw", body)]


def build_requests(place: str, options: Sequence[tuple[str, str]]) -> Iterator[Exchange]:
    """Build a request for each URL, with the same options.

    Raises UnreadableError if an option can't be represented.
    """
    given, data = dict(options), None
    for name, argument in options:
        if _names_file(name, argument):
            raise UnreadableError(f"--{name}: {NOT_READ}")
        if name in _DATA:
            joint = "&" if data and name != "json" else ""
            data = f"{data or ''}{joint}{_build_data(name, argument)}"
    body = None if data is None or "get" in given else _encode(data)
    if "url" not in given:
        raise UnreadableError("no URL")
    method = "HEAD" if "head" in given else "GET" if body is None else "POST"
    method = check_known("request", given.get("request") or method)
    method = _encode(method).decode("utf-8", "backslashreplace")
    lines = [argument for name, argument in options if name == "header"]
    for url in (argument for name, argument in options if name == "url"):
        host, path, query = _split_url(url)
        headers = _build_headers(lines, given, host, body)
        is_other = host.endswith(":") and path.startswith("//")  # as in wss://…
        full = _encode(host if is_other else f"http://{host}{path}")
        exchange = recordings.build_exchange(place, method, full, headers)
        queries = "&".join(filter(None, (query, data if "get" in given else None)))
        head = exchange.head._replace(query=_encode(queries))
        yield replace(exchange, head=head, body=body or b"")


def _build_headers(
    lines: Sequence[str], given: Mapping[str, str], host: str, body: bytes | None
) -> Headers:
    """Build all headers that a client sends: the given headers, and the defaults for others."""
    sent = [*map(_split_header, lines)]
    names = {name for name, _ in sent}
    defaults = {name: given.get(name, "") for name in ("cookie", "referer", "user", "user-agent")}
    if body is not None or "json" in given:
        kind = JSON_TYPE if "json" in given else FORM_TYPE
        defaults["content-type"] = given.get("content-type", kind)
        defaults["content-length"] = "" if body is None else str(len(body))
    for name, value in {"host": host, **defaults}.items():
        sent += [] if name.encode() in names else [(name.encode(), _encode(value))]
    return recordings.keep_judged((name, value) for name, value in sent if value)


def _names_file(name: str, argument: str) -> bool:
    """Return whether an option makes curl read a file or standard input.

    The command is untrusted: curl would read a file of the person who replays it, and the output
    would reveal it.
    """
    if name in _FILES or (name in _FILES_AFTER_AT and argument.startswith("@")):
        return True
    if name == "cookie":  # a file unless it contains a cookie; an empty name means no file
        return argument != "" and "=" not in argument and VARIABLE not in argument
    return name == "data-urlencode" and "@" in argument and "=" not in argument


def _build_data(name: str, argument: str) -> str:
    """Return the data that an option adds to the body or, with -G, to the query.

    Raises UnreadableError if the data contain a variable.
    """
    check_known(name, argument)
    if name != "data-urlencode":
        return argument
    label, _, content = argument.partition("=") if "=" in argument else ("", "", argument)
    encoded = quote_plus(content, errors="surrogateescape")
    return f"{label}={encoded}" if label else encoded


def check_known(name: str, argument: str) -> str:
    """Return the argument of an option. Raises UnreadableError if it contains a variable."""
    if VARIABLE in argument:
        raise UnreadableError(f"{name}: a variable or substitution; replace it with its value")
    return argument


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _split_header(line: str) -> tuple[bytes, bytes | None]:
    """Split a header. The value is None if the header is removed or its value is unknown."""
    name, _, value = line.partition(":")
    check_known("header", name)
    header, value = _encode(name.strip().lower()), value.strip()
    if VARIABLE in value and header == KEY_NAME:
        return header, None
    if header in JUDGED_HEADERS:
        check_known("header", value)
    return header, _encode(value) or None


def _split_url(text: str) -> tuple[str, str, str | None]:
    """Split a URL into the host, the path and the query.

    Raises UnreadableError if it is invalid.
    """
    match = _URL.fullmatch(text)
    host, path, query = match.groups() if match else ("", "", None)
    rest = f"{path}{query or ''}"
    if VARIABLE in rest or (VARIABLE in host and not find_endpoint(_encode(path))):
        check_known("url", text)
    if _NOT_IN_URL.search(text):
        raise UnreadableError("url: contains a space or control character; percent-encode it")
    return host, path or "/", query
