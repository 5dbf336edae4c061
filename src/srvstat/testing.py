"""Pytest fixtures that run the service, to test API clients.

A `conftest.py` with `pytest_plugins = ["srvstat.testing"]` makes the fixture `srvstat_service`
available:

    def test_my_client_retries(srvstat_service):
        client = MyClient(srvstat_service.api)
        with srvstat_service.fail("compareServers", ["500", "ok"]):
            assert client.compare("harbor-city", "night-shift")

Override `srvstat_snapshot` to serve other data and `srvstat_options` to set `srvstat serve`
options. Use `serve_snapshot` to run additional services.

PYTEST_DONT_REWRITE: this module has no assertions that need it, and pytest would warn if a test
imports the module.
"""

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

import pytest

__all__ = [
    "SrvstatService",
    "serve_snapshot",
    "srvstat_options",
    "srvstat_service",
    "srvstat_snapshot",
]

_STOP_SECONDS = 30
_LOG_SECONDS = 5


@dataclass(frozen=True)
class SrvstatService:
    """A running service, provided by `srvstat_service` and `serve_snapshot`.

    - `url`: the base URL of the service, such as `http://127.0.0.1:40123`.
    - `api`: the base URL of the API, such as `http://127.0.0.1:40123/gateway/v1`.
    - `log_path`: the path of the service's log, which has one JSON object per line.
    """

    url: str
    log_path: Path
    _rules: list[str] = field(default_factory=list, repr=False)
    _restarts: list[str] = field(default_factory=list, repr=False)

    @property
    def api(self) -> str:
        """The base URL of the API, such as `http://127.0.0.1:40123/gateway/v1`."""
        return f"{self.url}/gateway/v1"

    def read_log(self) -> list[dict[str, Any]]:
        """Return the complete log entries written so far, oldest first.

        `docs/reference/service.md` describes their fields.
        """
        *lines, _ = self.log_path.read_bytes().split(b"\n")
        return [json.loads(line) for line in lines]

    def find_entry(self, request_id: str) -> dict[str, Any]:
        """Return the log entry of the request with this `X-Request-Id`.

        The entry of a failed request has a `reason`.

        Waits up to five seconds, because the service logs a request after responding.

        Raises LookupError if no such entry appears.
        """
        deadline = time.monotonic() + _LOG_SECONDS
        while time.monotonic() < deadline:
            found = [entry for entry in self.read_log() if entry.get("id") == request_id]
            if found:
                return found[-1]
            time.sleep(0.01)
        raise LookupError(f"{self.log_path}: no entry with the id {request_id}")

    def requests(self) -> list[dict[str, Any]]:
        """Return the log entries of the last 1,000 requests, each with its request.

        Each entry has the fields described in `docs/reference/service.md` and `request`: the
        method, path, headers and body, with keys removed.
        """
        found: list[dict[str, Any]] = self._control("GET", "requests")["requests"]
        return found

    def reset(self) -> None:
        """Clear the recorded requests, and restart the rules, random numbers and simulated time."""
        self._control("POST", "reset")

    @contextmanager
    def fail(
        self,
        operation: str | None = None,
        answers: Sequence[str | int] | str | int = "500",
        *,
        server: str | None = None,
        key: str | None = None,
        repeat: bool = False,
    ) -> Iterator[None]:
        """Respond to requests in the block with `answers` in order, then normally.

        - `operation`: only requests of this operation, such as `compareServers`. Default: any.
        - `answers`: the responses, or a single response. `ok` responds normally, a status such as
          `500` responds with this error, `drop` closes the connection without a response, `cut`
          closes it in the middle of the body, `reset` resets it, and `delay=200` waits 200 ms
          before the normal response.
        - `server`: only requests that name this server, with the identifier as sent, alone or after
          `id:` or `cfxId:`.
        - `key`: only requests with this API key.
        - `repeat`: whether to start again after the last answer. Default: false.

        Inner blocks take precedence. Entering or leaving a block restarts all rules. A block that
        ends with unused answers issues a warning, unless the rules were restarted within it.

        Raises ValueError if an answer or an operation is invalid.
        """
        answers = [answers] if isinstance(answers, str | int) else answers
        digest = None if key is None else sha256(key.encode()).hexdigest()
        given = {"operation": operation, "server": server, "sha256": digest, "repeat": repeat}
        lines = [
            f"{name} = {json.dumps(value, ensure_ascii=False)}\n"
            for name, value in {**given, "answers": [*map(str, answers)]}.items()
            if value is not None
        ]
        before = [*self._rules]
        try:
            self._use_rules(["[[rules]]\n" + "".join(lines), *before])
            started = len(self._restarts)
            yield
            is_whole = len(self._restarts) == started
        except BaseException:
            self._use_rules(before)
            raise
        unused = self._use_rules(before)["unused"][0]
        if unused and is_whole:
            text = f"fail: {unused} of {len(answers)} answers unused; too few requests matched"
            warnings.warn(text, stacklevel=3)

    def _use_rules(self, rules: list[str]) -> Any:
        from srvstat.contract.errors import SourceError  # noqa: PLC0415 - few tests use rules
        from srvstat.operations.faults import parse_rules  # noqa: PLC0415 - few tests use rules

        content = "".join(rules).encode()
        try:
            parse_rules("rules", content)  # the service hides quoted values in its errors
        except SourceError as error:
            raise ValueError(f"fail: {error}") from None
        self._rules[:] = rules
        return self._control("PUT", "faults", content)

    def _control(self, method: str, name: str, body: bytes | None = None) -> Any:
        if method != "GET":
            self._restarts.append(name)
        asked = Request(f"{self.url}/__srvstat/{name}", body, method=method)  # noqa: S310 - http
        try:
            with build_opener(ProxyHandler({})).open(asked) as answer:
                return json.loads(answer.read() or b"null")
        except HTTPError as error:
            reason = self.find_entry(error.headers["X-Request-Id"])["reason"]
            raise ValueError(f"srvstat serve: {reason}") from None


