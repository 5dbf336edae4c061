"""The demo, and its make target."""

import shlex
import subprocess
import sys
from pathlib import Path
from shutil import make_archive

import pytest

import srvstat
from conftest import AS_OF, ROOT, Build, Cli, server
from conftest import srvstat as run_srvstat
from srvstat.cli.demo import list_ids, read_demo_file

pytestmark = pytest.mark.slow

FILES = [
    "access.toml",
    "customer.har",
    "games.csv",
    "mail.txt",
    "observations.csv",
    "servers.ndjson",
    "snapshot.db",
]


@pytest.fixture(autouse=True)
def _working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_commands_that_the_demo_suggests_work(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = cli("demo", "a place's #1").stdout.decode()
    local, _, over_http = shown.partition("Try next:\n")[2].partition("\nOver HTTP")
    serving, _, in_browser = over_http.partition("\nIn a browser")
    export, *tries, replay = [line.strip() for line in local.splitlines() if line.startswith("  ")]

    assert len(tries) == 5
    snapshot = shlex.split(export)[1].partition("=")[2]
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", snapshot)
    for command in tries:
        words = shlex.split(command.partition("|")[0])
        ran = cli(*words[1:])
        assert (words[0], ran.exit_code) == ("srvstat", 0), ran.stderr
    assert cli(*shlex.split(replay)[1:]).exit_code == 5  # the recorded response is stale
    serve, curl = (shlex.split(line) for line in serving.splitlines()[1:])
    assert serve == ["srvstat", "serve", "--snapshot", snapshot]
    assert curl[:3] == ["curl", "-H", "X-Gateway-Key: any"]
    assert curl[3:] == ["http://127.0.0.1:8000/gateway/v1/servers/flaky-arena"]
    for_pages = shlex.split(in_browser.splitlines()[-1])
    assert for_pages == [*serve, "--cors", "http://localhost:5173", "--explain-errors"]


def test_the_demo_keeps_added_keys(cli: Cli) -> None:
    assert cli("demo", "here").exit_code == 0
    assert cli("access", "new-key", "--plan", "studio", "--access", "here/access.toml").stdout
    before = Path("here/access.toml").read_bytes()

    again = cli("demo", "here")

    assert (again.exit_code, again.stderr) == (0, "")
    assert Path("here/access.toml").read_bytes() == before


def test_the_demo_writes_and_reports_missing_files(cli: Cli) -> None:
    assert cli("demo", "here").stderr == (
        "wrote here/servers.ndjson, here/observations.csv, here/access.toml, here/games.csv,"
        " here/mail.txt, here/customer.har and here/snapshot.db\n"
    )
    Path("here/access.toml").unlink()
    assert cli("demo", "here").stderr == "wrote here/access.toml\n"
    Path("here/snapshot.db").unlink()
    Path("here/servers.ndjson").unlink()
    assert cli("demo", "here").stderr == "wrote here/servers.ndjson and here/snapshot.db\n"
    assert sorted(path.name for path in Path("here").iterdir()) == FILES


def test_the_demo_always_writes_the_same_bytes(tmp_path: Path, cli: Cli) -> None:
    other = {"PYTHONHASHSEED": "7", "TZ": "Asia/Kolkata", "LC_ALL": "C"}
    assert cli("demo", "one").exit_code == 0
    assert run_srvstat("demo", "two", cwd=tmp_path, env=other).exit_code == 0
    before = {name: Path("one", name).read_bytes() for name in FILES}
    assert cli("demo", "one").exit_code == 0

    for name in FILES:
        assert before[name] == Path("one", name).read_bytes() == Path("two", name).read_bytes()
    with open("one/observations.csv", "a", encoding="ascii") as file:
        file.write("a,0,1\n")
    assert cli("demo", "one").exit_code == 2


def test_the_package_works_in_a_zip_archive() -> None:
    package = make_archive("package", "zip", ROOT / "src", "srvstat")
    command = [sys.executable, "-m", "srvstat", "demo", "zipped"]
    ran = subprocess.run(command, env={"PYTHONPATH": package}, capture_output=True, check=False)
    assert (ran.returncode, ran.stderr.decode().partition(" ")[0]) == (0, "wrote")
    assert {path.name for path in Path("zipped").iterdir()} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_the_demo_never_replaces_another_file(cli: Cli, name: str) -> None:
    Path("mine").mkdir()
    Path("mine", name).write_text("precious")

    ran = cli("demo", "mine")

    assert (ran.exit_code, ran.stdout) == (2, b"")
    assert f"mine/{name}: exists and is not of this version's demo" in ran.stderr
    assert Path("mine", name).read_text() == "precious"
    assert [path.name for path in Path("mine").iterdir()] == [name]


def test_the_demo_refuses_another_snapshot(cli: Cli, build: Build) -> None:
    Path("mine").mkdir()
    Path(build([server("a")], [("a", AS_OF, 1)])).rename("mine/snapshot.db")

    ran = cli("demo", "mine")

    assert (ran.exit_code, ran.stdout) == (2, b"")
    assert "mine/snapshot.db: exists and is not of this version's demo" in ran.stderr


def test_the_servers_of_the_demo_show_values_that_clients_forget(demo_snapshot: str) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        details = {name: snapshot.get(name).data for name in list_ids()}
        year, month, week = (
            snapshot.compare(["world-event", "silent-valley"], range=name).data
            for name in ("1y", "30d", "7d")
        )
    lines = read_demo_file("observations.csv").decode("ascii").splitlines()
    *_, last = (line for line in lines if line.startswith("flaky-arena,"))

    assert {detail.icon_url is None for detail in details.values()} == {True, False}
    assert details["flaky-arena"].players.current != int(last.rpartition(",")[2])
    assert details["world-event"].players.max > 1 << 31
    peaks = [of[0].peak_players or 0 for of in (year, month, week)]
    assert [peak > 1 << 31 for peak in peaks] == [True, False, False]
    assert not details["silent-valley"].offline
    assert [of[1].sample_count > 0 for of in (year, month, week)] == [True, True, False]
    assert week[1].current_players > 0
