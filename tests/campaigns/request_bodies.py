"""Request bodies drawn from a seed: sound, or faulty in a part, or changed byte by byte."""

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from campaigns.request_oracle import MOST_BYTES
from campaigns.request_parts import (
    BAD_FRAMES,
    BAD_MEMBERS,
    BAD_REFERENCES,
    FRAMES,
    MEMBERS,
    REFERENCES,
    VALUES,
    WITHOUT_SERVERS,
)

T = TypeVar("T")

_LENGTHS = (2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 1, 6)
_FAULTY = 0.1
"""How often each of the three kinds of parts is a faulty one."""
_CHANGES_MADE = (0, 0, 0, 1, 1, 2)


def draw_body(random: Random) -> bytes:
    """Draw a body."""
    body = _of_parts(random) if random.random() < 0.99 else _one_of(random, WITHOUT_SERVERS)
    for _ in range(_one_of(random, _CHANGES_MADE)):
        body = _one_of(random, _CHANGES)(random, body)
    return body


def _of_parts(random: Random) -> bytes:
    references = [_one_of(random, REFERENCES) for _ in range(_one_of(random, _LENGTHS))]
    if random.random() < _FAULTY:
        references[_place(random, references)] = _one_of(random, BAD_REFERENCES)
    member = _one_of(random, BAD_MEMBERS if random.random() < _FAULTY else MEMBERS)
    frame = _one_of(random, BAD_FRAMES if random.random() < _FAULTY else FRAMES)
    body = frame % (b",".join(references), b"," + member if member else b"")
    if member and random.random() < 0.3:
        body = body.replace(b"," + member, b"", 1).replace(b"{", b"{" + member + b",", 1)
    return body


def _one_of(random: Random, choices: Sequence[T]) -> T:
    # Three times as fast as Random.choice, and as good for short sequences.
    return choices[int(random.random() * len(choices))]


def _place(random: Random, within: Sequence[object]) -> int:
    return int(random.random() * len(within))


def _replaced(random: Random, body: bytes, new: bytes, most: int = 1) -> bytes:
    """Put something in the place of up to `most` bytes, somewhere."""
    start = int(random.random() * (len(body) + 1))
    return body[:start] + new + body[start + int(random.random() * (most + 1)) :]


def _flip_a_bit(random: Random, body: bytes) -> bytes:
    start = _place(random, body)
    bit = 1 << int(random.random() * 8)
    return (
        body[:start] + bytes([byte ^ bit for byte in body[start : start + 1]]) + body[start + 1 :]
    )


def _put_a_byte(random: Random, body: bytes) -> bytes:
    return _replaced(random, body, bytes([int(random.random() * 256)]))


def _put_a_scrap(random: Random, body: bytes) -> bytes:
    return _replaced(random, body, _one_of(random, _SCRAPS))


def _put_a_value(random: Random, body: bytes) -> bytes:
    return _replaced(random, body, _one_of(random, VALUES), most=20)


def _cut_out(random: Random, body: bytes) -> bytes:
    return _replaced(random, body, b"", most=_one_of(random, (1, 1, 3, 40)))


def _cut_off(random: Random, body: bytes) -> bytes:
    start = _place(random, body)
    return body[:start] if random.random() < 0.5 else body[start:]


def _repeat_a_piece(random: Random, body: bytes) -> bytes:
    start = _place(random, body)
    return _replaced(random, body, body[start : start + int(random.random() * 40)], most=0)


def _escape_a_letter(random: Random, body: bytes) -> bytes:
    """Escape the next letter or digit: inside a string the meaning stays the same."""
    start = _place(random, body)
    found = next((at for at in range(start, len(body)) if body[at : at + 1].isalnum()), None)
    if found is None:
        return body
    form = _one_of(random, (b"\\u%04x", b"\\u%04X", b"\\U%04x", b"\\u%03x", b"\\x%02x"))
    return body[:found] + form % body[found] + body[found + 1 :]


def _mistake_a_character(random: Random, body: bytes) -> bytes:
    """Put another character, which looks the same or has the same meaning elsewhere."""
    old, new = _one_of(random, _LIKE)
    return body.replace(old, new, -1 if random.random() < 0.3 else 1)


def _surround(random: Random, body: bytes) -> bytes:
    if random.random() < 0.3:
        depth = _one_of(random, (1, 2, 200, 995, 8_000))
        return b"[" * depth + body + b"]" * depth
    before = _one_of(random, _EDGES) if random.random() < 0.7 else b""
    return before + body + (_one_of(random, _EDGES) if random.random() < 0.7 else b"")


def _nest(random: Random, body: bytes) -> bytes:
    """Put arrays in arrays in a string's place, about as deep as can be read, or much too deep."""
    depth = 8_000 if random.random() < 0.1 else 900 + int(random.random() * 100)
    end = body.find(b'd"') + 2
    start = body.rfind(b'"', 0, max(end - 1, 0))
    return body[:start] + b"[" * depth + b"]" * depth + body[end:]


def _grow_to_the_limit(random: Random, body: bytes) -> bytes:
    """Fill up with white space, at the end or elsewhere, to about the most bytes allowed."""
    space = b" " * (MOST_BYTES + _one_of(random, (-1, 0, 0, 1, 2)) - len(body))
    start = body.find(_one_of(random, (b"[", b'"', b":", b",", b"x")))
    return body + space if random.random() < 0.5 else body[:start] + space + body[start:]


def _encode_otherwise(random: Random, body: bytes) -> bytes:
    encoding = _one_of(random, ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "utf-7"))
    return body.decode("latin-1").encode(encoding)


_SCRAPS = [
    *(b'"', b",", b":", b"{", b"}", b"[", b"]", b"\\", b"0", b"-", b"a", b"'", b"/", b"\x7f"),
    *(
        b" ",
        b"\n",
        b"\r",
        b"\t",
        b"\x00",
        b"\x0b",
        b"\x0c",
        b"\x85",
        b"\xa0",
        b"\xc2\xa0",
        b"\xe2\x80\xa8",
    ),
    *(
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xed\xb0\x80",
        b"\xc0\xaf",
        b"\xf4\x90\x80\x80",
        b"\xe2\x82",
    ),
    *(
        b"//\n",
        b"/**/",
        b"#\n",
        b"\\u0062",
        b"\\u0000",
        b"\\ud800",
        b"\\n",
        b"\\/",
        b"\\",
        b"\\u00",
    ),
    *(b'"range":"7d",', b'"by":"id",', b',"by":"id"', b'{"identifier":"q","by":"id"},', b"null,"),
    *(text.encode() for text in ("\ufeff", "\u200b", "\u202e", "\u2028", "\u0301", "\U0001f680")),
]
_EDGES = [
    *(
        b" ",
        b"\n",
        b"\r\n\t",
        b"\x0c",
        b"\xc2\xa0",
        b"\xef\xbb\xbf",
        b",",
        b"{}",
        b"\x00",
        b"//",
        b"\x1e",
    ),
    *(b"null", b";", b")]}'\n", b"\xff\xfe", b"\x1a", b"+", b"[", b"]"),
]
_LIKE = [
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
    _flip_a_bit,
    _flip_a_bit,
    _put_a_byte,
    _put_a_byte,
    _put_a_scrap,
    _put_a_scrap,
    _put_a_value,
    _cut_out,
    _cut_off,
    _repeat_a_piece,
    _escape_a_letter,
    _escape_a_letter,
    _mistake_a_character,
    _surround,
    _nest,
    _grow_to_the_limit,
    _encode_otherwise,
]
