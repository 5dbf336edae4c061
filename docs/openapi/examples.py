"""Define example requests and the exact bytes of their answers from the demo snapshot."""

from collections.abc import Mapping
from typing import NamedTuple

from srvstat.contract.http import SERVERS_PATH


class Exchange(NamedTuple):
    """The body of a request and of its answer, with a summary."""

    summary: str
    request: str
    answer: str


SERVER_IDENTIFIER = "harbor-city"

SERVER = (
    '{"data":{"id":"harbor-city","game":"game_a","cfxId":"hc4x2k",'
    '"hostname":"Harbor City Roleplay","projectName":"Harbor City",'
    '"projectDescription":"An invented server, 400 slots.","region":"EU",'
    '"players":{"current":147,"max":400},"tags":["roleplay","economy"],'
    '"flags":["PREMIUM","VERIFIED"],"chatUrl":"https://chat.example/harborcity",'
    '"iconUrl":"https://icons.example/harborcity.png","offline":false,'
    '"firstSeenAt":"2025-12-16T12:00:24.000Z","updatedAt":"2026-03-01T12:00:00.000Z"}}'
)

HEALTH = (
    '{"status":"ok","asOf":"2026-03-01T12:00:00.000Z",'
    '"root":"9f1f1c4c38d6f3d4e38c90c6712c340f412cffae34b056c86f5fc5324d725f18"}'
)

UNAVAILABLE = '{"status":"unavailable"}'

COMPARISONS: Mapping[str, Exchange] = {
    "defaultRange": Exchange(
        "Two servers over the default range",
        '{"servers":[{"identifier":"new-frontier","by":"id"},'
        '{"identifier":"harbor-city","by":"id"}]}',
        '{"range":"30d","data":[{"serverId":"new-frontier","cfxId":"nf8q1z","range":"30d",'
        '"currentPlayers":96,"averagePlayers":67.40638002773925,"medianPlayers":58,'
        '"peakPlayers":211,"lowestPlayers":8,'
        '"growth":{"players":45,"percentage":88.23529411764706},"uptime":null,"sampleCount":721},'
        '{"serverId":"harbor-city","cfxId":"hc4x2k","range":"30d","currentPlayers":147,'
        '"averagePlayers":129.83079056865463,"medianPlayers":114,"peakPlayers":361,'
        '"lowestPlayers":20,"growth":{"players":24,"percentage":19.51219512195122},'
        '"uptime":null,"sampleCount":721}]}',
    ),
    "mixedNamespaces": Exchange(
        "One server by id and one by cfxId; growth from 0 players has no percentage",
        '{"servers":[{"identifier":"harbor-city","by":"id"},'
        '{"identifier":"og3m7p","by":"cfxId"}],"range":"7d"}',
        '{"range":"7d","data":[{"serverId":"harbor-city","cfxId":"hc4x2k","range":"7d",'
        '"currentPlayers":147,"averagePlayers":128.18934911242604,"medianPlayers":113,'
        '"peakPlayers":345,"lowestPlayers":20,'
        '"growth":{"players":-4,"percentage":-2.6490066225165565},"uptime":null,'
        '"sampleCount":169},{"serverId":"old-guard","cfxId":"og3m7p","range":"7d",'
        '"currentPlayers":0,"averagePlayers":0,"medianPlayers":0,"peakPlayers":0,'
        '"lowestPlayers":0,"growth":{"players":0,"percentage":null},"uptime":null,'
        '"sampleCount":169}]}',
    ),
    "nothingObserved": Exchange(
        "A server without observations has null statistics",
        '{"servers":[{"identifier":"empty-plains","by":"id"},'
        '{"identifier":"night-shift","by":"id"}],"range":"24h"}',
        '{"range":"24h","data":[{"serverId":"empty-plains","cfxId":"ep1v8d","range":"24h",'
        '"currentPlayers":0,"averagePlayers":null,"medianPlayers":null,"peakPlayers":null,'
        '"lowestPlayers":null,"growth":{"players":null,"percentage":null},"uptime":null,'
        '"sampleCount":0},{"serverId":"night-shift","cfxId":"ns6r0b","range":"24h",'
        '"currentPlayers":34,"averagePlayers":38.958333333333336,"medianPlayers":35.5,'
        '"peakPlayers":86,"lowestPlayers":7,'
        '"growth":{"players":-3,"percentage":-8.108108108108109},"uptime":null,'
        '"sampleCount":24}]}',
    ),
}

INVALID_COMPARISONS: Mapping[str, tuple[str, str]] = {
    "oneServer": ("Fewer than 2 servers", '{"servers":[{"identifier":"harbor-city","by":"id"}]}'),
    "duplicate": (
        "A duplicate reference",
        (
            '{"servers":[{"identifier":"harbor-city","by":"id"},'
            '{"identifier":"harbor-city","by":"id"}]}'
        ),
    ),
    "noNamespace": (
        "A reference without a namespace",
        '{"servers":[{"identifier":"harbor-city"},{"identifier":"old-guard","by":"id"}]}',
    ),
    "unknownRange": (
        "An unknown range",
        (
            '{"servers":[{"identifier":"harbor-city","by":"id"},'
            '{"identifier":"old-guard","by":"id"}],"range":"8d"}'
        ),
    ),
    "nullRange": (
        "Null is not a range; omit the property to use the default",
        (
            '{"servers":[{"identifier":"harbor-city","by":"id"},'
            '{"identifier":"old-guard","by":"id"}],"range":null}'
        ),
    ),
    "unknownProperty": (
        "An unknown property",
        (
            '{"servers":[{"identifier":"harbor-city","by":"id"},'
            '{"identifier":"old-guard","by":"id"}],"limit":5}'
        ),
    ),
}
"""Name of the example to its problem and the body."""

INVALID_SERVER_TARGETS: Mapping[str, tuple[str, str]] = {
    "wrongCharacter": (
        "An identifier with an invalid character",
        f"{SERVERS_PATH}harbor_city",
    ),
    "unknownNamespace": (
        "An unknown namespace",
        f"{SERVERS_PATH}harbor-city?by=name",
    ),
    "unknownParameter": (
        "An unknown query parameter",
        f"{SERVERS_PATH}harbor-city?range=7d",
    ),
}
"""Name of the example to its problem and the request target."""
