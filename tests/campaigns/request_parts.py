"""Parts of request bodies: valid ones in many spellings, and invalid ones."""

from itertools import product

from campaigns.request_oracle import NAMESPACES, RANGES


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
    *(
        b"null",
        b"true",
        b"[]",
        b"{}",
        b'["a"]',
        b'{"a":1}',
        b'"a"',
        b"'a'",
        b"a",
        b"undefined",
        b"",
    ),
    *(
        b"1",
        b"-0",
        b"1.0",
        b"1e400",
        b"-1E-999",
        b"NaN",
        b"-Infinity",
        b"0x10",
        b"01",
        b"+1",
        b".5",
    ),
    *(
        b'""',
        b'" a"',
        b'"a\n"',
        rb'"a\n"',
        b'"a\x00"',
        rb'"a\u0000"',
        b'"a_b"',
        b'"a/b"',
        b'"\x7f"',
    ),
    *(
        rb'"\ud800"',
        rb'["\ud800"]',
        rb'"\ud83d\ude00"',
        rb'"\ude00\ud83d"',
        rb'"\u212a"',
        rb'"\x61"',
        rb'"\u{61}"',
    ),
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
