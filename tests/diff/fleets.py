"""Draw two fleets that share most of their servers and observations."""

import random
from typing import Any, NamedTuple

from conftest import AS_OF, DAY, server

Rows = list[tuple[str, int, int]]


class Fleet(NamedTuple):
    """Server records, and the players of each server by instant."""

    records: dict[str, dict[str, Any]]
    observations: dict[str, dict[int, int]]

    @property
    def rows(self) -> Rows:
        """The observations as rows of a source."""
        return [
            (name, at, players)
            for name, seen in self.observations.items()
            for at, players in sorted(seen.items())
        ]


class TwoFleets(NamedTuple):
    """An old fleet, a new one, and the instant of their answers; None is the default."""

    old: Fleet
    new: Fleet
    at: int | None


def draw_two_fleets(seed: int) -> TwoFleets:
    """Draw two fleets: the second is a copy of the first with a few changes."""
    drawn = random.Random(seed)  # noqa: S311 - not for secrets
    names = drawn.sample("abcdef", drawn.randint(1, 6))
    old = Fleet(
        {name: _draw_record(name, drawn) for name in names},
        {name: _draw_observations(drawn) for name in names},
    )
    new = Fleet(dict(old.records), {name: dict(seen) for name, seen in old.observations.items()})
    for name in "abcdef":
        for change in drawn.choices(_CHANGES, weights=_WEIGHTS, k=drawn.randint(0, 2)):
            change(new, name, drawn)
    instants = [at for fleet in (old, new) for _, at, _ in fleet.rows] or [AS_OF]
    lengths = [0, 0, DAY, 7 * DAY, 30 * DAY, 365 * DAY]
    edge = drawn.choice(instants) + drawn.choice(lengths) + drawn.choice([-1, 0, 0, 1])
    return TwoFleets(old, new, drawn.choice([None, edge]))


def _draw_record(name: str, drawn: random.Random) -> dict[str, Any]:
    fields: dict[str, Any] = {"hostname": drawn.choice("xy"), "tags": drawn.choice([[], ["t"]])}
    if drawn.random() < 0.5:
        players = {"current": drawn.randint(0, 2), "max": drawn.randint(2, 3)}
        fields |= {"players": players, "updatedAt": AS_OF}
        fields |= {
            "sourceId": f"{drawn.choice('XY')}_{name}",
            "completed": drawn.choice([[], ["game"]]),
        }
    return server(name, **fields)


def _draw_observations(drawn: random.Random) -> dict[int, int]:
    """Draw a few observations a day of few or many values, or several blocks in some hours."""
    most = drawn.choice([3, 3, 40, 2**40])
    last = AS_OF // DAY - drawn.choice([0, 0, 0, 5])
    if drawn.random() < 0.1:
        polls = range(last * DAY, last * DAY + 5_000 * 7_919, 7_919)
        return {at: drawn.randint(0, most) for at in polls}
    return {
        day * DAY + drawn.choice([0, 1, drawn.randrange(DAY // 2)]): drawn.randint(0, most)
        for day in range(last - drawn.choice([0, 3, 40, 130]), last + 1)
        for _ in range(drawn.randint(0, 3))
        if day * DAY < AS_OF
    }


def _replace_record(fleet: Fleet, name: str, drawn: random.Random) -> None:
    fleet.records[name] = _draw_record(name, drawn)
    fleet.observations.setdefault(name, {})


def _remove(fleet: Fleet, name: str, _drawn: random.Random) -> None:
    fleet.records.pop(name, None)
    fleet.observations.pop(name, None)


def _change_cfx_id(fleet: Fleet, name: str, _drawn: random.Random) -> None:
    if name in fleet.records:
        fleet.records[name] = {**fleet.records[name], "cfxId": f"y-{name}"}


def _alter_one(fleet: Fleet, name: str, drawn: random.Random) -> None:
    if seen := fleet.observations.get(name):
        seen[drawn.choice(list(seen))] = drawn.choice([0, 1, 2**41])


def _drop_one(fleet: Fleet, name: str, drawn: random.Random) -> None:
    if seen := fleet.observations.get(name):
        del seen[drawn.choice(list(seen))]


def _move_one(fleet: Fleet, name: str, drawn: random.Random) -> None:
    if seen := fleet.observations.get(name):
        at = drawn.choice(list(seen))
        fleet.observations[name] = {one + (one == at): seen[one] for one in seen}


def _append_day(fleet: Fleet, name: str, drawn: random.Random) -> None:
    if name in fleet.records:
        first = AS_OF // DAY * DAY + drawn.choice([0, DAY, 2 * DAY])
        fleet.observations[name] |= {first + at * 9_999: drawn.randint(0, 5) for at in range(5)}


_CHANGES = (_replace_record, _remove, _change_cfx_id, _alter_one, _move_one, _drop_one, _append_day)
_WEIGHTS = (2, 1, 1, 3, 3, 2, 3)
