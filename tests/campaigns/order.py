"""The order in which a build writes, flushes and names its files: what a power failure tests.

No killed process shows it, since the system keeps what was written and not yet flushed.
"""

import json
import os
import re
import tempfile

from campaigns.build_directory import MEMORY, SETTINGS, BuildDirectory
from campaigns.campaign import Campaign, Result
from campaigns.faultfs import NEEDS, Call, Fault, run_preloaded, run_with_fault

SAFE = re.compile("[wW]*fW*nW*dW*FND")
"""Each file written, flushed, named and its directory flushed: the snapshot, and then the rejects.

They are w, f, n and d for the snapshot and large for the rejects, which are written at any time.
"""

LETTERS = {"write": "w", "pwrite": "w", "ftruncate": "w", "fchmod": "w", "fsync": "f"}
LETTERS |= {"fdatasync": "f", "rename": "n", "link": "n"}


def run(_seed: int, _count: int) -> Result:
    """Look at the calls of a build in every setting."""
    told = run_preloaded("from campaigns import order; order.report()")
    orders: dict[str, str] = json.loads(told)
    failures = tuple(
        f"{name}: {order}" for name, order in orders.items() if not SAFE.fullmatch(order)
    )
    return Result(len(orders), {"in order": len(orders) - len(failures)}, failures)


def report() -> None:
    """Print the order of each setting, in a process with the library of faults."""
    orders = {}
    with tempfile.TemporaryDirectory(dir=MEMORY) as root:
        place = BuildDirectory(root, observations=300)
        for setting in SETTINGS:
            place.reset(is_old=setting.is_old)
            command = place.command(*setting.options)
            orders[setting.name] = encode_order(run_with_fault(Fault(), place.directory, command).calls)
    print(json.dumps(orders))


def encode_order(calls: tuple[Call, ...]) -> str:
    """Return the calls to which the order matters, a letter each."""
    letters = ""
    for call in calls:
        letter = LETTERS.get(call.name, "")
        name = os.path.basename(call.path)
        if letter == "f" and not name.startswith("."):
            letter = "D" if letters.endswith("N") else "d"
        letters += letter.upper() if "rejects" in name else letter
    return letters


CAMPAIGN = Campaign(
    name="order",
    promise="a file has its name only once it is on the disk, and exit code 0 waits for both",
    run=run,
    short=3,
    long=3,
    unit="builds",
    needs=NEEDS,
)
