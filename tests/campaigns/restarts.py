"""Services that are told to end while clients ask: SIGTERM at any moment."""

import json
import random
import signal
import socket
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from campaigns.campaign import Campaign, Result
from campaigns.service_questions import exchanges, two_snapshots
from srvstat.asgi.connection import ANSWER_SECONDS, BODY_SECONDS
from support import clients
from support.answers import answer_in
from support.clients import Client
from support.loads import Exchange, Load, Outcome, rotated
from support.serving import Service, serving

_CLIENTS = 16
_LONGEST = 1.0
"""Seconds after which the signal is sent at the latest."""
_SURELY_READ = 0.5
"""Seconds after which a request that was sent has been read by the service."""
_ENDED = {-signal.SIGTERM, 128 + signal.SIGTERM}
"""143, as a shell calls it; a process that lets the signal end it is told by its number."""


def run(seed: int, count: int) -> Result:
    """Start a service, have clients ask it, end it, again and again."""
    draw = random.Random(seed)
    counts: Counter[str] = Counter()
    failures: list[str] = []
    slowest = 0.0
    with two_snapshots() as (snapshot, _), clients.client() as client:
        asked = exchanges(snapshot, seed)
        for number in range(count):
            after = draw.random() * _LONGEST
            counted, seconds, broken = _outcome_of(snapshot, client, asked, after)
            counts += counted
            slowest = max(slowest, seconds)
            failures += [f"restart {number}, after {after:.3f} s: {why}" for why in broken]
    counts["milliseconds to the end at most"] = round(slowest * 1000)
    return Result(count, dict(counts), tuple(failures))


def _outcome_of(
    snapshot: Path, client: Client, asked: Sequence[Exchange], after: float
) -> tuple[Counter[str], float, list[str]]:
    """End a service some seconds after the first request.

    Return the counts, how many seconds it took to end, and what was broken.
    """
    with serving(snapshot) as service, closing(service.open_connection()) as half:
        exchange = next(
            one for one in asked if one.request.startswith(b"POST") and one.status == 200
        )
        half.sendall(exchange.request[:-10])
        load = Load(service.port, rotated(asked, _CLIENTS), _LONGEST + ANSWER_SECONDS)
        asking = client(load)
        time.sleep(after)
        ended_at = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        broken = _broken_by_the_half(half, exchange)
        exit_code = service.process.wait(timeout=2 * ANSWER_SECONDS)
        seconds = time.monotonic() - ended_at
        outcome = asking.result()
        broken += [*outcome.wrong, *_broken(outcome, ended_at)]
        # The one besides them is the half.
        if (logged := _answers_logged(service)) != outcome.answers + 1:
            broken.append(f"{logged} answers in the log, {outcome.answers} and a half one came")
    if exit_code not in _ENDED:
        broken.append(f"exit code {exit_code}")
    if seconds > BODY_SECONDS + 2:
        broken.append(f"ended {seconds:.1f} s after the signal")
    counts = Counter({"answers": outcome.answers, "requests too late": len(outcome.cuts)})
    return counts, seconds, broken


def _broken_by_the_half(half: socket.socket, exchange: Exchange) -> list[str]:
    """Send the rest of a request that was under way when the service was told to end."""
    received = b""
    try:
        half.sendall(exchange.request[-10:])
        while part := half.recv(1 << 16):
            received += part
    except OSError as error:
        return [f"half a request: {error}"]
    answer = answer_in(received, is_head=False)
    if answer is None:
        return [f"half a request: closed after {len(received)} bytes of an answer"]
    wrong = exchange.wrong_with(answer.status, answer.body)
    return [f"half a request: {wrong}"] if wrong else []


def _broken(outcome: Outcome, ended_at: float) -> list[str]:
    """Return the answers that were cut, and requests in good time that were not answered."""
    return [
        f"{cut.name}: {len(cut.received)} bytes of an answer,"
        f" sent {cut.sent_at - ended_at:+.3f} s from the signal"
        for cut in outcome.cuts
        if cut.received or cut.sent_at < ended_at - _SURELY_READ
    ]


def _answers_logged(service: Service) -> int:
    lines = service.log_path.read_bytes().splitlines()
    return sum("status" in json.loads(line) for line in lines)


CAMPAIGN = Campaign(
    name="restarts",
    promise="a service that is told to end answers whole what is under way, and whatever it says it"
    " has answered; then it is gone",
    run=run,
    short=5,
    long=100,
    unit="restarts",
)
