"""Check the order in which a build writes, flushes and renames its files.

The order matters after a power failure. Killing a process does not test it, because the system
keeps data that was written but not flushed.
"""

import json
import os
import re
import tempfile

from campaigns.build_directory import MEMORY, SETTINGS, BuildDirectory
from campaigns.campaign import Campaign, Result
from campaigns.faultfs import NEEDS, Call, Fault, run_preloaded, run_with_fault

SAFE = re.compile("[wW]*fW*nW*dW*FND")
"""For each file: write (w), flush (f), rename (n), flush the directory (d).

Lowercase letters are the snapshot. Uppercase letters are the rejects, renamed last but written at
any time.
"""

LETTERS = {"write": "w", "pwrite": "w", "ftruncate": "w", "fchmod": "w", "fsync": "f"}
LETTERS |= {"fdatasync": "f", "rename": "n", "link": "n"}


def run(_seed: int, _count: int) -> Result:
    """Check the calls of a build in every setting."""
    output = run_preloaded("from campaigns import order; order.report()")
    orders: dict[str, str] = json.loads(output)
    failures = tuple(
        f"{name}: {order}" for name, order in orders.items() if not SAFE.fullmatch(order)
    )
    return Result(len(orders), {"in order": len(orders) - len(failures)}, failures)


def report() -> None:
    """Print the order in each setting, in a process with the library preloaded."""
    orders = {}
    with tempfile.TemporaryDirectory(dir=MEMORY) as root:
        directory = BuildDirectory(root, observations=300)
        for setting in SETTINGS:
            directory.reset(is_old=setting.is_old)
            command = directory.build_command(*setting.options)
            calls = run_with_fault(Fault(), directory.path, command).calls
            orders[setting.name] = encode_order(calls)
    print(json.dumps(orders))


def encode_order(calls: tuple[Call, ...]) -> str:
    """Encode the calls whose order matters as one letter each."""
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
    promise="a file gets its name only after it is on disk, and exit code 0 means that both are",
    run=run,
    short=3,
    long=3,
    unit="builds",
    needs=NEEDS,
)
