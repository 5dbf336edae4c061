"""Read cassettes of VCR and flows of mitmproxy, converted to entries of a HAR file."""

from base64 import b64encode
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

from srvstat.contract import wire
from srvstat.contract.errors import SourceError
from srvstat.support.pasted import list_objects, read_bytes
from srvstat.support.recordings import Exchange, Unreadable, parse_date, read_har_entry


def read_cassette(title: str, chunks: Iterator[bytes]) -> Iterator[Exchange | Unreadable]:
    """Read the interactions of a cassette in YAML or JSON: of VCR.py, Betamax or VCR for Ruby.

    Raises SourceError.
    """
    text = read_bytes(title, chunks).strip()
    parse = wire.decode if text.startswith(b"{") else _parse_yaml
    needs = "needs PyYAML; install it, or record with serializer='json'"
    value = _parse(title, text, parse, needs)
    found = list_objects(value, "interactions") or list_objects(value, "http_interactions")
    for number, each in enumerate(found, 1):
        place = f"{title}, interaction {number}"
        try:
            at = parse_date(str(each.get("recorded_at")))  # of Ruby
            sent, received = _convert(each["request"]), _convert(each["response"])
            entry = {"startedDateTime": at and str(at), "request": sent, "response": received}
            yield read_har_entry(place, entry)
        except (ValueError, AttributeError, TypeError, LookupError):
            yield Unreadable(place, "not an interaction of VCR; record it again")


def _convert(message: Any) -> dict[str, Any]:
    """Return a request or a response of a cassette with the members of both in a HAR file."""
    headers = (message["headers"] or {}).items()
    lists = {name: [given] if isinstance(given, str) else given for name, given in headers}
    pairs = [(name, value) for name, values in lists.items() for value in values]
    sizes = [int(value) for name, value in pairs if name.lower() == "content-length"]
    body = message["body"] if isinstance(message["body"], dict) else {"string": message["body"]}
    text, encoded = body.get("string"), body.get("base64_string")
    if isinstance(text, bytes):
        encoded = b64encode(text).decode()
    content = {"text": encoded or text, "encoding": encoded and "base64", "size": max([0, *sizes])}
    return {
        "method": str(message.get("method")).upper(),  # Ruby has symbols
        "url": message.get("uri"),
        "status": (message.get("status") or {}).get("code"),
        "headers": [{"name": name, "value": value} for name, value in pairs],
        "postData": content,
        "content": content,
    }


def read_flows(title: str, chunks: Iterator[bytes]) -> Iterator[Exchange | Unreadable]:
    """Read a flow file with mitmproxy, if it is installed in the same environment.

    Raises SourceError.
    """
    needs = "needs mitmproxy; install it, or run mitmdump -nr FILE --set hardump=customer.har"
    entries = _parse(title, read_bytes(title, chunks), _parse_flows, needs)
    for number, entry in enumerate(entries, 1):
        yield read_har_entry(f"{title}, flow {number}", entry)


def _parse_yaml(text: bytes) -> Any:
    import yaml  # noqa: PLC0415 - optional

    return dict(yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))  # noqa: S506 - safe


def _parse_flows(text: bytes) -> Any:
    from mitmproxy.addons.savehar import SaveHar  # noqa: PLC0415 - optional
    from mitmproxy.io import FlowReader  # noqa: PLC0415 - optional

    return SaveHar().make_har([*FlowReader(BytesIO(text)).stream()])["log"]["entries"]


def _parse(title: str, text: bytes, parse: Callable[[bytes], Any], needs: str) -> Any:
    """Parse a text with an optional library. Raises SourceError."""
    try:
        return parse(text)
    except ImportError:
        raise SourceError(f"{title}: {needs}") from None
    except Exception:  # noqa: BLE001 - the libraries raise errors of many kinds
        reason = "damaged, or of a newer version; send it again, in JSON or as HAR"
        raise SourceError(f"{title}: {reason}") from None
