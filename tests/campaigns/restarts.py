"""Stop the service by SIGTERM at random moments while clients send requests."""

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
from campaigns.service_questions import build_two_snapshots, list_exchanges
from srvstat.asgi.connection import ANSWER_SECONDS, BODY_SECONDS
from support import load_client
from support.http import split_answer
from support.load import Exchange, Load, Outcome, rotate
from support.load_client import Client
from support.process import Service, serve

_CLIENTS = 16
_MAX_DELAY = 0.5
"""Maximum number of seconds before the signal."""
_READ_SECONDS = 0.5
"""Seconds after which the service has certainly read a request."""
_EXIT_CODES = {-signal.SIGTERM, 128 + signal.SIGTERM}
"""Killed by the signal, or 143, as a shell reports it."""


def run(seed: int, count: int) -> Result:
    """Start a service, send requests from clients, stop it, and repeat."""
    rng = random.Random(seed)
    counts: Counter[str] = Counter()
    failures: list[str] = []
    slowest = 0.0
    with build_two_snapshots() as (snapshot, _), load_client.start_client() as client:
        exchanges = list_exchanges(snapshot, seed)
        for number in range(count):
            after = rng.random() * _MAX_DELAY
            counted, seconds, problems = _run_case(snapshot, client, exchanges, after)
            counts += counted
            slowest = max(slowest, seconds)
            failures += [f"restart {number}, after {after:.3f} s: {why}" for why in problems]
    counts["at most {} ms from the signal to the end"] = round(slowest * 1000)
    return Result(count, dict(counts), tuple(failures))


def _run_case(
    snapshot: Path, client: Client, exchanges: Sequence[Exchange], after: float
) -> tuple[Counter[str], float, list[str]]:
    """Stop a service `after` seconds; return counts, seconds until it ended, and problems."""
    with serve(snapshot) as service, closing(service.open_connection()) as half:
        exchange = next(
            one for one in exchanges if one.request.startswith(b"POST") and one.status == 200
        )
        half.sendall(exchange.request[:-10])
        load = Load(service.port, rotate(exchanges, _CLIENTS), _MAX_DELAY + ANSWER_SECONDS)
        asking = client(load)
        time.sleep(after)
        ended_at = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        problems = _finish_half_request(half, exchange)
        exit_code = service.process.wait(timeout=2 * ANSWER_SECONDS)
        seconds = time.monotonic() - ended_at
        outcome = asking.result()
        problems += [*outcome.wrong, *_check_outcome(outcome, ended_at)]
        # The half request is the additional one.
        if (logged := _count_logged_answers(service)) != outcome.answers + 1:
            problems.append(f"{logged} answers in the log, but {outcome.answers} + 1 received")
    if exit_code not in _EXIT_CODES:
        problems.append(f"exit code {exit_code}")
    if seconds > BODY_SECONDS + 2:
        problems.append(f"ended {seconds:.1f} s after the signal")
    counts = Counter({"answers": outcome.answers, "requests too late": len(outcome.cuts)})
    return counts, seconds, problems


def _finish_half_request(half: socket.socket, exchange: Exchange) -> list[str]:
    """Send the second half of a request after the signal; return problems with its answer."""
    received = b""
    try:
        half.sendall(exchange.request[-10:])
        while part := half.recv(1 << 16):
            received += part
    except OSError as error:
        return [f"half request: {error}"]
    found = split_answer(received, is_head=False)
    if found is None:
        return [f"half request: closed after {len(received)} bytes of an answer"]
    answer, _ = found
    problem = exchange.find_problem(answer.status, answer.body)
    return [f"half request: {problem}"] if problem else []


def _check_outcome(outcome: Outcome, ended_at: float) -> list[str]:
    """Return incomplete answers, and requests sent early enough that were not answered."""
    return [
        f"{cut.name}: {len(cut.received)} bytes of an answer,"
        f" sent {cut.sent_at - ended_at:+.3f} s from the signal"
        for cut in outcome.cuts
        if cut.received or cut.sent_at < ended_at - _READ_SECONDS
    ]


def _count_logged_answers(service: Service) -> int:
    lines = service.log_path.read_bytes().splitlines()
    return sum("status" in json.loads(line) for line in lines)


CAMPAIGN = Campaign(
    name="restarts",
    promise="after SIGTERM, a service completes the answers to all requests that it has received,"
    " then ends",
    run=run,
    short=2,
    long=100,
    unit="restarts",
)