@pytest.fixture(scope="session")
def srvstat_snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of the snapshot to serve. Default: the demo snapshot.

    Override it to serve another snapshot. The demo's directory has further files, such as
    `access.toml`.
    """
    directory = tmp_path_factory.mktemp("srvstat-demo")
    done = subprocess.run(  # noqa: S603 - srvstat itself
        _build_command("demo", str(directory)), capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.fail(f"srvstat demo: {done.stderr}", pytrace=False)
    return directory / "snapshot.db"


@pytest.fixture(scope="session")
def srvstat_options() -> Sequence[str]:
    """Return additional `srvstat serve` options. Override it to set some.

    For example, return `("--access", "access.toml")`.
    """
    return ()


@pytest.fixture(scope="session")
def srvstat_service(
    srvstat_snapshot: str | Path,
    srvstat_options: Sequence[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SrvstatService]:
    """Serve the snapshot on a free port for the test session."""
    log_path = tmp_path_factory.mktemp("srvstat-service") / "log.ndjson"
    with serve_snapshot(srvstat_snapshot, *srvstat_options, log_path=log_path) as service:
        yield service


@contextmanager
def serve_snapshot(snapshot: str | Path, *options: str, log_path: Path) -> Iterator[SrvstatService]:
    """Serve a snapshot on a free port until the block ends.

    - `snapshot`: the path of the snapshot.
    - `options`: additional options of `srvstat serve`.
    - `log_path`: the file for the service's log, which is replaced.

    Yields a SrvstatService. The service runs in a separate process and ignores SRVSTAT_ environment
    variables. If it does not start, the test fails with the error message of `srvstat serve`.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith("SRVSTAT_")}
    with (
        log_path.open("wb") as log,
        subprocess.Popen(  # noqa: S603 - srvstat itself
            _build_command(
                "serve", "--snapshot", str(snapshot), "--port", "0", "--control", *options
            ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env=env,
        ) as process,
    ):
        try:
            assert process.stdout  # noqa: S101 - it is a pipe
            _, _, url = process.stdout.readline().decode().rstrip("\n").rpartition(" at ")
            if not url:
                pytest.fail(f"srvstat serve: {log_path.read_text('utf-8')}", pytrace=False)
            yield SrvstatService(url, log_path)
            process.terminate()
            process.wait(_STOP_SECONDS)
        finally:
            process.kill()


def _build_command(*arguments: str) -> list[str]:
    # Run srvstat from this environment, even if PATH contains another version. Without -P, files in
    # the current directory, such as secrets.py, would shadow modules that srvstat imports.
    return [sys.executable, "-P", "-m", "srvstat", *arguments]
