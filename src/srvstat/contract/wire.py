"""JSON text in, strictly (D9), and JSON text out, as ECMAScript writes it (D7)."""

import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    from json import JSONDecoder

MAX_SAFE_INTEGER = 2**53 - 1
"""The greatest integer that every JSON reader represents exactly (RFC 8259, section 6)."""

UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"})
"""The Unicode categories of what could drive a terminal, or shows nothing that can be known."""


class JsonError(ValueError):
    """A text is not the JSON we take; the message is one line that says where and why."""


def decode(data: bytes) -> Any:
    """Read one JSON value, with nothing coerced and nothing forgiven.

    Refused, besides what is no JSON at all: a byte order mark, invalid UTF-8, a repeated key at
    any depth, NaN and Infinity, and anything but JSON white space after the value.

    Raises JsonError.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonError(f"not UTF-8 at byte {error.start + 1}") from None
    return decode_text(text)


def decode_text(text: str) -> Any:
    """Read one JSON value from text; the rules are those of `decode`."""
    if text.startswith("\ufeff"):
        raise JsonError("starts with a byte order mark")
    from json import JSONDecodeError  # noqa: PLC0415 - see _decoder

    try:
        return _decoder().decode(text)
    except JSONDecodeError as error:
        line = f"line {error.lineno}, " if "\n" in text else ""
        raise JsonError(f"not JSON at {line}column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise JsonError("nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise JsonError(f"the key {quote_value(repeated)} is repeated")
    return found


def _integer(digits: str) -> int | float:
    if digits == "-0":  # ECMAScript's value, and no integer
        return -0.0
    try:
        return int(digits)
    except ValueError:  # Python's limit on the digits it converts
        raise JsonError(f"an integer of {len(digits)} digits") from None


def _constant(name: str) -> NoReturn:
    raise JsonError(f"{name} is not JSON")


@cache
def _decoder() -> "JSONDecoder":
    # A comparison named on the command line reads no JSON, and need not wait for the import.
    from json import JSONDecoder  # noqa: PLC0415

    return JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_constant=_constant)


_ESCAPES = str.maketrans(
    {chr(code): f"\\u{code:04x}" for code in range(0x20)}
    | {"\b": r"\b", "\t": r"\t", "\n": r"\n", "\f": r"\f", "\r": r"\r", '"': r"\"", "\\": r"\\"}
)
"""QuoteJSONString of ECMA-262; what else is to be escaped, a lone surrogate, has no UTF-8."""


def encode(value: Any) -> bytes:
    """Write a value as the bytes of `JSON.stringify`: compact, UTF-8, keys in the given order.

    Takes None, bool, int, float, str and lists, tuples and dicts of them. An int is written as
    it is; JSON's readers hold it exactly up to 2^53.

    Raises ValueError for a number that JSON cannot say and for text with lone surrogates, KeyError
    for a value of any other type.
    """
    return _text(value).encode("utf-8")


class EncodedJson(NamedTuple):
    """A value that `encode_once` has written; `encode` takes it as it is, wherever it stands."""

    text: str


def encode_once(value: Any) -> EncodedJson:
    """Write a value once, to stand in many texts. Takes and raises what `encode` does."""
    return EncodedJson(_text(value))


def _text(value: Any) -> str:
    return _WRITERS[type(value)](value)


def _object_text(members: Mapping[str, Any]) -> str:
    texts = [f"{_string_text(key)}:{_text(value)}" for key, value in members.items()]
    return f"{{{','.join(texts)}}}"


def _string_text(text: str) -> str:
    # Printable is nearly every text, and asking is faster than looking up each character.
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{text.translate(_ESCAPES)}"'


def _array_text(items: Iterable[Any]) -> str:
    return f"[{','.join([_text(item) for item in items])}]"


def format_number(value: float) -> str:
    """Write a double as ECMAScript does.

    The rule is Number::toString of ECMA-262 (also RFC 8785, section 3.2.2.3): the shortest digits
    that read back as the same double, a decimal point from 1e-6 up to below 1e21, and an exponent
    beyond. Python finds the same digits; only their layout differs.

    Raises ValueError for NaN and the infinities.
    """
    if not math.isfinite(value):
        raise ValueError("JSON has no such number")
    text = repr(value)
    if "e" not in text:
        text = text.removesuffix(".0")
        return "0" if text == "-0" else text
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = text.removeprefix("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    point = len(whole) + int(exponent)
    return sign + _placed(digits, point)


def _placed(digits: str, point: int) -> str:
    """Lay out digits whose decimal point stands after the first `point` of them.

    Python writes an exponent from 1e16 on and below 1e-4 only, so the point is never among them.
    """
    if len(digits) <= point <= 21:  # noqa: PLR2004 - ECMA-262's limits, here and below
        return digits.ljust(point, "0")
    if -6 < point <= 0:  # noqa: PLR2004
        return f"0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"


_WRITERS: Mapping[type, Callable[[Any], str]] = {
    str: _string_text,
    int: int.__repr__,
    float: format_number,
    bool: lambda value: "true" if value else "false",
    NoneType: lambda _null: "null",
    dict: _object_text,
    list: _array_text,
    tuple: _array_text,
    EncodedJson: lambda value: value.text,
}


def escape_for_terminal(body: bytes) -> bytes:
    r"""Rewrite a JSON text so that it cannot drive a terminal; its value stays the same.

    DEL, the C1 controls, bidirectional and other format characters and the separators U+2028 and
    U+2029 become `\uXXXX`. In a JSON text they stand inside strings only.
    """
    return "".join(map(_visible, body.decode("utf-8"))).encode("utf-8")


def _visible(character: str) -> str:
    if unicodedata.category(character) not in UNSAFE_CATEGORIES:
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def quote_value(value: Any) -> str:
    """Write a value of a request or a file for a message: as JSON, and cut where it is long."""
    from json import dumps  # noqa: PLC0415 - see _decoder

    text = dumps(value, ensure_ascii=False, default=str)  # TOML has dates, and JSON has none
    # A lone surrogate can stand in a value, and in no text that is written anywhere.
    shown = text.encode("utf-8", "backslashreplace").decode("utf-8")
    longest = 60
    return shown if len(shown) <= longest else f"{shown[:longest]}…"
