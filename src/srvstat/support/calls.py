"""Read calls of requests, httpx and fetch, and commands of PowerShell, without running them.

Python's parser reads all calls, because a JavaScript object looks like a dictionary. A variable has
the value that the text above the call assigns to it, unless something else may have changed it. Any
other expression is a `VARIABLE`.
"""

import ast
import json
import re
import warnings
from typing import Any

from srvstat.contract import read_package_file
from srvstat.support import commands
from srvstat.support.commands import VARIABLE
from srvstat.support.recordings import Unreadable, UnreadableError

_MAX_COST = 1 << 28
"""The maximum number of characters to search for the values of variables.

Without it, variables that refer to each other often would take too long.
"""
# A line that continues a call has keyword arguments, which are written without spaces.
_LINE = r"(?:(?<![(,]\n)^|^(?=[^\n=]{0,99}[ \t]=))[ \t]*+"
_DECLARED = r"(?:export[ \t]+)?(?:(?:const|let|var)[ \t]+)?"
_ASSIGNMENT = rf"{_LINE}{_DECLARED}(?P<name>NAME)(?:[ \t]*+:[^\n=]++)?[ \t]*+=(?!=)\s*"
"""Matches an assignment whose value is used."""
_CHANGE = rf"""(?mx)
    (?<![\w.])NAME\b (?:\.\w++|\[[^\]\n]{{0,99}}\])*? (?:
        \.(?:append|clear|delete|extend|insert|pop\w*|push|remove|set\w*|update)\(
        | [ \t]*+ (?:\+\+|--|(?:[-+*/%&|^@:]|//|\*\*|<<|>>|&&|\|\||\?\?)=(?!=))
        | (?<!NAME)[ \t]*+=(?!=) | [\w \t,{{}}\[\]]{{0,99}}+\)?[ \t]*=>)
    | \b(?:(?:def|lambda|as|del|delete)[ \t]|(?:function|assign)\b)[^\n]{{0,99}}?(?<![\w.])NAME\b
    | \bfor\b (?:(?!\b(?:in|of)\b)[^\n]){{0,99}}? (?<![\w.])NAME\b
    | [;:)}}{{=][ \t]*+{_DECLARED}NAME[ \t]*+=(?![=>])
    | {_LINE}\(?[^\n="'()]{{0,99}}?(?<![\w.])NAME\b[^\n="'()]{{0,99}}\)?[ \t]*(?<![<>!])=(?!=)
"""
"""Matches other changes of a variable: operators, items, methods, parameters, loops and tuples."""
_PIECE = re.compile(
    r'''(?P<text>("""|\'\'\')(?:(?!\2)[^\\]|\\.)*+\2|"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+')'''
    r"""|\#[^\n]*|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<end>[\n;])|(?P<unclosed>["'`])""",
    re.DOTALL,
)
_STRING = r"""(?:'(?:[^']|'')*+'|"(?:[^"`]|`.|"")*+")"""
_TABLE = rf"@\{{(?:[^\"'}}]|{_STRING})*\}}"
POWERSHELL = (
    r"(?i:Invoke-RestMethod|Invoke-WebRequest|irm|iwr)(?=[ \t]+(?:[-'\"$]|[\w.]+[:./]))"
    r"|(?:curl|wget)(?=[^\n|;]{0,2000}[ \t]-(?i:Uri|Method|Headers|Body|ContentType)[ \t])"
)
"""The PowerShell commands that send requests; curl can be an alias."""
# Not possessive: Python before 3.11.5 then skips the quote of a string that is not closed.
_STATEMENT = re.compile(rf"(?:`.|{_STRING}|{_TABLE}|[^\n\"'`;|@{{}}])*", re.DOTALL)
_ARGUMENT = re.compile(
    r"(?<![\w`-])(?:-([A-Za-z]\w*)(:?)|(?:\(\[[\w.]+\]::UTF8\.GetBytes\()?"
    rf"({_STRING}|{_TABLE}|[^\s`'\"@()-][^\s`'\"@()]*))",
    re.DOTALL,
)
"""Matches the name of a parameter, or a value."""
_POWERSHELL_PARAMETERS = read_package_file("support/powershell_parameters.txt").decode()
"""The names of PowerShell parameters. A parameter with `=` takes a value."""
_PAIR = re.compile(rf"({_STRING}|(?<![\w-])[\w-]++)\s*+=\s*+({_STRING}|[^\s;}}]+)", re.DOTALL)
_ESCAPE = re.compile(
    r"""`(.)|"(")|\$\(\[char\]([0-9]{1,5})\)|\$(?:\w[\w:]*|[({][^)}]*[)}])""", re.DOTALL
)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t"}
_LITERALS = {"true": True, "false": False, "null": None, "undefined": None}
_PARAMETERS = {"get": ("url", "params"), "request": ("method", "url"), "fetch": ("url", "options")}
_UNPACKED = ast.Constant(VARIABLE)
"""The pseudo-key of a spread (**other or ...other)."""


