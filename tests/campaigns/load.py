"""Query the service with many clients: first at full speed, then at half of it."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from campaigns.campaign import Campaign, Result
from campaigns.service_questions import (
    allow_descriptors,
    build_two_snapshots,
    list_exchanges,
    list_server_exchanges,
    read_resident_kib,
)
from support import load_client
from support.http import HEALTH
from support.load import Exchange, Load, Outcome, rotate
from support.process import Service, serve

FEW, MANY = 64, 1_000
_SECONDS = {FEW: 0.6, MANY: 300}
_PARTS = 10
"""Parts of the run time: one to warm up, six with all requests, one for each other load."""
_PERIODS = 6

_MAX_ROUNDS = 4
"""Maximum number of answers that each client may get while another client waits for one."""
_EXTRA_SECONDS = 0.3
"""Added to the time of these rounds, for pauses of the machine."""

_BYTES_PER_ANSWER = 20
_KIB_PER_PERIOD = 400
"""Growth of memory allowed in a period: the memory pools of threads take a while to fill. A leak
grows with the number of answers."""

_OPEN = Exchange(HEALTH)


class _Crowd:
    """A group of clients and their results so far."""

    def __init__(self, service: Service, client: load_client.Client, count: int) -> None:
        self._service, self._client, self._count = service, client, count
        self._seconds = _SECONDS[FEW if count <= FEW else MANY] / _PARTS
        self.outcomes: list[Outcome] = []
        self.failures: list[str] = []

    def ask(self, found: Sequence[Exchange], *, pause: float = 0.0) -> Outcome:
        """Let each client repeat all exchanges for one part of the run time."""
        turns = rotate(found, self._count)
        load = Load(self._service.port, turns, self._seconds, pause=pause, first=_OPEN)
        outcome = self._client(load).result()
        self.outcomes.append(outcome)
        self.failures += outcome.list_failures()
        return outcome

    def ask_fairly(self, found: Sequence[Exchange]) -> Outcome:
        """Ask requests of equal cost, and check that none waits much longer than others.

        Other tests can stop the short form for a second, so it only counts the answers that others
        got in between; the long form also measures the time.
        """
        outcome = self.ask(found)
        name = found[0].name
        if outcome.most_between > _MAX_ROUNDS * self._count:
            self.failures.append(f"{name}: waited for {outcome.most_between:,} other answers")
        most = _MAX_ROUNDS * self._count / outcome.rate + _EXTRA_SECONDS
        slowest = outcome.quantile(1)
        if self._count > FEW and slowest > most * 1_000:
            self.failures.append(f"{name}: took {slowest:,.0f} ms; the limit is {most:.1f} s")
        return outcome


def run(seed: int, count: int) -> Result:
    """Query the service with `count` clients, for half a second, or 5 minutes if there are many.

    First the clients send all kinds of requests at full speed, and the campaign checks the memory
    of the service. Then they send Get Server only: for cached servers, and for servers that do not
    exist, which the service looks up each time. Last, they send everything at half of that rate, to
    measure the latency of a service that is not saturated.
    """
    with (
        allow_descriptors(count),
        build_two_snapshots() as (snapshot, _),
        serve(snapshot, env={}) as service,
        load_client.start_client() as client,
    ):
        crowd = _Crowd(service, client, count)
        all_requests = list_exchanges(snapshot, seed)
        crowd.ask(all_requests)
        memory = [read_resident_kib(service.process.pid) or 0]
        for _ in range(_PERIODS):
            fast = crowd.ask(all_requests)
            memory.append(read_resident_kib(service.process.pid) or 0)
        known, unknown = (crowd.ask_fairly(found) for found in list_server_exchanges(snapshot))
        paced = crowd.ask(all_requests, pause=2 * count / fast.rate)
    growth = median(after - before for before, after in pairwise(memory))
    answers = median(outcome.answers for outcome in crowd.outcomes[1 : 1 + _PERIODS])
    if growth > _KIB_PER_PERIOD + _BYTES_PER_ANSWER * answers / 1024:
        crowd.failures.append(f"memory grows: {', '.join(f'{kib:,}' for kib in memory)} KiB")
    counts = {
        "correct answers": sum(one.answers - one.wrong_count for one in crowd.outcomes),
        "5xx answers": sum(_count_server_errors(one) for one in crowd.outcomes),
        "answers per second": round(fast.rate),
        "answers per second for known servers": round(known.rate),
        "at most {} ms for a known server": round(known.quantile(1)),
        "answers per second for unknown servers": round(unknown.rate),
        "at most {} ms for an unknown server": round(unknown.quantile(1)),
        "answers per second at half speed": round(paced.rate),
        "p99 at half speed {} ms": round(paced.quantile(0.99)),
        "MiB of memory": memory[-1] // 1024,
    }
    return Result(count, counts, tuple(crowd.failures))


def _count_server_errors(outcome: Outcome) -> int:
    return sum(number for status, number in outcome.statuses.items() if status >= 500)


CAMPAIGN = Campaign(
    name="load",
    promise="with any number of clients, each answer has the bytes of the command line, no request"
    " waits much longer than others, and the service's memory does not grow",
    run=run,
    short=FEW,
    long=MANY,
    unit="clients",
)
