"""Flip bits of snapshots of older formats, and upgrade them."""

import multiprocessing
import random
import tempfile
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from campaigns.build_directory import MEMORY
from campaigns.campaign import Campaign, Result
from srvstat.contract.errors import SnapshotError
from srvstat.snapshot.write.upgrade import upgrade
from support.old_formats import BUNDLE_VERSIONS, VERSIONS, read_old_file

_NAMES = (
    *(f"format-{version}" for version in VERSIONS),
    *(f"format-{version}-bundle" for version in BUNDLE_VERSIONS),
)
_WITHOUT_DIGESTS = ("format-1", "format-2")
_PROCESSES = 2
_FEW = 100
"""Up to this number of cases, this process is cheaper than others."""

_SAME, _REFUSED, _UNVERIFIED = "the same snapshot", "refused", "changed without digests"


def _run(seed: int, count: int) -> Result:
    parts = [range(first, count, _PROCESSES) for first in range(_PROCESSES)]
    if count <= _FEW:
        results = [_run_cases(seed, range(count))]
    else:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(_PROCESSES, mp_context=context) as pool:
            results = list(pool.map(_run_cases, [seed] * _PROCESSES, parts))
    counts = Counter(dict.fromkeys((_SAME, _REFUSED, _UNVERIFIED), 0))
    for found, _ in results:
        counts.update(found)
    return Result(count, counts, tuple(failure for _, failures in results for failure in failures))


def _run_cases(seed: int, numbers: Iterable[int]) -> tuple[Counter[str], list[str]]:
    """Run cases; return the number of each outcome, and the failures."""
    counts: Counter[str] = Counter()
    failures = []
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        path = Path(directory) / "snapshot.db"
        old = {name: read_old_file(name) for name in _NAMES}
        expected = {name: _upgrade(path, content) for name, content in old.items()}
        for number in numbers:
            name = _NAMES[number % len(_NAMES)]
            flipped = bytearray(old[name])
            bit = random.Random(f"{seed} {number}").randrange(8 * len(flipped))
            flipped[bit // 8] ^= 1 << bit % 8
            try:
                is_same = _upgrade(path, bytes(flipped)) == expected[name]
            except SnapshotError:
                counts[_REFUSED] += 1
                continue
            except Exception as error:  # noqa: BLE001 - any other error is a failure
                failures.append(f"seed {seed}, case {number}: bit {bit} of {name}: {error!r}")
                continue
            counts[_SAME if is_same else _UNVERIFIED] += 1
            if not is_same and name not in _WITHOUT_DIGESTS:
                failures.append(f"seed {seed}, case {number}: bit {bit} of {name}: changed")
    return counts, failures


def _upgrade(path: Path, content: bytes) -> bytes:
    """Upgrade a snapshot; return the bytes of the result."""
    path.write_bytes(content)
    upgrade(str(path))
    return path.read_bytes()


CAMPAIGN = Campaign(
    name="upgrades",
    promise="a snapshot of format 3 to 7 with a flipped bit is refused, or its upgrade is the same",
    run=_run,
    short=27,
    long=20_000,
    unit="flipped bits",
)
