"""Draw hostile text: strings of control sequences, marks, wide characters and markup."""

import sys
from random import Random

CODE_POINTS = sys.maxunicode + 1

_PIECES = [
    kind.split("|")
    for kind in (
        "\x1b|\x1b[2J|\x1b[31m|\x1b[0m|\x1b[9999C|\x1b[?1049h|\x1bc|\x1b(0|\x1bP1",
        "\x1b]0;x\x07|\x1b]8;;http://x\x1b\\|\x1b]52;c;eA==\x07|\x1b\\|\x07|\x1b]8;;\x1b\\",
        "\x9b2J|\x9d0;x\x9c|\x90|\x98|\x85|\x80|\x9f|\x7f|\x00|\x0e|\x1a",
        "\n|\r|\r\n|\t|\b|\x0b|\x0c|\x1c|\u2028|\u2029|a\rb|ab\b\b",
        "\u202e|\u202d|\u202a|\u202c|\u2066|\u2067|\u2069|\u200e|\u200f|\u061c",
        "\u200b|\u200c|\u200d|\u2060|\ufeff|\u00ad|\u034f|\u180e|\ufff9|\U000e0041",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467|\U0001f1e9\U0001f1ea|\U0001f44d\U0001f3fd",
        "1\ufe0f\u20e3|\u2764\ufe0f|\u2764\ufe0e|\U0001f3f4\U000e0067\U000e007f|\ufe0f|\U000e0100",
        "e\u0301|\u0301|a\u20dd|\u0e33|\u093f|\u1ab0\u0488|z" + "\u0301" * 40,
        "\u0e49" * 9,
        "\u65e5\u672c|\uff21|\uff71|\u1100\u1161\u11a8|\ud55c|\u2460|\u2026|\u2014|\u00b7",
        "\u2502|\u2500|\u2581\u2588|\ufdfd|\ua9c5|\u2502" + "\u2588" * 30 + "\u2502",
        "[/x]|[red]|[/]|[link=http://x]|[|]|[bold|:smile:|\\|\\[|{0}|%s|%",
        " |  |\u00a0|\u3000|\u2003|\u1680|\u3164|\u2800|\u115f|\uffa0|\u200a",
        "a|ab|B|7|-|a-word-of-many-characters|http://x|word word|\u00e9|\u0431|\u05d0|\u0627\u0644",
        "\ufffe|\uffff|\ufdd0|\U0001fffe|\U0010ffff|\ue000|\U000f0000|\u0378|\ufffd",
        "\ud800|\udcff|\udc80|\ud83d|\ude00|\udbff\udfff",
    )
]
_MAX_PIECES = 6


def draw_text(rng: Random) -> str:
    """Draw a string of pieces of several kinds, sometimes with an arbitrary character."""
    pieces = []
    for _ in range(1 + int(rng.random() * _MAX_PIECES)):
        kind = _PIECES[int(rng.random() * len(_PIECES))]
        pieces.append(kind[int(rng.random() * len(kind))])
    if rng.random() < 0.2:
        # The power prefers low code points, where most assigned characters are.
        pieces.append(chr(int(rng.random() ** 4 * CODE_POINTS)))
    return "".join(pieces)
