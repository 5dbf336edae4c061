"""Read pasted or exported data: JSON, commands, calls, Postman, cassettes and flows."""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from typing import Any, ClassVar

from srvstat.contract import errors, http, wire
from srvstat.contract.errors import SourceError
from srvstat.support import calls, commands, recordings
from srvstat.support.recordings import Exchange, Exchanges, RecordedResponse, Unreadable

MAX_BYTES = 16 << 20

# A command is `curl` before an option, a quoted word or something like a URL; elsewhere, `curl` is
# a word of prose. A prompt (`$ `, `me@host:~# `, `C:\\>`) or a command with a pipe may precede it.
_START = re.compile(
    rf"""^[ \t]*(?:(?:[^\s'"]*\$|\[?[\w.-]+@[^\n'"$#%]*[$#%])[ \t]+
        |(?:PS[ ][^\n">]*|[A-Za-z]:\\[^\n">]*)>[ \t]*)?
    (?:(?P<piped>\w[^\n]*?(?<!\|)\|&?[ \t]*)??(?:\$\w+[ \t]*=[ \t]*)?\(?
        (?:(?P<powershell>{calls.POWERSHELL})
        |(?P<command>curl(?:\.exe)?[ \t]+(?=[-'"$\\^`(]|[^\s:/.]{{0,300}}[:/.]\S))))
    | (?<!def[ ])(?<!function[ ])\b(?P<call>(?:fetch|(?:requests|httpx|session|client)
        \.(?:get|post|put|patch|delete|head|options|request))[ \t]*\()
    | ^[^\n{{]{{0,100}}(?P<entry>\{{"(?:time|document)":[^\n]*)""",
    re.MULTILINE | re.VERBOSE,
)
_QUOTING = re.compile(r"^(?:>[ \t]?|\.{3}[ \t])+", re.MULTILINE)
"""How mails quote lines, and how shells and Python prompt for the rest of a command."""
_NOT_TEXT = re.compile("[\0\udc80-\udcff]")
_NEAR = {
    r"(?m)^type: \w+\.insomnia|^https? .*[:=]": "HTTPie and Insomnia are not read; copy as cURL",
    r'"[A-Z]+ \S+ HTTP/[^"\n]*" [1-5]': "a log has no bodies; run srvstat replay RECORDING"
    " --request-id ID",
    r"\b(?:curl|irm|Invoke-\w+|requests|httpx)\b": "a command or a call needs its URL",
}
"""Texts that resemble unsupported input, and the remedy for each."""
_HEAD = re.compile(
    r"^(?:< )?HTTP/[0-9.]+ ([1-5][0-9]{2})\b[^\n]*\n((?:[^\n{][^\n]*\n)*)", re.MULTILINE
)
_DATE = re.compile(r"^(?:< )?date:[ \t]*([^\n]+)", re.MULTILINE | re.IGNORECASE)
_BODY = re.compile(r'^[^\n"{]{0,80}(\{\s*"(?:data|range|error)"\s*:)', re.MULTILINE)
_STATUS: dict[str, int] = {kind.code: kind.http_status for kind in errors.ApiError.__subclasses__()}


def read_text(title: str, chunks: Iterator[bytes]) -> Exchanges:
    """Read commands, calls and log lines in their order, and skip other lines.

    A response below a command or a call belongs to it.

    Raises SourceError if the text contains no request.
    """
    text = read_bytes(title, chunks).decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    text = _QUOTING.sub("", text)
    following = _START.search(text)
    if text.strip() and not following:
        near = [reason for pattern, reason in _NEAR.items() if re.search(pattern, text)]
        raise SourceError(
            f"{title}: {'; '.join(near) or 'no request found'}; a recording is a HAR file or a"
            " curl command; for numbers without a request, use srvstat when"
        )
    scope, line, counted = calls.Scope(text), 1, 0
    while start := following:
        found = start.start(start.lastgroup or "")
        line, counted = line + text.count("\n", counted, found), found
        place, kind = f"{title}, line {line}", start.lastgroup
        if kind == "command":
            has_input = bool(start["piped"])
            read, at = commands.read_line(title, line, text, found, has_input=has_input)
        elif kind == "powershell":
            read, at = calls.read_powershell(place, text, found)
        elif kind == "call":
            read, at = calls.read_call(place, text, found, scope)
        else:
            entry = start[0][found - start.start() :].encode("utf-8", "surrogateescape")
            one, at = recordings.read_line(place, entry), start.end()
            read = [one] if one else []
        following = _START.search(text, at)
        if _NOT_TEXT.search(text, found, at):
            read = [Unreadable(place, "a NUL character, or not UTF-8")]
        if len(read) == 1 and isinstance(read[0], Exchange) and read[0].response is None:
            response, answered_at = find_response(text[at : following and following.start()])
            read = [replace(read[0], response=response, answered_at=answered_at)]
        yield from read


