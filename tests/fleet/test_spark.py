"""Spark gives the bytes of `compare` in any session, and on a cluster that loses an executor."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from shutil import make_archive, which
from typing import Any

import pytest
from pyarrow import parquet

from conftest import AS_OF, DAY, ROOT, Cli, csv, ndjson, server
from fleet.fleet_runs import build, check_results, forge_statistics, write_fleet, write_rows
from srvstat.contract.errors import UsageError
from support.snapshots import parse_summary

pytestmark = [
    pytest.mark.external,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully:FutureWarning"),
]

JOB = ROOT / "src" / "srvstat" / "fleet" / "spark.py"
SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # compiles for short jobs
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    # Files of more bytes than this are split, so that several tasks read one.
    "spark.sql.files.maxPartitionBytes": "20000",
}
SECONDS = 180


def make_environment(folder: Path, **variables: str) -> dict[str, str]:
    """Return the environment of a program of Spark, with its settings in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{name} {value}\n" for name, value in SETTINGS.items()]
    (folder / "spark-defaults.conf").write_text("".join(lines), encoding="utf-8")
    return {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(folder),
        "SPARK_LOCAL_DIRS": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
        **variables,
    }


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Start a session; main() of the job uses it, too."""
    pytest.importorskip("pyspark", reason="needs PySpark; see `make external`")
    if which("java") is None:
        pytest.skip("needs Java")
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only `make external` installs it

    handler = signal.getsignal(signal.SIGINT)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in make_environment(tmp_path_factory.mktemp("spark")).items():
            patch.setenv(name, value)
        session = SparkSession.builder.master("local[2]").getOrCreate()
        signal.signal(signal.SIGINT, handler)  # PySpark installs one of its own
        yield session
        session.stop()


def run_job(*arguments: str) -> int:
    from srvstat.fleet.spark import main  # noqa: PLC0415 - needs PySpark

    return main(arguments)


def escape(path: Path) -> str:
    """Return a path in which no character is a pattern for Spark."""
    return re.sub(r"([]*?{}\\[])", r"\\\1", str(path))


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(("seed", "range"), [(1, "30d"), (3, "1y")])
def test_the_job_gives_the_bytes_of_compare_for_every_server(
    cli: Cli, tmp_path: Path, seed: int, range: str
) -> None:
    files = write_fleet(tmp_path, Random(seed))  # noqa: S311 - not a secret
    build(cli, files, tmp_path)
    output = tmp_path / "results.ndjson"

    code = run_job(
        *map(escape, files.sources), f"--servers={files.servers}", *files.options,
        f"--range={range}", f"--output={output}", "--max-rejected=50%",
    )  # fmt: skip

    assert code == 0
    check_results(cli, tmp_path, output, range)


def create_frames(spark: Any, rows: Iterable[tuple[Any, ...]]) -> tuple[Any, Any]:
    """Return observations with a position, and the records of two servers."""
    kinds = "serverId STRING, observedAt TIMESTAMP, players INT, position INT"
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    observed = [(name, epoch + timedelta(milliseconds=at), *rest) for name, at, *rest in rows]
    kinds_of_servers = "id STRING, cfxId STRING, sourceId STRING, publishable BOOLEAN"
    records = [("a", "x-a", None, None), ("b", None, "B b", True), ("c", None, None, False)]
    servers = spark.createDataFrame(records, kinds_of_servers)
    return spark.createDataFrame(observed, kinds), servers


ROWS = [
    ("a", AS_OF, 4, 2),
    ("a", AS_OF, 7, 1),
    ("a", AS_OF - DAY + 1, 7, 3),
    ("a", AS_OF - DAY, 900, 4),
    ("B b", AS_OF - 9 * DAY, 5, 5),
    ("c", AS_OF + 1, 5, 6),
    ("unknown", AS_OF + 1, 5, 7),
    ("a", AS_OF, -1, 0),
    (None, AS_OF, 1, 0),
]


def test_compute_resolves_conflicts_in_the_session_of_its_caller(spark: Any) -> None:
    from srvstat.fleet.spark import compute  # noqa: PLC0415 - needs PySpark

    observations, servers = create_frames(spark, ROWS)

    def collect(observations: Any, **options: Any) -> dict[str, Any]:
        found = compute(observations, servers, range="24h", **options)
        return {row.serverId: row.asDict() for row in found.collect()}

    first, lowest = collect(observations), collect(observations, conflicts="lowest")
    assert {name: row["sampleCount"] for name, row in first.items()} == {"a": 2, "b": 0}
    assert (first["a"]["currentPlayers"], first["a"]["medianPlayers"]) == (7, 7.0)
    assert (lowest["a"]["currentPlayers"], lowest["a"]["averagePlayers"]) == (4, 5.5)
    assert (first["a"]["growthPlayers"], lowest["a"]["growthPlayers"]) == (0, -3)
    assert (first["b"]["cfxId"], first["b"]["currentPlayers"]) == ("b", 5)
    assert (first["b"]["peakPlayers"], first["b"]["uptime"]) == (None, None)
    as_of = datetime.fromtimestamp((AS_OF - 1) / 1000, UTC)
    for end in (as_of, AS_OF - 1):
        assert collect(observations, as_of=end)["a"]["averagePlayers"] == 453.5
    numbers = observations.selectExpr("serverId", "unix_millis(observedAt) observedAt", "players")
    assert collect(numbers, conflicts="lowest") == lowest
    # Nothing is computed before the result is used: only then the conflict is found.
    lazy = compute(numbers, servers, range="24h")
    with pytest.raises(Exception, match="server a has both 4 and 7 players at 1772366400000"):
        lazy.collect()
    assert compute(numbers, servers, as_of=AS_OF - 1).count() == 2


def test_compute_reads_records_as_spark_reads_their_json(spark: Any, tmp_path: Path) -> None:
    from srvstat.fleet.spark import compute  # noqa: PLC0415 - needs PySpark

    observations, _ = create_frames(spark, ROWS)
    records = [server("a", players={"current": 3}), server("b"), server("no", publishable=False)]
    (tmp_path / "servers.ndjson").write_bytes(ndjson(records))
    servers = spark.read.json(str(tmp_path / "servers.ndjson"))

    found = compute(observations, servers, range="24h").orderBy("serverId").collect()

    assert [(row.serverId, row.currentPlayers) for row in found] == [("a", 3), ("b", 0)]


def test_no_row_is_lost_to_wrong_statistics(spark: Any, tmp_path: Path) -> None:
    from srvstat.fleet.spark import compute  # noqa: PLC0415 - needs PySpark

    path = write_rows(tmp_path / "rows.parquet", [("a", AS_OF - 1, 1), ("a", AS_OF, 3)])
    forge_statistics(path, AS_OF - 1, AS_OF + DAY)
    output = tmp_path / "results.ndjson"

    assert run_job(str(path), f"--at={AS_OF}", "--conflicts=lowest", f"--output={output}") == 0
    servers = spark.createDataFrame([("a",)], "id STRING")
    observations = spark.read.parquet(str(path))
    (row,) = compute(observations, servers, as_of=AS_OF, conflicts="lowest").collect()

    result = json.loads(output.read_bytes())
    assert (result["sampleCount"], result["averagePlayers"]) == (2, 2)
    assert (row.sampleCount, row.averagePlayers) == (2, 2)


def test_compute_refuses_columns_that_it_would_have_to_guess(spark: Any) -> None:
    from srvstat.fleet.spark import compute  # noqa: PLC0415 - needs PySpark

    observations, servers = create_frames(spark, ROWS)
    for changed, message in (
        (observations.drop("players"), "observations: the column players is missing"),
        (observations.selectExpr("*", "1.5 AS x").drop("players").withColumnRenamed("x", "players"),
         r"players is of type decimal\(2,1\); cast it to bigint"),
        (observations.withColumn("observedAt", observations.observedAt.cast("timestamp_ntz")),
         "observedAt is of type timestamp_ntz; cast it to timestamp or bigint"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=message):
            compute(changed, servers)
    for options in ({"range": "8d"}, {"conflicts": "most"}, {"as_of": datetime(2026, 1, 1)}):  # noqa: DTZ001 - no zone on purpose
        with pytest.raises(UsageError, match=f"^{next(iter(options))}: "):
            compute(observations, servers, **options)


@pytest.mark.usefixtures("spark")
def test_what_the_job_refuses_leaves_no_file(capfd: pytest.CaptureFixture[str], here: Path) -> None:
    week, bad = str(here / "week.csv"), str(here / "bad.csv")
    Path("bad.csv").write_bytes(csv([("a", AS_OF, -1)] * 11 + [("no", AS_OF, 1)] * 20))
    Path("other.csv").write_text("id,time,count\na,1,2\n", encoding="utf-8")
    before = sorted(os.listdir())
    for arguments, code, message in (
        ([week, "-o", "r.csv"], 2, "-o r.csv: unknown format"),
        ([week, "-o", "week.ndjson", "--at=now"], 2, "--at: "),
        (
            [week, "-o", "r.ndjson", "--max-rejected=x"],
            2,
            "error: --max-rejected: must be a number",
        ),
        ([week, "-o", "r.ndjson", "--range=8d"], 40, "INVALID_REQUEST"),
        ([week, "no.csv", "-o", "r.ndjson"], 6, "error: no.csv: Path does not exist: "),
        ([str(here / "other.csv"), "-o", "r.ndjson"], 6, "other.csv: CSV header does not conform"),
        ([week, "-o", "r.ndjson", "--at=5"], 6, "no observations kept: "),
        ([week, bad, "-o", "r.ndjson"], 6, "bad.csv: 11 of 31 rows rejected"),
    ):
        assert run_job(*arguments, "--servers=servers.ndjson") == code
        assert message in capfd.readouterr().err
        assert sorted(os.listdir()) == before

    assert (
        run_job(week, bad, "--servers=servers.ndjson", "-o", "r.ndjson", "--max-rejected=50%") == 0
    )

    warned = capfd.readouterr().err
    assert (
        "warning: 31 of 34 rows not kept: 20 not in the servers file; 11 rejected, players: must"
        in warned
    )
    lines = Path("r.ndjson").read_bytes().splitlines()
    assert [json.loads(line)["serverId"] for line in lines] == ["a", "b"]

    folder = here / "results"
    to_folder = (week, "--servers=servers.ndjson", f"--output=file://{folder}")
    assert run_job(*to_folder) == 0
    assert parquet.read_table(folder)["sampleCount"].to_pylist() == [2, 1]
    capfd.readouterr()
    assert run_job(*to_folder) == 7
    assert "error: Spark: Path " in capfd.readouterr().err


def write_standing_fleet(cli: Cli, directory: Path) -> list[str]:
    """Write a fleet, and its results by DuckDB; return the arguments of the job."""
    drawn = Random(17)  # noqa: S311 - not a secret
    rows = [
        (f"server-{drawn.randrange(20)}", AS_OF - 300_000 * drawn.randrange(6_000), n % 300)
        for n in range(60_000)
    ]
    (directory / "rows.csv").write_bytes(csv(rows))
    source = str(directory / "rows.csv")
    ran = cli("fleet", source, "--game=game_a", f"--output={directory}/duckdb.ndjson")
    assert ran.exit_code == 0, ran.stderr
    assert parse_summary(ran)["conflicting"] != "0"
    return [source, f"--output={directory}/spark.ndjson"]


def check_equal(directory: Path) -> None:
    results = (directory / "spark.ndjson").read_bytes()
    assert results == (directory / "duckdb.ndjson").read_bytes()


@pytest.mark.usefixtures("spark")
def test_the_job_runs_in_a_session_of_spark_connect(cli: Cli, tmp_path: Path) -> None:
    arguments = write_standing_fleet(cli, tmp_path)
    environment = make_environment(tmp_path / "connect", SPARK_REMOTE="local[2]")
    del environment["PYSPARK_PYTHON"]  # the job names its own Python

    ran = subprocess.run(
        [sys.executable, "-m", "srvstat.fleet.spark", *arguments],
        env=environment, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    check_equal(tmp_path)


@contextmanager
def start(folder: Path, program: str, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a program of Spark, which logs to a file in a folder; kill it after the block."""
    import pyspark  # noqa: PLC0415 - only `make external` installs it

    environment = make_environment(folder, SPARK_DAEMON_MEMORY="512m")
    path = Path(pyspark.__file__).parent / "bin" / program
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [path, *arguments],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, env=environment,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # executors are in the same session
        process.wait()


