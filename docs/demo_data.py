"""Make the data of the demo: a small fleet with the same bytes on every machine.

All arithmetic uses integers, because the last bit of a float may differ between machines.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from srvstat.contract import wire
from srvstat.contract.time import format_instant, parse_instant

AS_OF = parse_instant("2026-03-01T12:00Z")
HOURS = 75 * 24
"""The hours from the first observation to AS_OF."""

_HOUR_MS = 3_600_000
_DAILY = (
    38, 27, 19, 13, 10, 9, 11, 15, 21, 27, 33, 38,
    44, 49, 55, 63, 72, 82, 92, 99, 100, 93, 76, 56,
)  # fmt: skip
"""The activity in each hour of the day (UTC), in percent of the busiest hour."""
_WEEKLY = (70, 88, 100, 97, 68, 64, 66)
"""The activity on each day of the week, in percent of the busiest day. Weeks begin on Thursday, as
the Unix epoch does."""

_HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07[bold red]FREE[/] \u202egnp.exe\u202c\nsecond line \x9b31m"
     "z" + "\u0301" * 200 + " \u200b:smile: \\"
)  # fmt: skip


class _Noise:
    """Pseudorandom numbers from the linear congruential generator of Knuth's MMIX."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def draw(self, bound: int) -> int:
        """Return the next number from 0 to bound - 1."""
        self._state = (self._state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**64
        return (self._state >> 33) % bound


@dataclass(frozen=True, slots=True)
class _Server:
    """A server and its players by hour.

    `current` is the current count of its record, None if the record has none.
    `players_at` takes the hour, counted from the first, and the players of the busiest hour, and
    returns the players or None for a gap.
    """

    id: str
    cfx_id: str
    game: str
    hostname: str
    players_at: Callable[[int, int, _Noise], int | None]
    max_players: int
    tags: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    current: int | None = None
    icon_url: str | None = None
    publishable: bool = True


def _vary(hour: int, busiest: int, noise: _Noise) -> int:
    """Return the players at an hour, from a daily and a weekly cycle with noise."""
    at = AS_OF // _HOUR_MS - HOURS + hour
    usual = busiest * _DAILY[at % 24] * _WEEKLY[at // 24 % 7] // 10_000
    return usual + noise.draw(usual // 8 + 3)


def _stay_steady(hour: int, busiest: int, noise: _Noise) -> int:
    return _vary(hour, busiest, noise)


def _grow(hour: int, busiest: int, noise: _Noise) -> int:
    return _vary(hour, busiest * (HOURS + 5 * hour) // (6 * HOURS), noise)


def _shrink(hour: int, busiest: int, noise: _Noise) -> int:
    remaining = max(HOURS - hour - 200, 0)
    return _vary(hour, busiest * remaining // HOURS, noise) if remaining else 0


def _restart(hour: int, busiest: int, noise: _Noise) -> int:
    restarts = noise.draw(19) == 0 or hour % 24 == 6  # noqa: PLR2004 - a nightly restart at hour 6
    usual = _vary(hour, busiest, noise)
    return 0 if restarts else usual


def _leave_gaps(hour: int, busiest: int, noise: _Noise) -> int | None:
    days_before_end = (HOURS - hour) // 24
    usual = _vary(hour, busiest, noise)
    missing = days_before_end in {3, 4, 11, 12, 13, 14, 15, 40} or noise.draw(9) == 0
    return None if missing else usual


def _fall_silent(hour: int, busiest: int, noise: _Noise) -> int | None:
    is_observed = hour % 3 == 0 and hour < HOURS - 300
    return _vary(hour, busiest, noise) if is_observed else None


def _hold_event(hour: int, busiest: int, noise: _Noise) -> int | None:
    days_before_end = (HOURS - hour) // 24
    if days_before_end > 45:  # noqa: PLR2004 - the day on which the server opens
        return None
    is_event_day = days_before_end == 42  # noqa: PLR2004 - before the last 30 days
    return _vary(hour, busiest if is_event_day else 30, noise)


def _stay_silent(_hour: int, _busiest: int, _noise: _Noise) -> None:
    return None


# A new server comes last: the noise of each server depends on its position.
_FLEET = (
    _Server("harbor-city", "hc4x2k", "game_a", "Harbor City Roleplay", _stay_steady, 400,
            ("roleplay", "economy"), ("PREMIUM", "VERIFIED"),
            icon_url="https://icons.example/harborcity.png"),
    _Server("new-frontier", "nf8q1z", "game_a", "New Frontier | open beta", _grow, 250,
            ("survival",), ("NEW",)),
    _Server("old-guard", "og3m7p", "game_b", "The Old Guard (since 2017)", _shrink, 128,
            ("classic", "no mods")),
    _Server("flaky-arena", "fa9t5w", "game_b", "Flaky Arena", _restart, 64, ("pvp",),
            current=31),
    _Server("night-shift", "ns6r0b", "game_a", "Night Shift «夜勤»", _leave_gaps, 96, ("coop",)),
    _Server("empty-plains", "ep1v8d", "game_a", "Empty Plains", _stay_silent, 32),
    _Server("hostile-host", "hh7e3y", "game_b", _HOSTILE, _stay_steady, 48, ("[/x]", "\x1b[31mred"),
            ("\u202eFLAG",)),
    _Server("hidden-lab", "hl2s6c", "game_a", "Hidden Lab", _stay_steady, 16, publishable=False),
    _Server("silent-valley", "sv4d1h", "game_b", "Silent Valley Racing", _fall_silent, 80,
            ("racing",)),
    _Server("world-event", "we5j9n", "game_b", "World Event", _hold_event,
            5_000_000_000, ("event",), ("NEW",), icon_url="https://icons.example/worldevent.svg"),
)  # fmt: skip


def build_servers_file() -> bytes:
    """Return the servers file of the fleet, as NDJSON."""
    return b"".join(_format_server(server) for server in _FLEET)


_TABLE = (("Main Lobby", _stay_steady, 90), ("PvP Arena", _grow, 40), ("Survival", _leave_gaps, 60))
_TABLE_HOURS = 28 * 24


def build_table_file() -> bytes:
    """Return four weeks of an owner's servers as a spreadsheet exports them: a column for each."""
    lines = [";".join(("date", *(name for name, _, _ in _TABLE)))]
    noises = [_Noise(seed) for seed in range(len(_TABLE))]
    for hour in range(HOURS - _TABLE_HOURS, HOURS + 1):
        at = format_instant(AS_OF - (HOURS - hour) * _HOUR_MS)
        drawn = zip(_TABLE, noises, strict=True)
        counts = [players_at(hour, busiest, noise) for (_, players_at, busiest), noise in drawn]
        cells = ("" if count is None else str(count) for count in counts)
        lines.append(";".join((at[:16].replace("T", " "), *cells)))
    return "\n".join(lines).encode() + b"\n"


def build_observations_file() -> bytes:
    """Return the observations of the fleet as CSV, in the order of a collector: hour by hour."""
    return b"serverId,observedAt,players\n" + b"".join(_format_observations())


def _format_server(server: _Server) -> bytes:
    slug = server.id.replace("-", "")
    # Without a current count in the record, it is that of the last observation.
    current = {} if server.current is None else {"current": server.current}
    record = {
        "id": server.id,
        "game": server.game,
        "cfxId": server.cfx_id,
        "hostname": server.hostname,
        "projectName": server.id.replace("-", " ").title(),
        "projectDescription": f"An invented server, {server.max_players:,} slots.",
        "region": "EU" if server.game == "game_a" else "US",
        "players": {**current, "max": server.max_players},
        "tags": server.tags,
        "flags": server.flags,
        "chatUrl": f"https://chat.example/{slug}",
        "iconUrl": server.icon_url,
        "offline": server.id in ("old-guard", "empty-plains"),
        "publishable": server.publishable,
    }
    return wire.encode(record) + b"\n"


def _format_observations() -> Iterator[bytes]:
    noises = [_Noise(seed) for seed in range(len(_FLEET))]
    for hour in range(HOURS + 1):
        for server, noise in zip(_FLEET, noises, strict=True):
            players = server.players_at(hour, server.max_players * 4 // 5, noise)
            if players is not None:
                # Observations are up to a minute late, but the last ones are exactly at as of.
                delay = noise.draw(60) * 1000 if hour < HOURS else 0
                at = AS_OF - (HOURS - hour) * _HOUR_MS + delay
                line = f"{server.id},{format_instant(at)},{min(players, server.max_players)}\n"
                yield line.encode("ascii")
