"""Compare srvstat's verdict on request bodies with that of an independent oracle."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from random import Random
from typing import TypeVar

from campaigns.campaign import MAX_FAILURES, Campaign, Result, run_in_blocks
from srvstat.contract.errors import InvalidRequestError
from srvstat.contract.requests import parse_compare_request

RANGES = ("24h", "7d", "30d", "90d", "1y")
NAMESPACES = ("id", "cfxId")
MAX_BYTES = 16_384

Verdict = tuple[list[tuple[str, str]], str]
"""The references, as (namespace, identifier), and the range."""

_S = r"[ \t\n\r]*"
_WORD = r'"[A-Za-z0-9-]*(?:\\u00[2-7][0-9A-Fa-f][A-Za-z0-9-]*)*"'
_MEMBER = rf"{_WORD}{_S}:{_S}{_WORD}"
_REFERENCE = rf"\{{{_S}{_MEMBER}{_S},{_S}{_MEMBER}{_S}\}}"
_SERVERS = rf"{_WORD}{_S}:{_S}\[{_S}{_REFERENCE}(?:{_S},{_S}{_REFERENCE}){{1,4}}{_S}\]"
_BODY = re.compile(
    rf"{_S}\{{{_S}(?:({_MEMBER}){_S},{_S})?({_SERVERS})(?:{_S},{_S}({_MEMBER}))?{_S}\}}{_S}".encode()
)
_QUOTED = re.compile(rb'"([^"]*)"')
_IDENTIFIER = re.compile(r"[A-Za-z0-9-]{1,128}")


def compute_verdict(body: bytes) -> Verdict | None:
    """Return the references and the range of a body; None if it is invalid."""
    shape = _BODY.fullmatch(body)
    if shape is None or len(body) > MAX_BYTES:
        return None
    before, (servers, *words), after = map(_read_words, shape.groups(b""))
    if before and after:
        return None
    (range_key, range_name) = before or after or ["range", "30d"]
    references = [_read_reference(*words[at : at + 4]) for at in range(0, len(words), 4)]
    is_sound = (
        (servers, range_key) == ("servers", "range")
        and range_name in RANGES
        and all(by in NAMESPACES and _IDENTIFIER.fullmatch(name) for by, name in references)
        and len(set(references)) == len(references)
    )
    return (references, range_name) if is_sound else None


def _read_words(part: bytes) -> list[str]:
    # The expression admits only escapes that Python decodes in the same way.
    return [word.decode("unicode_escape") for word in _QUOTED.findall(part)]


def _read_reference(key: str, value: str, other_key: str, other_value: str) -> tuple[str, str]:
    """Return (namespace, identifier); empty strings for unknown keys."""
    match key, other_key:
        case "by", "identifier":
            return value, other_value
        case "identifier", "by":
            return other_value, value
    return "", ""


T = TypeVar("T")


def _spell_reference(identifier: str, by: str) -> list[bytes]:
    """Spell a reference in many ways: plain and escaped, in both orders, with and without space."""
    escaped = "".join(f"\\u{ord(character):04x}" for character in identifier)
    partly = f"\\u{ord(identifier[0]):04X}{identifier[1:]}"
    namespaces = (by, by.replace("d", r"\u0064"))
    texts = (
        text
        for name, namespace in product((identifier, escaped, partly), namespaces)
        for text in (
            f'{{"identifier":"{name}","by":"{namespace}"}}',
            f'{{"by":"{namespace}","identifier":"{name}"}}',
            rf'{{"identifi\u0065r":"{name}","\u0062\u0079":"{namespace}"}}',
            f'{{ "identifier" : "{name}",\r\n\t"by":"{namespace}" }}',
        )
    )
    return [text.encode() for text in texts]


_IDENTIFIERS = ["a", "A", "b", "C", "-", "0", "id", "by", "srv-1", "--5", "1e5", "null", "x" * 128]
REFERENCES = [
    text
    for identifier, by in product(_IDENTIFIERS, NAMESPACES)
    for text in _spell_reference(identifier, by)
]

VALUES = [
    *(b"null", b"true", b"[]", b"{}", b'["a"]', b'{"a":1}', b'"a"', b"'a'", b"a", b"undefined"),
    b"",
    *(b"1", b"-0", b"1.0", b"1e400", b"-1E-999", b"NaN", b"-Infinity", b"0x10", b"01", b"+1"),
    b".5",
    *(b'""', b'" a"', b'"a\n"', rb'"a\n"', b'"a\x00"', rb'"a\u0000"', b'"a_b"', b'"a/b"'),
    b'"\x7f"',
    *(rb'"\ud800"', rb'["\ud800"]', rb'"\ud83d\ude00"', rb'"\ude00\ud83d"', rb'"\u212a"'),
    *(rb'"\x61"', rb'"\u{61}"'),
    *(
        text.encode()
        for text in ('"é"', '"a\u0301"', '"\uff41"', '"\u0430"', '"\u0661"', '"\u202e"')
    ),
    *(b'"\xe9"', b'"\xed\xa0\x80"', b'"\xc1\xa1"', b'"\xf4\x90\x80\x80"', b'"\xef\xbb\xbf"'),
    *(b'"' + b"x" * length + b'"' for length in (129, 130, 1_000, 5_000)),
    *(b"9" * length for length in (20, 400, 4_300, 4_301, 9_000)),
    *(b"[" * depth + b"]" * depth for depth in (2, 150)),
    *(b'{"a":' * depth + b"1" + b"}" * depth for depth in (2, 150)),
]
"""Replacements for a string; only `"a"` is valid in its place."""

_NAMESPACES = (b"ID", b"Id", b"cfxid", b"cfx", b"i", b"", b"id ", b" id", b"id\\n", b"id\x00")
BAD_REFERENCES = [
    *VALUES,
    *(b'{"identifier":%b,"by":"id"}' % value for value in VALUES),
    *(b'{"by":%b,"identifier":"a"}' % value for value in VALUES),
    *(b'{"identifier":"a","by":"id","range":%b}' % value for value in VALUES),
    *(b'{"identifier":"a","by":"%b"}' % by for by in _NAMESPACES),
    b'{"identifier":"a"}',
    b'{"by":"id"}',
    b'{"identifier":"a","identifier":"b"}',
    b'{"by":"id","by":"id"}',
    b'{"identifier":"a","by":"id","by":"id"}',
    rb'{"identifier":"a","by":"id","b\u0079":"cfxId"}',
    b'{"Identifier":"a","by":"id"}',
    b'{"identifier":"id","by":"id",}',
]

MEMBERS = [
    b"",
    b"",
    *(b'"range":"%b"' % name.encode() for name in RANGES),
    rb'"ran\u0067e":"\u0037d"',
]
_NEAR_RANGES = (b"8d", b"7D", b"7d ", b" 7d", b"07d", b"30", b"1Y", b"7d\\n", b"7d\\u0000", b"24 h")
_NEAR_KEYS = (b"", b"Range", b"range ", b"by", b"servers", b"identifier", b"x" * 5_000, b"\\ud800")
BAD_MEMBERS = [
    *(b'"range":%b' % value for value in VALUES),
    *(b'"more":%b' % value for value in VALUES),
    *(b'"range":"%b"' % name for name in _NEAR_RANGES),
    *(b'"%b":"7d"' % key for key in _NEAR_KEYS),
    b'"range":"7d","range":"7d"',
    rb'"range":"7d","r\u0061nge":"24h"',
    rb'"\u0073ervers":[]',
    b'"range"',
    b",",
    b"//",
]

FRAMES = [
    b'{"servers":[%b]%b}',
    b'{"servers":[%b]%b}',
    b'{ "servers" :\t[ %b ]%b\n}',
    rb'{"\u0073\u0065rvers":[%b]%b}',
    b'\r\n {"servers":[%b]%b} \t',
]
BAD_FRAMES = [
    b'{"servers":{%b}%b}',
    b'{"servers":[[%b]]%b}',
    b'{"servers":[%b,]%b}',
    b'{"Servers":[%b]%b}',
    b'{"servers":[%b]%b,"servers":[]}',
    b'{"servers":[],"servers":[%b]%b}',
    b"{servers:[%b]%b}",
    b"{'servers':[%b]%b}",
    b'[{"servers":[%b]%b}]',
    b'{"servers":[%b]%b,}',
    b'{"servers":[%b]%b}{}',
    b'{"servers":[%b]%b',
]
WITHOUT_SERVERS = [
    *(b"", b" ", b"{}", b"[]", b"null", b"7", b'"servers"', b"{", b"[", b'"', b"{}{}", b"[{}]"),
    *(b'{"range":"7d"}', b'{"Servers":[]}', b'{"servers"}', b'{"servers":null}', b'{"":{}}'),
]

_LENGTHS = (2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 1, 6)
_FAULT_RATE = 0.1
"""Probability that a part (references, member, frame) is invalid."""
_CHANGE_COUNTS = (0, 0, 0, 1, 1, 2)


def draw_body(rng: Random) -> bytes:
    """Draw a request body."""
    body = _join_parts(rng) if rng.random() < 0.99 else _choose(rng, WITHOUT_SERVERS)
    for _ in range(_choose(rng, _CHANGE_COUNTS)):
        body = _choose(rng, _CHANGES)(rng, body)
    return body


def _join_parts(rng: Random) -> bytes:
    references = [_choose(rng, REFERENCES) for _ in range(_choose(rng, _LENGTHS))]
    if rng.random() < _FAULT_RATE:
        references[_draw_position(rng, references)] = _choose(rng, BAD_REFERENCES)
    member = _choose(rng, BAD_MEMBERS if rng.random() < _FAULT_RATE else MEMBERS)
    frame = _choose(rng, BAD_FRAMES if rng.random() < _FAULT_RATE else FRAMES)
    body = frame % (b",".join(references), b"," + member if member else b"")
    if member and rng.random() < 0.3:
        body = body.replace(b"," + member, b"", 1).replace(b"{", b"{" + member + b",", 1)
    return body


def _choose(rng: Random, choices: Sequence[T]) -> T:
    # Three times as fast as Random.choice, and random enough for short sequences.
    return choices[int(rng.random() * len(choices))]


def _draw_position(rng: Random, within: Sequence[object]) -> int:
    return int(rng.random() * len(within))


def _replace_at_random(rng: Random, body: bytes, new: bytes, most: int = 1) -> bytes:
    """Replace up to `most` bytes at a random position by new ones."""
    start = int(rng.random() * (len(body) + 1))
    return body[:start] + new + body[start + int(rng.random() * (most + 1)) :]


def _flip_bit(rng: Random, body: bytes) -> bytes:
    start = _draw_position(rng, body)
    bit = 1 << int(rng.random() * 8)
    return (
        body[:start] + bytes([byte ^ bit for byte in body[start : start + 1]]) + body[start + 1 :]
    )


def _put_byte(rng: Random, body: bytes) -> bytes:
    return _replace_at_random(rng, body, bytes([int(rng.random() * 256)]))


def _put_scrap(rng: Random, body: bytes) -> bytes:
    return _replace_at_random(rng, body, _choose(rng, _SCRAPS))


def _put_value(rng: Random, body: bytes) -> bytes:
    return _replace_at_random(rng, body, _choose(rng, VALUES), most=20)


def _cut_out(rng: Random, body: bytes) -> bytes:
    return _replace_at_random(rng, body, b"", most=_choose(rng, (1, 1, 3, 40)))


def _cut_off(rng: Random, body: bytes) -> bytes:
    start = _draw_position(rng, body)
    return body[:start] if rng.random() < 0.5 else body[start:]


def _repeat_piece(rng: Random, body: bytes) -> bytes:
    start = _draw_position(rng, body)
    return _replace_at_random(rng, body, body[start : start + int(rng.random() * 40)], most=0)


def _escape_letter(rng: Random, body: bytes) -> bytes:
    """Escape a letter or digit; inside a string this does not change the meaning."""
    start = _draw_position(rng, body)
    found = next((at for at in range(start, len(body)) if body[at : at + 1].isalnum()), None)
    if found is None:
        return body
    form = _choose(rng, (b"\\u%04x", b"\\u%04X", b"\\U%04x", b"\\u%03x", b"\\x%02x"))
    return body[:found] + form % body[found] + body[found + 1 :]


def _swap_lookalike(rng: Random, body: bytes) -> bytes:
    """Replace a character by one that looks alike or has the same meaning elsewhere."""
    old, new = _choose(rng, _LOOKALIKES)
    return body.replace(old, new, -1 if rng.random() < 0.3 else 1)


def _surround(rng: Random, body: bytes) -> bytes:
    if rng.random() < 0.3:
        depth = _choose(rng, (1, 2, 200, 995, 8_000))
        return b"[" * depth + body + b"]" * depth
    before = _choose(rng, _EDGES) if rng.random() < 0.7 else b""
    return before + body + (_choose(rng, _EDGES) if rng.random() < 0.7 else b"")


def _nest(rng: Random, body: bytes) -> bytes:
    """Replace a string by nested arrays, about as deep as the limit or much deeper."""
    depth = 8_000 if rng.random() < 0.1 else 900 + int(rng.random() * 100)
    end = body.find(b'd"') + 2
    start = body.rfind(b'"', 0, max(end - 1, 0))
    return body[:start] + b"[" * depth + b"]" * depth + body[end:]


def _pad_to_limit(rng: Random, body: bytes) -> bytes:
    """Add white space until the body is about as long as the limit."""
    space = b" " * (MAX_BYTES + _choose(rng, (-1, 0, 0, 1, 2)) - len(body))
    start = body.find(_choose(rng, (b"[", b'"', b":", b",", b"x")))
    return body + space if rng.random() < 0.5 else body[:start] + space + body[start:]


def _change_encoding(rng: Random, body: bytes) -> bytes:
    encoding = _choose(rng, ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "utf-7"))
    return body.decode("latin-1").encode(encoding)


_SCRAPS = [
    *(b'"', b",", b":", b"{", b"}", b"[", b"]", b"\\", b"0", b"-", b"a", b"'", b"/", b"\x7f"),
    *(b" ", b"\n", b"\r", b"\t", b"\x00", b"\x0b", b"\x0c", b"\x85", b"\xa0", b"\xc2\xa0"),
    b"\xe2\x80\xa8",
    *(b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xed\xb0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80"),
    b"\xe2\x82",
    *(b"//\n", b"/**/", b"#\n", b"\\u0062", b"\\u0000", b"\\ud800", b"\\n", b"\\/", b"\\"),
    b"\\u00",
    *(b'"range":"7d",', b'"by":"id",', b',"by":"id"', b'{"identifier":"q","by":"id"},', b"null,"),
    *(text.encode() for text in ("\ufeff", "\u200b", "\u202e", "\u2028", "\u0301", "\U0001f680")),
]
_EDGES = [
    *(b" ", b"\n", b"\r\n\t", b"\x0c", b"\xc2\xa0", b"\xef\xbb\xbf", b",", b"{}", b"\x00", b"//"),
    b"\x1e",
    *(b"null", b";", b")]}'\n", b"\xff\xfe", b"\x1a", b"+", b"[", b"]"),
]
_LOOKALIKES = [
    *((b'"', quote.encode()) for quote in ("'", "\u201c", "`", '\\"', "", '""')),
    *((b",", comma.encode()) for comma in (";", "\uff0c", "\u060c", ",,", " ", "")),
    *((b":", colon.encode()) for colon in ("=", "\uff1a", "=>", "::", "")),
    *(
        (b"a", letter.encode())
        for letter in ("A", "\u0430", "\uff41", "\u00e4", "a\u0301", "a\u200d")
    ),
    *((b"i", letter.encode()) for letter in ("I", "\u0131", "\u0130", "\u0456", "l", "1")),
    *((b"s", letter.encode()) for letter in ("S", "\u017f", "\u0455", "ss")),
    *((b"-", hyphen.encode()) for hyphen in ("\u2010", "\u2212", "\u00ad", "_", "--")),
    *((b"d", letter.encode()) for letter in ("D", "\u0501", "d\\n", "d ")),
    *((b" ", space.encode()) for space in ("\t", "\n", "\u00a0", "\u3000", "\x0b", "\u2003")),
]
_CHANGES: list[Callable[[Random, bytes], bytes]] = [
    _flip_bit,
    _flip_bit,
    _put_byte,
    _put_byte,
    _put_scrap,
    _put_scrap,
    _put_value,
    _cut_out,
    _cut_off,
    _repeat_piece,
    _escape_letter,
    _escape_letter,
    _swap_lookalike,
    _surround,
    _nest,
    _pad_to_limit,
    _change_encoding,
]


_BLOCK = 100_000
_MIN_VALID = 0.1


def run(seed: int, count: int) -> Result:
    """Compare verdicts; also check that enough of the bodies are valid."""
    result = run_in_blocks(_run_block, seed, count, _BLOCK)
    valid = result.counts["valid"]
    if valid < _MIN_VALID * result.cases:
        few = f"only {valid:,} of {result.cases:,} bodies are valid"
        return replace(result, failures=(*result.failures, few))
    return result


def _run_block(rng: Random, count: int) -> Result:
    valid = 0
    failures: list[str] = []
    for number in range(count):
        body = draw_body(rng)
        verdict = compute_verdict(body)
        valid += verdict is not None
        if failure := find_disagreement(body, verdict):
            failures.append(failure)
            if len(failures) == MAX_FAILURES:
                count = number + 1
                break
    return Result(count, {"valid": valid, "refused": count - valid}, tuple(failures))


def find_disagreement(body: bytes, verdict: Verdict | None) -> str | None:
    """Describe how srvstat's verdict on a body differs from the given one; None if they agree."""
    try:
        found = _read_verdict(body)
    except Exception as error:  # noqa: BLE001 - any exception is a failure
        return f"parse_compare_request({body!r}) raised {error!r:.300}"
    if found == verdict:
        return None
    return f"parse_compare_request({body!r}) gave {found}, not {verdict}"


def _read_verdict(body: bytes) -> Verdict | None:
    try:
        request = parse_compare_request(body)
    except InvalidRequestError as refused:
        refused.reason.encode("utf-8")  # the reason must be encodable for any body
        return None
    return [(server.by, server.identifier) for server in request.servers], request.range


CAMPAIGN = Campaign(
    name="requests",
    promise="a request body is read as the specification defines, or refused",
    run=run,
    short=10_000,
    long=1_000_000,
    unit="bodies",
)
