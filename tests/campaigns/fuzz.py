"""Run the harnesses under a coverage-guided fuzzer.

These campaigns run for a number of seconds, so a seed does not give the same inputs everywhere. An
input that breaks a promise is saved in tests/corpus, where a test runs it from then on.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from campaigns.build_directory import MEMORY
from campaigns.campaign import Campaign, Result

_TESTS = Path(__file__).parents[1]
_OPTIONS = ("-max_len=4096", "-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1")


def _run(name: str, seed: int, seconds: int) -> Result:
    """Fuzz a harness until a promise is broken or the time is up."""
    if find_spec("atheris") is None:
        return Result(0, {}, ("atheris is not installed; run make soak, which installs it",))
    corpus = _TESTS / "corpus" / name
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=MEMORY) as found:
        ended = subprocess.run(
            [
                *(sys.executable, "fuzz_target.py", name, *_OPTIONS),
                *(f"-max_total_time={seconds}", f"-seed={seed}", f"-artifact_prefix={corpus}/"),
                *(found, str(corpus)),
            ],
            cwd=_TESTS,
            env={**os.environ, "TMPDIR": found},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
    taken = round(time.monotonic() - started)
    output = ended.stdout.decode("utf-8", "backslashreplace")
    executions = re.search(r"^stat::number_of_executed_units: (\d+)", output, re.MULTILINE)
    counts = {"inputs": int(executions[1]) if executions else 0}
    return Result(taken, counts, () if ended.returncode == 0 else (_describe_failure(output),))


def _describe_failure(output: str) -> str:
    """Return the path of the input that broke a promise, and the exception."""
    raised = re.search(r"=== Uncaught Python exception: ===\n(.*)", output)
    kept = re.search(r"Test unit written to (\S+)", output)
    if raised is None or kept is None:
        return output[-2_000:]
    return f"{os.path.relpath(kept[1], _TESTS)}: {raised[1]}"


CAMPAIGNS = tuple(
    Campaign(
        name=f"fuzz-{name}",
        promise=promise,
        run=partial(_run, name),
        short=0,
        long=1_200,
        unit="seconds",
    )
    for name, promise in (
        ("requests", "any request body is read as the specification defines, or refused"),
        ("snapshots", "any file gives a correct answer or an error, within a second"),
        ("text", "any text is displayed without side effects; tables stay aligned"),
    )
)