class Scope:
    """The values that a text assigns to variables, for the calls below the assignments."""

    def __init__(self, text: str) -> None:
        self._text, self._left = text, _MAX_COST

    def find(self, name: str, before: int) -> Any:
        """Return the last value of a variable before a place.

        Raises UnreadableError if it is unreadable.
        """
        self._left -= before
        if self._left < 0:
            raise UnreadableError("too many variables; write their values into the call")
        assignment = re.compile(_ASSIGNMENT.replace("NAME", name), re.MULTILINE)
        found = [*assignment.finditer(self._text, 0, before)]
        if not found:
            return VARIABLE
        start = found[-1].end()
        end = _find_end(self._text, start, is_call=False)
        self._left -= 16 * (before - end)  # searching for changes takes longer
        is_inner = self._measure_indent(found[-1].start("name")) > self._measure_indent(before)
        change = re.compile(_CHANGE.replace("NAME", name))
        if is_inner or change.search(self._text, end, before):
            return VARIABLE
        return self.evaluate(_parse(self._text[start:end]), start)

    def _measure_indent(self, at: int) -> int:
        """Return the indentation of a line, because an inner block may not have run."""
        line = self._text[self._text.rfind("\n", 0, at) + 1 : at]
        return len(line) - len(line.lstrip())

    def evaluate(self, node: ast.expr, before: int) -> Any:  # noqa: PLR0911 - one for each kind
        """Return the value of an expression at a place.

        Raises UnreadableError if it is unreadable.
        """
        match node:
            case ast.Constant(value=value):
                return _join_surrogates(value) if isinstance(value, str) else value
            case ast.Name(id=name):
                return _LITERALS[name] if name in _LITERALS else self.find(name, before)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self.evaluate(item, before) for item in items]
            case ast.Dict(keys=keys, values=values):
                names = [  # in JavaScript, a bare name is a key
                    each.id if isinstance(each, ast.Name) else self.evaluate(each, before)
                    for each in (key or _UNPACKED for key in keys)
                ]
                return dict(zip(names, (self.evaluate(one, before) for one in values), strict=True))
            case ast.Call(func=ast.Attribute(attr="dumps" | "stringify"), args=[value, *_]):
                return _dump(self.evaluate(value, before))
            case ast.JoinedStr(values=parts):
                return "".join(str(self.evaluate(part, before)) for part in parts)
            case (
                ast.FormattedValue(value=value, conversion=-1, format_spec=None)
                | ast.Call(func=ast.Attribute(value=value, attr="encode"))
            ):
                return self.evaluate(value, before)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self.evaluate(left, before) + self.evaluate(right, before)
        return VARIABLE


def read_call(place: str, text: str, at: int, scope: Scope) -> commands.Found:
    """Read a call. Return its request, or the reason why it can't be read, and its end."""
    end = _find_end(text, at, is_call=True)
    function = text[at:end].partition("(")[0].strip()
    try:
        options = _list_options(function, _parse(text[at:end]), scope, at)
        return [*commands.build_requests(place, options)], end
    except UnreadableError as error:
        reason = str(error)
    except (
        AttributeError, LookupError, MemoryError, RecursionError, SyntaxError, TypeError, ValueError
    ):  # fmt: skip
        reason = "not a whole call with its values; write them into it, or copy it as cURL"
    return [Unreadable(place, f"{function}: {reason}")], end


