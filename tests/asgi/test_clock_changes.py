"""Set the machine's clock while the service runs."""

import asyncio
import logging
import time
from pathlib import Path

import pytest

from asgi.log_entries import wait_for_entries
from asgi.small_service import build_small, format_access
from srvstat.asgi.log import Log, WarningHandler
from support.http import HOST, A, request, send_request
from support.process import Service, serve

pytestmark = pytest.mark.slow

_CLOCK = """
import os, time

real = time.time

def set_clock():
    with open(os.environ["CLOCK"], encoding="ascii") as offset:
        return real() + float(offset.read())

time.time = set_clock
time.time_ns = lambda: int(set_clock() * 1e9)
"""
"""Runs as `sitecustomize`, which Python imports before anything else."""


def ask(service: Service) -> int:
    return send_request(service, request(A, HOST, b"X-Gateway-Key: a-key")).status


@pytest.mark.parametrize("hours", [-1, 1])
def test_setting_the_clock_does_not_change_a_limit(hours: int, tmp_path: Path) -> None:
    clock, access = tmp_path / "clock", tmp_path / "access.toml"
    (tmp_path / "sitecustomize.py").write_text(_CLOCK, encoding="ascii")
    clock.write_text("0", encoding="ascii")
    access.write_text(format_access({"a-key": "three"}), encoding="utf-8")
    env = {"PYTHONPATH": str(tmp_path), "CLOCK": str(clock)}
    with serve(build_small(tmp_path), "--access", str(access), env=env) as service:
        first = [ask(service) for _ in range(2)]
        clock.write_text(str(hours * 3600), encoding="ascii")
        then = [ask(service) for _ in range(2)]
        days_and_hours = {entry["time"][:13] for entry in wait_for_entries(service, 4)}

    assert first + then == [200, 200, 200, 429]
    assert len(days_and_hours) > 1, "the clock was not set"


def test_setting_the_clock_back_does_not_hide_a_warning(
    capfd: pytest.CaptureFixture[str],
) -> None:
    log = Log()
    handler = WarningHandler(log)
    warning = {"msg": "no descriptors", "name": "asyncio", "levelno": logging.WARNING}
    now = time.time()

    async def warn() -> None:
        for created in (now, now - 3_600):
            handler.emit(logging.makeLogRecord({**warning, "created": created}))
            await asyncio.sleep(1.1)  # the same warning is logged once a second
        log.close()

    asyncio.run(warn())

    assert capfd.readouterr().err.count("no descriptors") == 2
