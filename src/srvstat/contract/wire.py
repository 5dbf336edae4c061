"""Decode JSON strictly (D9) and encode it as ECMAScript does (D7)."""

import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from json import JSONDecoder


MAX_SAFE_INTEGER = 2**53 - 1
"""The highest integer that every JSON reader represents exactly (RFC 8259, section 6)."""

UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"})
"""Unicode categories of characters that could control a terminal or have no defined appearance."""


class JsonError(ValueError):
    """The text is not acceptable JSON. The message is one line with the place and the reason."""


def decode(data: bytes, *, convert_number: Callable[[str], Any] | None = None) -> Any:
    """Decode one JSON value. `convert_number` converts the text of each number.

    Besides invalid JSON, rejects a byte order mark, invalid UTF-8, a repeated key at any depth, NaN
    and Infinity, and anything but JSON white space after the value.

    Raises JsonError if the data are rejected.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonError(f"not UTF-8 at byte {error.start + 1}") from None
    return decode_text(text, convert_number=convert_number)


def decode_text(text: str, *, convert_number: Callable[[str], Any] | None = None) -> Any:
    """Decode one JSON value from text, by the rules of `decode`. Raises JsonError likewise."""
    if text.startswith("\ufeff"):
        raise JsonError("starts with a byte order mark")
    from json import JSONDecodeError  # noqa: PLC0415 - see get_decoder

    try:
        return get_decoder(convert_number).decode(text)
    except JSONDecodeError as error:
        line = f"line {error.lineno}, " if "\n" in text else ""
        raise JsonError(f"not JSON at {line}column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise JsonError("nested too deeply") from None


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise JsonError(f"the key {quote_value(repeated)} is repeated")
    return members


def _parse_integer(digits: str) -> int | float:
    if digits == "-0":  # negative zero in ECMAScript, which an int can't represent
        return -0.0
    try:
        return int(digits)
    except ValueError:  # more digits than Python converts
        raise JsonError(f"an integer of {len(digits)} digits is too long") from None


def _reject_constant(name: str) -> NoReturn:
    raise JsonError(f"{name} is not JSON")


@cache
def get_decoder(convert_number: Callable[[str], Any] | None) -> "JSONDecoder":
    """Return the decoder of `decode`, which can convert the text of each number.

    It raises JSONDecodeError, or JsonError for invalid JSON that Python accepts.
    """
    # Most commands decode no JSON and start faster without the import.
    from json import JSONDecoder  # noqa: PLC0415

    return JSONDecoder(
        object_pairs_hook=_build_object,
        parse_int=convert_number or _parse_integer,
        parse_float=convert_number,
        parse_constant=_reject_constant,
    )


_ESCAPES = str.maketrans(
    {chr(code): f"\\u{code:04x}" for code in range(0x20)}
    | {"\b": r"\b", "\t": r"\t", "\n": r"\n", "\f": r"\f", "\r": r"\r", '"': r"\"", "\\": r"\\"}
)
"""The escapes of QuoteJSONString (ECMA-262). Lone surrogates need none: UTF-8 can't encode them."""


def encode(value: Any) -> bytes:
    """Encode a value to the bytes of `JSON.stringify`: compact, UTF-8, keys in the given order.

    Accepts None, bool, int, float, str, EncodedJson, and lists, tuples and dicts of these. Integers
    are written in full; other JSON readers are exact up to 2^53.

    Raises ValueError for NaN, an infinity or a lone surrogate, and KeyError for any other type.
    """
    return _encode_value(value).encode("utf-8")


class EncodedJson:
    """An encoded value, which `encode` copies unchanged at any depth."""

    # Not a tuple or a dataclass, because pydantic would dump those as an array or an object.
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def encode_once(value: Any) -> EncodedJson:
    """Encode a value for repeated use. Accepts and raises the same as `encode`."""
    return EncodedJson(_encode_value(value))


def _encode_value(value: Any) -> str:
    return _ENCODERS[type(value)](value)


def _encode_object(members: Mapping[str, Any]) -> str:
    texts = [f"{_encode_string(key)}:{_encode_value(value)}" for key, value in members.items()]
    return f"{{{','.join(texts)}}}"


def _encode_string(text: str) -> str:
    # Nearly all text is printable, and this check is faster than translating each character.
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{text.translate(_ESCAPES)}"'


def _encode_array(items: Iterable[Any]) -> str:
    return f"[{','.join([_encode_value(item) for item in items])}]"


def format_number(value: float) -> str:
    """Format a double as ECMAScript does.

    Follows Number::toString of ECMA-262 (also RFC 8785, section 3.2.2.3): the shortest digits that
    parse to the same double, in decimal notation from 1e-6 up to but excluding 1e21, otherwise with
    an exponent. `repr` gives the same digits in another layout.

    Raises ValueError for NaN and the infinities.
    """
    if not math.isfinite(value):
        raise ValueError("not a JSON number: NaN or infinite")
    text = repr(value)
    if "e" not in text:
        text = text.removesuffix(".0")
        return "0" if text == "-0" else text
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = text.removeprefix("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    point = len(whole) + int(exponent)
    return sign + _format_digits(digits, point)


def _format_digits(digits: str, point: int) -> str:
    """Lay out digits. The decimal point follows the first `point` digits.

    `repr` uses an exponent only from 1e16 and below 1e-4, so the point is never between two digits.
    """
    if len(digits) <= point <= 21:  # noqa: PLR2004 - ECMA-262's limits, here and below
        return digits.ljust(point, "0")
    if -6 < point <= 0:  # noqa: PLR2004
        return f"0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"


_ENCODERS: Mapping[type, Callable[[Any], str]] = {
    str: _encode_string,
    int: int.__repr__,
    float: format_number,
    bool: lambda value: "true" if value else "false",
    NoneType: lambda _null: "null",
    dict: _encode_object,
    list: _encode_array,
    tuple: _encode_array,
    EncodedJson: lambda value: value.text,
}


def escape_for_terminal(body: bytes) -> bytes:
    r"""Escape the characters of a JSON text that could control a terminal (D7).

    DEL, the C1 controls, bidirectional and other format characters and the separators U+2028 and
    U+2029 become `\uXXXX`. The JSON value does not change, because these characters occur only
    inside strings.
    """
    return "".join(map(_escape_character, body.decode("utf-8"))).encode("utf-8")


def _escape_character(character: str) -> str:
    if unicodedata.category(character) not in UNSAFE_CATEGORIES:
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def quote_value(value: Any) -> str:
    """Return a value as JSON for a message, shortened to 60 characters."""
    from json import dumps  # noqa: PLC0415 - see get_decoder

    text = dumps(value, ensure_ascii=False, default=str)  # TOML has dates, JSON does not
    # A lone surrogate can't be encoded as UTF-8.
    quoted = text.encode("utf-8", "backslashreplace").decode("utf-8")
    max_length = 60
    end = '…"' if isinstance(value, str) else "…"
    return quoted if len(quoted) <= max_length else f"{quoted[:max_length]}{end}"


MAX_IDENTIFIER_LENGTH = 128
IDENTIFIER_PATTERN = rf"[A-Za-z0-9-]{{1,{MAX_IDENTIFIER_LENGTH}}}"
"""The pattern of a valid identifier. Match it against the full text."""