def _list_options(function: str, call: Any, scope: Scope, at: int) -> commands.Options:
    """Return the options of a call such as `requests.post(url, json={…})` or `fetch(url, {…})`."""
    name = function.rpartition(".")[2]
    order = _PARAMETERS.get(name, ("url", "data", "json"))
    given = dict(zip(order, [scope.evaluate(one, at) for one in call.args], strict=False))
    given |= {one.arg or VARIABLE: scope.evaluate(one.value, at) for one in call.keywords}
    if name == "fetch":
        given = {"method": "GET", **given, **given.get("options", {})}
    if VARIABLE in given or "files" in given:
        raise UnreadableError("options in a variable or a file; write them into the call")
    body, kind = given.get("body", given.get("content")), ""
    if given.get("json") is not None:
        body, kind = _dump(given["json"]), commands.JSON_TYPE
    elif (body := given.get("data", body)) and not isinstance(body, str):
        body, kind = commands.encode_form(body), commands.FORM_TYPE
    headers = given.get("headers") or {}
    commands.check_known("headers", "".join(headers))
    url = commands.add_query(given["url"], given.get("params"))
    method, pairs = given.get("method", name).upper(), headers.items()
    return commands.list_options(method, url, pairs, body, kind)


def read_powershell(place: str, text: str, at: int) -> commands.Found:
    """Read a PowerShell command.

    Return its request, or the reason why it can't be read, and its end.
    """
    statement = _STATEMENT.match(text, at, at + commands.MAX_LINE_LENGTH)
    words, end = (statement[0], statement.end()) if statement else ("", at)
    rest = _ARGUMENT.sub("", words)
    if re.search("[($@{]", rest) or text[end : end + 1] not in ("", *"\n;|"):
        reason = "an expression, or a quote that is not closed; write the values as text"
    else:
        try:
            options = _list_parameters(_read_parameters(words))
            return [*commands.build_requests(place, options)], end
        except UnreadableError as error:
            reason = str(error)
    return [Unreadable(place, reason)], end


def _read_parameters(words: str) -> dict[str, str]:
    """Return the values of parameters, whose names may be abbreviated. Raises UnreadableError."""
    given: dict[str, str] = {}
    name = "uri"
    for short, colon, value in _ARGUMENT.findall(words)[1:]:
        if not short:
            given.setdefault(name, value)
            name = "uri"
        elif found := re.search(rf"\b({short.lower()}\w*)(=?)", _POWERSHELL_PARAMETERS):
            name = found[1] if colon or found[2] else "uri"
        else:
            raise UnreadableError(f"-{short[:40]}: not a known parameter; use -Method or -Headers")
    return given


def _list_parameters(given: dict[str, str]) -> commands.Options:
    if "infile" in given or "form" in given:
        raise UnreadableError(f"-InFile, -Form: {commands.NOT_READ}")
    method, body = _unquote(given.get("method", "GET")).upper(), given.get("body")
    if body is not None:
        is_table = body.startswith("@")
        body = commands.encode_form(_read_table(body)) if is_table else _unquote(body)
    headers, kind = given.get("headers", ""), given.get("contenttype", commands.FORM_TYPE)
    commands.check_known("headers", _unquote(headers))
    url, pairs = _unquote(given.get("uri", "")), _read_table(headers)
    options = commands.list_options(method, url, pairs, body, _unquote(kind))
    return [*options, ("get", "")] if method == "GET" else options


def _read_table(text: str) -> list[tuple[str, str]]:
    return [(_unquote(name), _unquote(value)) for name, value in _PAIR.findall(text)]


def _unquote(text: str) -> str:
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    if text.startswith('"'):
        return _join_surrogates(_ESCAPE.sub(_decode_escape, text[1:-1]))
    return VARIABLE if text.startswith(("$", "(")) else text


def _decode_escape(escape: re.Match[str]) -> str:
    letter, quote, code = escape.groups()
    return _LETTERS.get(letter, letter) or quote or (chr(int(code)) if code else VARIABLE)


def _join_surrogates(text: str) -> str:
    """Join surrogate pairs, which JSON and PowerShell use to escape some characters."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _dump(value: Any) -> str:
    """Encode a value as JSON. Variables in it remain variables."""
    return json.dumps(value).replace("\\u0000", VARIABLE)


def _parse(text: str) -> ast.expr:
    with warnings.catch_warnings(action="ignore"):  # about escapes such as \d
        return ast.parse(text.strip(), mode="eval").body


def _find_end(text: str, at: int, *, is_call: bool) -> int:
    """Return the end of a call or a value, or the place of its first error."""
    depth, limit = 0, min(at + commands.MAX_LINE_LENGTH, len(text))
    for piece in _PIECE.finditer(text, at, limit):
        kind = piece.lastgroup
        depth += (kind == "open") - (kind == "close")
        if kind == "unclosed" or depth < 0 or (kind == "end" and depth == 0):
            return piece.start()
        if kind == "close" and depth == 0 and is_call:
            return piece.end()
    return limit