def wait_for(folder: Path, pattern: str) -> str:
    """Wait until a line of a program's log matches, and return its first group."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        text = (folder / "log").read_text(encoding="utf-8", errors="replace")
        if found := re.search(pattern, text):
            return found[1]
        time.sleep(0.1)
    raise AssertionError(text)


def find_executors(folder: Path) -> Mapping[int, str]:
    """Return the processes of executors that work in a folder."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (path / "cmdline").read_bytes().decode(errors="replace")
            if "CoarseGrainedExecutorBackend" in command and str(folder) in os.readlink(
                path / "cwd"
            ):
                found[int(path.name)] = command
    return found


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux's /proc")
@pytest.mark.usefixtures("spark")
def test_a_killed_executor_of_a_standalone_cluster_changes_nothing(
    cli: Cli, tmp_path: Path
) -> None:
    arguments = write_standing_fleet(cli, tmp_path)
    package = make_archive(str(tmp_path / "srvstat"), "zip", ROOT / "src", "srvstat")
    place = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    size = ("--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / "work"))
    with ExitStack() as stack:
        master = "org.apache.spark.deploy.master.Master"
        stack.enter_context(start(tmp_path / "master", "spark-class", master, *place))
        url = wait_for(tmp_path / "master", r"Starting Spark master at (spark://\S+)")
        for name in ("worker-0", "worker-1"):
            worker = "org.apache.spark.deploy.worker.Worker"
            stack.enter_context(start(tmp_path / name, "spark-class", worker, *place, *size, url))
            wait_for(tmp_path / name, "(Successfully registered) with master")
        job = stack.enter_context(
            start(
                tmp_path / "driver", "spark-submit", "--master", url, "--py-files", package,
                str(JOB), *arguments,
            )
        )  # fmt: skip
        wait_for(tmp_path / "driver", r"(Starting task) 1\.0 in stage 0")
        killed = min(find_executors(tmp_path / "work"))
        os.kill(killed, signal.SIGKILL)
        code = job.wait(SECONDS)
        log = (tmp_path / "driver" / "log").read_text(errors="replace")

    assert code == 0, log
    assert "Lost executor" in log
    check_equal(tmp_path)
