"""Test masters that can't be reached, and clusters on which nothing can run."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Cli
from srvstat.contract.errors import EngineError, UsageError
from srvstat.fleet.spark.reach import check_master
from support.spark import run_session, skip_without_spark, start_standalone


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Accept connections, and say nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@pytest.mark.parametrize("scheme", ["spark", "sc"])
def test_a_closed_port_is_named_at_once(scheme: str, closed_port: int) -> None:
    with pytest.raises(EngineError, match=rf"127\.0\.0\.1:{closed_port}: Connection refused"):
        check_master(f"{scheme}://127.0.0.1:{closed_port}")


def test_an_unknown_host_is_named_without_the_token() -> None:
    with pytest.raises(EngineError, match=r"Spark at nowhere\.invalid:15002: ") as refused:
        check_master("sc://nowhere.invalid/;token=secret")

    assert "secret" not in refused.value.reason


def test_one_of_several_masters_is_enough(silent_port: int, closed_port: int) -> None:
    check_master(f"spark://127.0.0.1:{closed_port},127.0.0.1:{silent_port}")


@pytest.mark.parametrize(
    "master",
    ["", "local[", "yarn-client", "sc:h/;token=secret", "spark://host", "sc://:1", "sc://h:x"],
)
def test_another_form_of_master_is_refused(master: str) -> None:
    with pytest.raises(
        UsageError, match=r"not a master of Spark|needs a host and a port"
    ) as refused:
        check_master(master)

    assert "secret" not in refused.value.reason


@pytest.mark.external
def test_the_command_line_reports_an_unreachable_master(
    cli: Cli, tmp_path: Path, closed_port: int
) -> None:
    skip_without_spark()
    (tmp_path / "a.csv").write_text("serverId,observedAt,players\na,0,1\n", encoding="utf-8")
    output = tmp_path / "out.ndjson"

    ran = cli(
        "fleet", f"{tmp_path}/a.csv", "--game=game_a", f"--output={output}", "--engine=spark",
        f"--master=spark://127.0.0.1:{closed_port}",
    )  # fmt: skip

    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (7, b"", 1)
    assert "Connection refused; start it, or correct --master" in ran.stderr
    assert not output.exists()


@pytest.mark.external
@pytest.mark.parametrize(
    ("scheme", "problem"),
    [
        ("sc", "it accepts connections, but did not answer as a Spark Connect server within 20"),
        ("spark", "the job was not accepted within 30 seconds"),
    ],
)
def test_a_port_that_says_nothing_is_given_up(
    tmp_path: Path, silent_port: int, scheme: str, problem: str
) -> None:
    skip_without_spark()

    ran = run_session(f"{scheme}://127.0.0.1:{silent_port}", "session.range(1).count()", tmp_path)

    assert ran.startswith("EngineError: Spark at ")
    assert f"127.0.0.1:{silent_port}: {problem}" in ran


@pytest.mark.external
def test_a_cluster_without_workers_is_given_up(tmp_path: Path) -> None:
    skip_without_spark()
    started = time.monotonic()
    with start_standalone(tmp_path / "cluster", workers=0) as url:
        ran = run_session(url, "session.range(1).count()", tmp_path / "driver")

    assert ran.startswith("EngineError: Spark: no executor ran a task for 3 seconds; does the")
    assert time.monotonic() - started < 120
