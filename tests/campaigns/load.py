"""Many clients at once: as fast as they are answered, then at half the pace."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from campaigns.campaign import Campaign, Result
from campaigns.service_questions import (
    exchanges,
    many_descriptors,
    resident_kib,
    servers,
    two_snapshots,
)
from support import clients
from support.loads import Exchange, Load, Outcome, request, rotated
from support.serving import Service, serving

FEW, MANY = 64, 1_000
_SECONDS = {FEW: 20, MANY: 300}
_PARTS = 10
"""Parts of the time: one to warm up, six of all requests, and one for each of the other loads."""
_PERIODS = 6

_MOST_ROUNDS = 4
"""How many answers each client may get, at most, while another one waits for its own."""
_SECONDS_MORE = 0.3
"""What is added to that as a time, for pauses of the machine."""

_BYTES_AN_ANSWER = 20
_KIB_A_PERIOD = 400
"""How much memory may grow in a period: every thread has its own pool of memory, and it takes a
while until all are full. A leak grows with the answers."""

_OPEN = Exchange(request("/healthz"))


class _Crowd:
    """A number of clients, and what they have found so far."""

    def __init__(self, service: Service, client: clients.Client, count: int) -> None:
        self._service, self._client, self._count = service, client, count
        self._seconds = _SECONDS[FEW if count <= FEW else MANY] / _PARTS
        self.outcomes: list[Outcome] = []
        self.failures: list[str] = []

    def ask(self, found: Sequence[Exchange], *, pause: float = 0.0) -> Outcome:
        """Have each client ask all of this, over and over, for one part of the time."""
        turns = rotated(found, self._count)
        load = Load(self._service.port, turns, self._seconds, pause=pause, first=_OPEN)
        outcome = self._client(load).result()
        self.outcomes.append(outcome)
        self.failures += outcome.failures()
        return outcome

    def ask_fairly(self, found: Sequence[Exchange]) -> Outcome:
        """Do the same with requests of equal cost, and check that none waits for much longer.

        The short form runs beside other tests, which can stop it for a second. So it only counts
        the answers that others got meanwhile; the long form measures the time as well.
        """
        outcome = self.ask(found)
        name = found[0].name
        if outcome.most_between > _MOST_ROUNDS * self._count:
            self.failures.append(f"{name}: waited for {outcome.most_between:,} other answers")
        most = _MOST_ROUNDS * self._count / outcome.rate + _SECONDS_MORE
        slowest = outcome.quantile(1)
        if self._count > FEW and slowest > most * 1_000:
            self.failures.append(f"{name}: took {slowest:,.0f} ms, at most {most:.1f} s are fair")
        return outcome


def run(seed: int, count: int) -> Result:
    """Have a number of clients ask the service: for 20 seconds, or 5 minutes if they are many.

    First they send all kinds of requests as fast as they are answered, while the memory of the
    service is watched. Then they ask for servers only: some that it remembers, and some that do not
    exist, for which it looks each time. Last, they send everything half as often, which shows how
    long an answer takes on a service that is not full.
    """
    with (
        many_descriptors(count),
        two_snapshots() as (snapshot, _),
        serving(snapshot) as service,
        clients.client() as client,
    ):
        crowd = _Crowd(service, client, count)
        all_requests = exchanges(snapshot, seed)
        crowd.ask(all_requests)
        memory = [resident_kib(service.process.pid) or 0]
        for _ in range(_PERIODS):
            fast = crowd.ask(all_requests)
            memory.append(resident_kib(service.process.pid) or 0)
        known, unknown = (crowd.ask_fairly(found) for found in servers(snapshot))
        paced = crowd.ask(all_requests, pause=2 * count / fast.rate)
    growth = median(after - before for before, after in pairwise(memory))
    answers = median(outcome.answers for outcome in crowd.outcomes[1 : 1 + _PERIODS])
    if growth > _KIB_A_PERIOD + _BYTES_AN_ANSWER * answers / 1024:
        crowd.failures.append(f"memory grows: {', '.join(f'{kib:,}' for kib in memory)} KiB")
    counts = {
        "right answers": sum(one.answers - one.wrong_count for one in crowd.outcomes),
        "answers of 5xx": sum(_errors(one) for one in crowd.outcomes),
        "a second": round(fast.rate),
        "of Get Server": round(known.rate),
        "milliseconds for the slowest of these": round(known.quantile(1)),
        "of servers that do not exist": round(unknown.rate),
        "milliseconds for the slowest of those": round(unknown.quantile(1)),
        "a second at half the pace": round(paced.rate),
        "milliseconds for 99 of 100 at that": round(paced.quantile(0.99)),
        "MiB of memory": memory[-1] // 1024,
    }
    return Result(count, counts, tuple(crowd.failures))


def _errors(outcome: Outcome) -> int:
    return sum(number for status, number in outcome.statuses.items() if status >= 500)


CAMPAIGN = Campaign(
    name="load",
    promise="however many ask, each request has the bytes that the command line answers, none waits"
    " much longer than others, and the service's memory does not grow",
    run=run,
    short=FEW,
    long=MANY,
    unit="clients",
)