def find_response(text: str) -> tuple[RecordedResponse | None, int | None]:
    """Find the response below a command, with its head if curl printed it, and its date.

    Without a head, the status is derived from the body.
    """
    head = [None, *_HEAD.finditer(text)][
        -1
    ]  # the last head follows heads of 100 Continue and redirects
    body = _BODY.search(text, head.end() if head else 0)
    date = _DATE.search(head[2]) if head else None
    answered_at = recordings.parse_date(date[1].strip()) if date else None
    if body is None:
        return (RecordedResponse(int(head[1]), None) if head else None), answered_at
    start, end = body.start(1), len(text)
    value: Any = None
    with suppress(ValueError, RecursionError):  # invalid JSON is compared as text
        value, end = json.JSONDecoder().raw_decode(text, start)
    status = int(head[1]) if head else 200
    if head is None and isinstance(value, dict) and isinstance(value.get("error"), dict):
        status = _STATUS.get(str(value["error"].get("code")), 500)
    return RecordedResponse(status, text[start:end].strip().encode("utf-8", "replace")), answered_at


def read_bytes(title: str, chunks: Iterator[bytes]) -> bytes:
    """Return all bytes of an input. Raises SourceError if there are too many."""
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > MAX_BYTES:
            raise SourceError(f"{title}: more than {MAX_BYTES:,} bytes; split it")
    return bytes(body)


def _decode(title: str, text: bytes) -> dict[str, Any]:
    try:
        value = wire.decode(text)
    except wire.JsonError as error:
        raise SourceError(f"{title}: {error}; send the whole text") from None
    return value if isinstance(value, dict) else {}


def read_json(title: str, chunks: Iterator[bytes]) -> Exchanges:
    """Read the body of a Compare Servers request, or of a response.

    The servers and the range of a response's request are inferred from the response.

    Raises SourceError if the text is not valid JSON.
    """
    text = read_bytes(title, chunks).strip()
    value = _decode(title, text)
    if "servers" in value:
        yield replace(recordings.build_comparison(title, [], None), body=text)
        return
    with suppress(UnicodeEncodeError):
        if exchange := _infer_request(title, value):
            yield replace(exchange, response=RecordedResponse(200, text))
            return
    yield Unreadable(title, "a response that names no servers; send the request, too")


def _infer_request(title: str, value: dict[str, Any]) -> Exchange | None:
    """Infer the request of a response. Return None if the response names no servers."""
    data = value.get("data")
    if isinstance(data, dict) and isinstance(data.get("id"), str):
        path = http.SERVERS_PATH + data["id"]
        return recordings.build_exchange(title, "GET", path.encode("utf-8", "replace"), [])
    names = [one.get("serverId") for one in list_objects(value, "data")]
    length = value.get("range")
    if not names or not all(isinstance(each, str) for each in (*names, length)):
        return None
    return recordings.build_comparison(title, [("id", str(name)) for name in names], length)


def read_postman(title: str, chunks: Iterator[bytes]) -> Exchanges:
    """Read a Postman collection's saved responses and other requests, or a newman run.

    Raises SourceError if the text is not valid JSON.
    """
    value = _decode(title, read_bytes(title, chunks))
    run = value.get("run")
    executions = list_objects(run, "executions") if isinstance(run, dict) else ()
    found: list[tuple[Any, Any]] = [(one.get("request"), one.get("response")) for one in executions]
    found += _iter_items(value)
    for number, (request, response) in enumerate(found, 1):
        place = f"{title}, request {number}"
        try:
            yield recordings.read_har_entry(place, _convert_item(request, response))
        except recordings.UnreadableError as error:
            yield Unreadable(place, str(error))
        except (ValueError, AttributeError, TypeError, LookupError):
            yield Unreadable(place, "not a request of a Postman collection 2.1")


def _convert_item(request: Any, response: Any) -> dict[str, Any]:
    """Convert a Postman request and its response, if any, to a HAR entry."""
    url, body = request["url"], request.get("body") or {}
    if isinstance(url, dict):
        path = f"{_join('.', url.get('host'))}/{_join('/', url.get('path'))}"
        query = [(one["key"], one["value"]) for one in _list_enabled(url, "query")]
        url = url.get("raw") or commands.add_query(path, query)
    # A variable such as {{baseUrl}}, or a host without a scheme, precedes the path.
    url = re.sub(r"^(?:https?://[^/]*\}\}|(?!https?://))[^/]*(?=/)", "", url)
    if re.search(r"\{\{[^{}]*\}\}", f"{url}{body.get('raw')}"):
        raise recordings.UnreadableError("a variable {{…}}; replace it with its value")
    headers = _list_headers(request)
    language = body.get("options", {}).get("raw", {}).get("language")
    if language == "json" and not any(one["name"].lower() == "content-type" for one in headers):
        headers.append({"name": "Content-Type", "value": http.JSON_TYPE})  # Postman adds it
    sent = {"method": request["method"], "url": url, "headers": headers}
    sent["postData"] = {"text": body.get("raw")}
    if response is None:
        return {"request": sent}
    body = response.get("body")
    if body is None and response.get("stream") is not None:  # newman stores the body here
        body = bytes(response["stream"]["data"]).decode("utf-8", "replace")
    received = {"headers": _list_headers(response), "content": {"text": body}}
    return {"request": sent, "response": {"status": response["code"], **received}}


