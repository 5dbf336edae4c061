"""Many clients at once: as fast as they are answered, then at half the pace."""

import clients
from campaigns.campaign import Campaign, Result
from campaigns.service_questions import exchanges, resident_kib, two_snapshots
from loads import Load, Outcome, rotated
from serving import serving

FEW, MANY = 64, 256
_SECONDS = {FEW: 20, MANY: 300}
_MOST_GROWTH = 0.05
_WARM_UP = 0.2
"""The part of the time after which the service has what it remembers in memory."""


def run(seed: int, count: int) -> Result:
    """Have a number of clients ask the service: for 20 seconds, or 5 minutes if they are many.

    A fifth of the time they warm it up. Then they ask as fast as they are answered: so nothing
    waits but the service, and the slowest answers tell only how many clients there are. Last, they
    ask half as often: how long an answer takes then is what is told.
    """
    seconds = _SECONDS[FEW if count <= FEW else MANY]
    with (
        two_snapshots() as (snapshot, _),
        serving(snapshot) as service,
        clients.client() as client,
    ):
        turns = rotated(exchanges(snapshot, seed), count)

        def ask(part: float, pause: float = 0.0) -> Outcome:
            load = Load(service.port, turns, seconds * part, pause=pause)
            return client(load).result()

        warm = ask(_WARM_UP)
        before = resident_kib(service.process.pid)
        fast = ask((1 - _WARM_UP) / 2)
        paced = ask((1 - _WARM_UP) / 2, pause=2 * count / fast.rate)
        after = resident_kib(service.process.pid)
        failures = [why for one in (warm, fast, paced) for why in one.failures()]
    if before and after and after > before * (1 + _MOST_GROWTH):
        failures.append(f"memory has grown from {before:,} to {after:,} KiB")
    counts = {
        "right answers": sum(one.answers - one.wrong_count for one in (warm, fast, paced)),
        "a second": round(fast.rate),
        "a second at half the pace": round(paced.rate),
        "milliseconds for 99 of 100 of these": round(paced.quantile(0.99)),
        "MiB of memory": (after or 0) // 1024,
    }
    return Result(count, counts, tuple(failures))


CAMPAIGN = Campaign(
    name="load",
    promise="however many ask, each request has the bytes that the command line answers, and the"
    " service's memory does not grow",
    run=run,
    short=FEW,
    long=MANY,
    unit="clients",
)