def _list_headers(message: dict[str, Any]) -> list[dict[str, str]]:
    enabled = _list_enabled(message, "header")
    return [{"name": one["key"], "value": str(one["value"])} for one in enabled]


def _list_enabled(message: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [one for one in message.get(name) or () if not one.get("disabled")]


def _join(separator: str, parts: str | list[str] | None) -> str:
    return parts if isinstance(parts, str) else separator.join(parts or ())


def _iter_items(value: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield requests and responses: each saved response, or a request without a response."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        saved = list_objects(item, "response")
        for response in saved:
            yield response.get("originalRequest") or item.get("request"), response
        if "request" in item and not saved:
            yield item["request"], None
        waiting += reversed(list_objects(item, "item"))


def list_objects(value: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the objects in a list member, or [] if the member is not a list."""
    found = value.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


_MOST_HEADERS = 1_000


def read_cassette(title: str, chunks: Iterator[bytes]) -> Exchanges:
    """Read the interactions of a YAML or JSON cassette, from VCR.py, Betamax or VCR for Ruby.

    Raises SourceError if the text is invalid or PyYAML is missing.
    """
    text = read_bytes(title, chunks).strip()
    parse = wire.decode if text.startswith(b"{") else _parse_yaml
    needs = "needs PyYAML; install it, or record with serializer='json'"
    value = _parse(title, text, parse, needs)
    found = list_objects(value, "interactions") or list_objects(value, "http_interactions")
    for number, each in enumerate(found, 1):
        place = f"{title}, interaction {number}"
        try:
            at = recordings.parse_date(str(each.get("recorded_at")))  # from Ruby VCR
            sent, received = _convert(each["request"]), _convert(each["response"])
            entry = {"startedDateTime": at and str(at), "request": sent, "response": received}
            yield recordings.read_har_entry(place, entry)
        except (ValueError, AttributeError, TypeError, LookupError):
            yield Unreadable(place, "not an interaction of VCR; record it again")


def _convert(message: Any) -> dict[str, Any]:
    """Convert a cassette's request or response to the members of either in a HAR file."""
    headers = (message["headers"] or {}).items()
    lists = {name: [given] if isinstance(given, str) else given for name, given in headers}
    if sum(map(len, lists.values())) > _MOST_HEADERS:  # a YAML alias repeats a list at no cost
        raise ValueError
    pairs = [(name, value) for name, values in lists.items() for value in values]
    sizes = [int(value) for name, value in pairs if name.lower() == "content-length"]
    body = message["body"] if isinstance(message["body"], dict) else {"string": message["body"]}
    text, encoded = body.get("string"), body.get("base64_string")
    if isinstance(text, bytes):
        encoded = b64encode(text).decode()
    content = {"text": encoded or text, "encoding": encoded and "base64", "size": max([0, *sizes])}
    return {
        "method": str(message.get("method")).upper(),  # Ruby writes symbols
        "url": message.get("uri"),
        "status": (message.get("status") or {}).get("code"),
        "headers": [{"name": name, "value": value} for name, value in pairs],
        "postData": content,
        "content": content,
    }


def read_flows(title: str, chunks: Iterator[bytes]) -> Exchanges:
    """Read a flow file with mitmproxy, if it is installed in the same environment.

    Raises SourceError if the file is damaged or mitmproxy is missing.
    """
    needs = "needs mitmproxy; install it, or run mitmdump -nr FILE --set hardump=customer.har"
    entries = _parse(title, read_bytes(title, chunks), _parse_flows, needs)
    for number, entry in enumerate(entries, 1):
        yield recordings.read_har_entry(f"{title}, flow {number}", entry)


def _parse_yaml(text: bytes) -> Any:
    import yaml  # noqa: PLC0415 - optional

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # as above
        """A loader for text, null and short integers, without merge keys that can double."""

        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

        def flatten_mapping(self, node: Any) -> None:
            """Leave a mapping unchanged."""

    for tag, pattern in (("null", "null|~|"), ("int", "-?[0-9]{1,15}")):
        resolver = re.compile(rf"(?:{pattern})\Z")
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", resolver, [None])
    return dict(yaml.load(text, Loader))  # noqa: S506 - it is a safe loader


def _parse_flows(text: bytes) -> Any:
    from mitmproxy.addons.savehar import SaveHar  # noqa: PLC0415 - optional
    from mitmproxy.io import FlowReader  # noqa: PLC0415 - optional

    return SaveHar().make_har([*FlowReader(BytesIO(text)).stream()])["log"]["entries"]


def _parse(title: str, text: bytes, parse: Callable[[bytes], Any], needs: str) -> Any:
    """Parse a text with an optional library.

    Raises SourceError if it is invalid or not installed.
    """
    try:
        return parse(text)
    except ImportError:
        raise SourceError(f"{title}: {needs}") from None
    except Exception:  # noqa: BLE001 - the libraries raise errors of many kinds
        reason = "damaged, or of a newer version; ask for it again, in JSON or as HAR"
        raise SourceError(f"{title}: {reason}") from None
